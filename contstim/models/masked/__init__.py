"""Masked language models.

plan       which tokens to hide, which questions to ask the network, and how to combine the answers,
           with examples
rules      scoring rules, and how they make plans
network    answers to many questions, from few passes through the network
estimates  bounds and estimates for every candidate word at a position, from few passes
adapter    MaskedModel, with the interface of every language model
"""
