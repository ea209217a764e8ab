"""Choose a set of natural pairs or triplets, exactly, with a certificate.

question       how many stimuli, of what worth, under which rules; certificates of answers
natural        natural pairs (2023, Eqs. 5-6); strata: sentences ranked among each other
triplets       triplets; triplet_rules: what the set must keep, and what it is worth
reviewed       what a review says of what stood before
flow           min-cost flow, and prices that prove a natural selection optimal
programs       programs in whole numbers with a bound, and groups of items
verification   checks of finished selections: every rule, and the bound
"""
