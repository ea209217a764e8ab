"""Language-model adapters and how they score a sentence.

The functions to read, in their order, on the way from `load_model("hf:bert@chain")` to the score of
a sentence. Left out are checks, what is only asked (the family, the plan of a pattern of words and
tokens), helpers in the file of a stop, and `merging`, which searches beside each other need.

    catalog.load_model                    a language model, not a classifier
    catalog.load_scorer                   asks the family's loader
    specifications.parse_model            family, location and rule
    subwords.load_transformer             causal or masked
    checkpoints.load_checkpoint           network and tokenizer, shared while in use; from a folder,
                                          the local cache or the hub (`from_anywhere`)
    masked.adapter.MaskedModel            the rule (`rules.chain_plan`), and how sentences are cut
    masked.network.MaskedNetwork          the mask, and how little of the network answers a question
    masked.adapter.MaskedModel.log_probs  the contract of language models
    words.encode_batch                    each sentence's tokens, and the word of each
    masked.network.MaskedNetwork.answer   rows and questions of many plans
    masked.network.MaskedNetwork.ask      distinct rows and places
    batching.forward_in_batches           batches of like lengths that fit the memory
    masked.network.MaskedNetwork.logits   of the places in question
    boundaries.Normaliser.log_probs       log-probabilities of the tokens in question
    masked.plan.Plan.score                their weighted sum

`contstim score` begins with `steps.scoring.ScoreSentences`, `specifications.parse_models` (each
model once) and `catalog.one_at_a_time` (no more networks in memory than one), which take the place
of `load_model`; `scoring.score_each` (what the store lacks, in blocks, each stored) and
`base.LanguageModel.scores` stand before `log_probs`.

base            the contracts: Scorer, LanguageModel, Replacements, Convention
catalog         load models by their specifications, and the files that they come from
specifications  `[NAME=][family:]location[@rule][+transform]`, and the 2023 study's models
families        kinds of models, built in or of installed packages
loading         options of loading, one value
scoring         many sentences under several models, stored and resumable; scores word by word
remote          models that workers hold; `contstim.jobs` has the workers
transforms      models in another letter case; scores per token or per word
end_marks       end marks that are words of a word-level model
vocabularies    the words of a training text, and those that several models know

ngram/          n-gram models
recurrent/      RNN, LSTM and BiLSTM over words
contexts        the tokens that a causal model reads before the first word
subwords        what transformers share: causal or masked, as the configuration says
causal/         transformers that predict the next token
masked/         transformers that predict hidden tokens
classifier      classifiers of acceptability
server/         causal transformers on an inference server
checkpoints/    network and tokenizer from a folder or the hub
training/       from a text to a recurrent network or a small transformer

words           which tokens make up which word, and which may not occur in a sentence
boundaries      probabilities among the tokens that keep words apart
batching        rows of tokens through a network
costs           passes through networks, counted
merging         calls of a network by several searches, in common batches
caching         results in memory, bounded by their sizes
precision       the precision of a network, and full float32
onednn          linear layers on the CPU
tensors         where values of networks are, files of them, and fingerprints
training_text   the sentences that a model was trained on, and those of a study among them
"""
