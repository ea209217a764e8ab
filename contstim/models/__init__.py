"""Language-model adapters and how they score a sentence.

base           the contracts: Scorer, LanguageModel, Replacements, Convention
catalog        specifications such as `kenlm:trigram.arpa`, families, the 2023 study's models
given          models as a user gives them, `[NAME=]SPECIFICATION`
turns          one model at a time in memory
scoring        many sentences under several models, cached and resumable; scores word by word
transforms     scores per token or per word, whatever the model
vocabularies   the words that several models share
ngram/         n-gram models
recurrent/     RNN, LSTM and BiLSTM over words
transformer    causal or masked, as the checkpoint says
causal/        transformers that predict the next token
masked/        transformers that predict hidden tokens
checkpoints/   network and tokenizer from a folder or the hub
words          which tokens make up which word
boundaries     probabilities among the tokens that keep words apart
training/      from a text to a recurrent network or a small transformer
batching       rows of tokens through a network
"""
