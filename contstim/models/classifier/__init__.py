"""Classifiers of acceptability: supervised scorers, whose scores are no log-probabilities.

adapter   how surely a checkpoint calls a sentence acceptable, as a language model's score
labels    which of a checkpoint's two labels means acceptable
"""
