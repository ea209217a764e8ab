"""Items of an experiment: pairs, triplets and trials, their scores and reviewers' decisions.

`stimuli` defines the items and reads their tables. `scores` and `minimal_pair_scores` define tables
of scores. `item_flags` flags items with possible problems, and `matching` compares synthetic with
natural sentences.
"""
