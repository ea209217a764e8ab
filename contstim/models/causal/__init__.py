"""Causal transformers: models that predict the next token.

adapter   CausalModel, under the contract of every language model
network   log-probabilities of continuations of a prefix that is read once
"""
