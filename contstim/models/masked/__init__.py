"""Masked language models: what each rule hides, and one pass for all questions that it answers.

plan       which tokens to hide, what to ask there, and how the answers add up, with an example;
           the log of the mean probability over orders, from the contexts of the mean
rules      every rule: its plan, its restrictions, how it scores; the mean over all orders of the
           words, and samples where orders are too many
network    many questions, answered by few passes through a network that hides tokens
estimates  bounds and estimates for every candidate word, from few passes
adapter    MaskedModel, under the contract of every language model
"""
