"""Causal transformers: models that predict the next token.

adapter      CausalModel, under the contract of every language model
bounds       bounds and estimates for every candidate word, from the words before
candidates   the tokens of candidate words where they would stand
context      what is read before the first word
network      log-probabilities of continuations of a prefix that is read once
"""
