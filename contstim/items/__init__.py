"""Items of an experiment: pairs, triplets and trials, their scores and reviewers' decisions.

`stimuli` defines the items and reads their tables. `scores` and `minimal_pair_scores` are tables of
scores; `scores` also reads tables of counts. `reviews` has decisions about items. `item_flags` and
`matching` detect odd items, `scale` defines rating scales, and `correlation` correlates columns.
"""
