"""Choose natural pairs, triplets or minimal pairs exactly, with a certificate.

These functions lead from triplets.csv to selected.csv, in this order. Functions that check, or that
read or write one cell, are left out.

    steps.selection.SelectTriplets   the command
    stimuli.read_triplets            named rows, each of two models
    tables.read_rows                 columns of cells, then a triplet for each row
    tables.parsed                    cells of a column as values
    triplets.select_triplets         the best set
    triplets.usable_triplets         comparable triplets
    triplets.build_rules             linear rules
    triplets.triplet_costs           costs
    solver.solve                     the best choice
    tables.columns_of                columns of cells
    tables.write_table               the whole file or none

question       number of stimuli, objectives and rules; certificates and selections
natural        natural pairs (2023, Eqs. 5-6), from strata of sentences ranked among each other
triplets       triplets: linear rules, costs and choice
minimal_pairs  minimal pairs on which two models disagree
reviewed       reviews: kept items as goals, and reasons for changes
solver         programs in whole numbers; the only file that knows a solver
verification   independent checks of finished selections
"""
