"""Choose a set of natural pairs or triplets, exactly, with a certificate.

The functions to read, in their order, on the way from triplets.csv to selected.csv. Left out are
what runs any step (`steps.step`), checks, what is only asked (rules, costs, the best choice), what
reads or writes a single cell, and helpers in the file of a stop.

    steps.selection.SelectTriplets   the command
    stimuli.read_triplets            named rows, each of two models
    tables.read_rows                 cells by column, then a triplet for each row
    tables.parsed                    the cells of a column as values
    triplets.select_triplets         the best set
    triplet_rules.usable_triplets    comparable ones, their controversiality computed anew
    steps.review.in_place            by pair of models, in their rows of before a review
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
