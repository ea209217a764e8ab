"""Figures that a paper can print, in colours that colour-blind readers tell apart.

canvas     sizes, type, and saving as PDF and PNG
bars       consistency of each model, groups, noise ceiling and significance
matrices   pairs of models
scatter    the sentences that set two models against each other
"""
