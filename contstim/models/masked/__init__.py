"""Masked language models: what each rule hides, and one pass for all questions that it answers.

plan       which tokens to hide, what to ask there, and how the answers add up, with an example
rules      every rule: its plan, its restrictions, how it scores and samples
orders     plans of the chain rule, averaged over all orders of the words
mixture    the log of the mean probability over orders, from the same contexts
sampling   plans of the chain rule where all orders are too many
network    a checkpoint that hides tokens and computes the head only where it is needed
passes     many questions, answered by few passes through the network
estimates  bounds and estimates for every candidate word, from few passes
adapter    MaskedModel, under the contract of every language model
"""
