"""Mixed models of ratings: people and items drawn at random, as reviewers ask for.

laplace       how likely ratings are, given a hidden value, and with crossed random effects
fitting       thresholds, slopes and variances that fit best, and their standard errors
models        ratings on the ratios of one or several language models
comparison    which of these fits better, and what one adds to another
"""
