"""Figures of an analysis.

drawings   which figures an analysis has
bars       consistency of each model, groups, noise ceiling and significance
scatter    the sentences that set two models against each other
"""
