"""Causal transformers: models that predict the next token.

The parts, from what the rest of the package uses to what it rests on:

    adapter      CausalModel, under the contract of every language model
    bounds       what one pass over the words before tells about every candidate word
    candidates   the tokens of candidate words where they would stand
    network      log-probabilities of continuations of a prefix that is read once
"""
