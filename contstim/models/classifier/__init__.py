"""Classifiers of acceptability: supervised scorers, whose scores are not log-probabilities.

adapter   how surely a checkpoint calls a sentence acceptable, as a score
labels    which of a checkpoint's two labels means acceptable
"""
