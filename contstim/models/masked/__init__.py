"""Masked language models: the plan of each scoring rule, and shared passes for its questions.

plan       which tokens to hide, which questions to ask, and how the answers add up, with an
           example; the log of the mean probability over orders, from the same contexts
rules      every rule: its plan, its restrictions, its scores; the mean over all orders of the
           words, and samples if there are too many orders
network    many questions, answered by few passes through a network that hides tokens
estimates  bounds and estimates for every candidate word, from few passes
adapter    MaskedModel, with the interface of every language model
"""
