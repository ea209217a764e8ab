"""From ratings and scores to results: which model people agree with, and how sure we are.

ratings      who rated which trials, and the models' log-probabilities of their sentences
scopes       which trials evaluate which model
evaluation   both measures and their noise ceilings, per person, group and model
agreement    models with models, people with people, people with rival models
bootstrap    resamples of participants and items
effects      comparisons of models and ceilings, with tests and bootstrap intervals
failures     the trials on which each model fails worst
tables       the results as tables
report       the results as a page
run          all of it, from files to a folder
"""
