"""Masked language models.

plan       which tokens to hide, which questions to ask the network, and how the answers add up,
           with an example; the log of the mean probability over orders (mixture)
rules      every scoring rule, and how it makes its plan: the mean over all orders of the words, or
           over a sample if there are too many orders; pseudo-log-likelihoods
network    answers to many questions, from few passes through the network
estimates  bounds and estimates for every candidate word at a position, from few passes
adapter    MaskedModel, with the interface of every language model
"""
