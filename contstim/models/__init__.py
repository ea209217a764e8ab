"""Language models with one interface, and scores of sentences.

This list shows the calls, in order, from `load_model("hf:bert@chain")` to the score of a sentence.
The list omits checks, helpers in the same file, and `merging` for concurrent searches.

    catalog.load_model                    loads a language model; refuses a classifier
    catalog.load_scorer                   calls the family's loader
    specifications.parse_model            finds family, location and rule
    catalog.load_transformer              loads a causal or a masked model
    checkpoints.load_checkpoint           loads network and tokenizer, cached while in use. Source:
                                          a folder, the local cache or the hub (`from_anywhere`)
    masked.adapter.MaskedModel            holds the rule (`rules.chain_plan`) and tokenizes. The
                                          rule makes a plan for each sentence: rows with masked
                                          tokens, and questions. A question asks for the
                                          probability of one masked token of one row
    masked.network.MaskedNetwork          holds the mask token, and computes only required logits
    masked.adapter.MaskedModel.log_probs  scores sentences; a method of all language models
    words.encode_batch                    finds each sentence's tokens, and the word of each token
    masked.network.MaskedNetwork.answer   collects rows and questions of many plans
    masked.network.MaskedNetwork.ask      finds the distinct rows and positions
    batching.forward_in_batches           makes batches of similar lengths that fit into memory
    masked.network.MaskedNetwork.logits   computes logits of the requested positions
    boundaries.Normaliser.log_probs       computes log-probabilities of the requested tokens
    masked.plan.Plan.score                computes the weighted sum of these log-probabilities

`contstim score` runs the step `steps.scoring.ScoreSentences`, which does not call `load_model`.
First, `specifications.parse_models` refuses a model that is given twice. Then
`catalog.one_at_a_time` loads one model after the other. `scoring.score_each` scores only sentences
that are not in the store.

base            the interfaces: Scorer, LanguageModel, Replacements, Convention
catalog         loading of models by their specifications; files and commits of models
specifications  `[NAME=][family:]location[@rule][+transform]`, and the 2023 study's models
families        kinds of models, built in or from installed packages
loading         options for loading models
scoring         scores of many sentences, cached and resumable; scores of words and tokens
remote          models loaded by workers; `contstim.jobs` has the workers
transforms      models that read lower or upper case; scores per token or per word
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
boundaries      two classes of tokens, at word boundaries and within words; probabilities in a class
batching        rows of tokens through a network
costs           number of sequences that passed through networks, and computing time
merging         batches of network calls from several searches
caching         a cache bounded by the total size of its results
precision       precision of a network, and conversion to float32
onednn          faster linear layers on the CPU
tensors         device maps, files of tensors, and fingerprints
training_text   hashes of a model's training sentences; whether they contain a study's sentences
"""
