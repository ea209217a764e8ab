"""Items of an experiment: pairs, triplets and trials, their scores and reviewers' decisions.

`stimuli` defines the items and reads their tables. `scores` and `minimal_pair_scores` are tables of
scores. `reviews` has decisions about items, `item_flags` and `matching` detect odd items, and
`scale` defines rating scales. `counts` reads tables of counts, and `correlation` correlates
columns.
"""
