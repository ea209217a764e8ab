"""Language models with one interface, and scores of sentences.

This list shows the calls, in order, from `load_model("hf:bert@chain")` to the score of a sentence.
The list omits checks, helpers in the same file, and `merging` for concurrent searches.

    catalog.load_model                    a language model, not a classifier
    catalog.load_scorer                   calls the family's loader
    specifications.parse_model            family, location and rule
    catalog.load_transformer              causal or masked
    checkpoints.load_checkpoint           network and tokenizer, cached while in use. Their source
                                          is a folder, the local cache or the hub (`from_anywhere`)
    masked.adapter.MaskedModel            the rule (`rules.chain_plan`) and the tokenization. The
                                          rule makes a plan for each sentence: rows with masked
                                          tokens, and questions, the tokens to predict in a row
    masked.network.MaskedNetwork          the mask token; only required logits are computed
    masked.adapter.MaskedModel.log_probs  the interface of language models
    words.encode_batch                    each sentence's tokens, and the word of each token
    masked.network.MaskedNetwork.answer   rows and questions of many plans
    masked.network.MaskedNetwork.ask      distinct rows and positions
    batching.forward_in_batches           batches of similar lengths that fit into memory
    masked.network.MaskedNetwork.logits   logits of the requested positions
    boundaries.Normaliser.log_probs       log-probabilities of the requested tokens
    masked.plan.Plan.score                weighted sum of these log-probabilities

`contstim score` runs the step `steps.scoring.ScoreSentences`, which does not call `load_model`.
First, `specifications.parse_models` refuses equal models. Then `catalog.one_at_a_time` loads one
model after the other. `scoring.score_each` scores only sentences that are not in the store.

base            the interfaces: Scorer, LanguageModel, Replacements, Convention
catalog         loading of models by their specifications; files and commits of models
specifications  `[NAME=][family:]location[@rule][+transform]`, and the 2023 study's models
families        kinds of models, built in or from installed packages
loading         options for loading models
scoring         scores of many sentences, cached and resumable; scores of words and tokens
remote          models loaded by workers; `contstim.jobs` has the workers
transforms      models in another letter case; scores per token or per word
vocabularies    words of a training text, its end marks, and words that several models know

ngram/          n-gram models
recurrent/      RNN, LSTM and BiLSTM over words
contexts        tokens that a causal model reads before the first word
subwords        base class of transformers
causal/         transformers that predict the next token
masked/         transformers that predict hidden tokens
classifier      classifiers of acceptability
server/         causal transformers on an inference server
checkpoints/    network and tokenizer from a folder or the hub
training/       training of recurrent networks and small transformers

words           tokens of each word, and tokens that must not occur in a sentence
boundaries      probabilities within one class of tokens: those at word boundaries, or within words
batching        rows of tokens through a network
costs           number of sequences that passed through networks, and computing time
merging         batches of network calls from several searches
caching         a cache bounded by the total size of its results
precision       precision of a network, and conversion to float32
onednn          faster linear layers on the CPU
tensors         device maps, files of tensors, and fingerprints
training_text   sentences of a study that a model was trained on
"""
