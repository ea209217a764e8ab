"""Outputs of an analysis in a folder.

folder     tables, figures and the page
page       the results as a page
drawings   which figures an analysis has
bars       consistency of each model, groups, noise ceiling and significance
scatter    the sentences that set two models against each other
sureness   how sure people are of each trial
"""
