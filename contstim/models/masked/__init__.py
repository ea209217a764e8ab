"""Masked language models: what each rule hides, and one pass for all that it can tell.

plan       which tokens to hide, what to ask there, and how the answers add up
rules      every rule: its plan, what it restricts, scores and samples
orders     plans of the chain rule, averaged over all orders of the words
sampling   plans of the chain rule where all orders are too many
network    a checkpoint that hides tokens and computes the head only where it is needed
passes     the distinct inputs of many plans, through the network once
estimates  what few passes tell about every candidate word
adapter    MaskedModel, under the contract of every language model
"""
