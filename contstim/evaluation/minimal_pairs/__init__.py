"""Minimal pairs: does a model prefer the sentence that people accept (Warstadt et al. 2020)?

pairs        a pair, and the methods by which it can be put to a model
reading      BLiMP's files, or any table of pairs
people       what people chose, and what published models did
comparison   both sides of pairs under models; ties
accuracies   by paradigm, phenomenon and overall; correlations and contrasts
profile      accuracy against length, perplexity, log-probability and confidence
curves       accuracy against the size of the training text
evaluation   all of that together, with what others found beside
figures      heat maps, profiles, learning curves
summary      the report's text
tables       the tables
outputs      everything, written into a folder
"""
