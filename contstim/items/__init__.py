"""Items of an experiment: pairs, triplets and trials, their scores and what people decided.

`stimuli` defines the items and reads their tables. `scores` and `minimal_pair_scores` are tables of
scores; `reviews` has decisions about items, `item_flags` and `matching` describe how items may look
odd, `scale` is the scale of answers. `counts` and `correlation` are small computations on these.
"""
