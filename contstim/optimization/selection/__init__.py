"""Choose a set of natural pairs or triplets, exactly, with a certificate.

The way from triplets.csv to selected.csv: every function that the triplets go through. There are 9.
Helpers belong to the function that calls them: private ones in its file, and those of single cells.
What is asked about triplets and gives something else (rules, costs, the best choice, the check of
the result) is no stop.

    steps.selection.SelectTriplets   the command
    stimuli.read_triplets            named rows, each of two models
    tables.read_rows                 cells by column, then a row for each triplet
    triplets.select_triplets         the best set
    triplet_rules.usable_triplets    comparable ones, their controversiality computed anew
    steps.review.in_place            rows in which they stood before a review
    tables.columns_of                cells by column
    tables.write_table               the whole file or none
    tables.write_csv                 lines

question       how many stimuli, of what worth, under which rules; certificates of answers
natural        natural pairs (2023, Eqs. 5-6); strata: sentences ranked among each other
triplets       triplets; triplet_rules: what the set must keep, and what it is worth
reviewed       what a review says of what stood before
flow           min-cost flow, and prices that prove a natural selection optimal
programs       programs in whole numbers with a bound, and groups of items
verification   checks of finished selections: every rule, and the bound
"""
