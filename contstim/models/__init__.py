"""Language-model adapters and how they score a sentence.

The way from a specification to a model: catalog -> specifications -> families -> the family's room;
for transformers (`hf:`) through transformer, which asks whether they are causal or masked, and
checkpoints, where they are loaded and checked.

base            the contracts: Scorer, LanguageModel, Replacements, Convention
catalog         load models by their specifications, several at once or one after the other
specifications  `[NAME=][family:]location[@rule][+transform]`, and the 2023 study's models
origins         the files and commits that models are loaded from, for records
families        kinds of models, built in or of installed packages
loading         options of loading, one value
scoring         many sentences under several models, stored and resumable; scores word by word
remote          models that workers hold; `contstim.jobs` has the workers
transforms      scores per token or per word, whatever the model
vocabularies    the words that several models know

ngram/          n-gram models
recurrent/      RNN, LSTM and BiLSTM over words
transformer     causal or masked, as the checkpoint's configuration says
causal/         transformers that predict the next token
masked/         transformers that predict hidden tokens
classifier/     classifiers of acceptability
server/         causal transformers on an inference server
checkpoints/    network and tokenizer from a folder or the hub
training/       from a text to a recurrent network or a small transformer

words           which tokens make up which word
word_tokens     the tokens of candidate words in the places where they would stand
boundaries      probabilities among the tokens that keep words apart
special_tokens  tokens that may not occur in a sentence
batching        rows of tokens through a network
costs           passes through networks, counted
caching         results in memory, bounded by their sizes
precision       the precision of a network, and full float32
onednn          linear layers on the CPU
fingerprints    of checkpoints, wherever their files lie
tensors         tensors on disk
training_text   the sentences that a model was trained on, and those of a study among them
"""
