"""Causal transformers: models that predict the next token.

adapter   CausalModel, an implementation of LanguageModel
network   log-probabilities of continuations of a prefix; the prefix is processed once
"""
