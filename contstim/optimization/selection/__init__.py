"""Select natural pairs, triplets or minimal pairs, with a certificate: a proof of optimality.

For example, `contstim select triplets` calls these functions in this order:

    steps.selection.SelectTriplets   runs the command
    stimuli.read_triplets            reads triplets.csv
    triplets.select_triplets         returns the best set of triplets:
        triplets.usable_triplets       checks the candidates
        triplets.build_rules           builds linear rules
        triplets.triplet_costs         computes the cost of each candidate
        solver.solve                   computes the best choice
        verification.verify_triplets   checks the set
    tables.write_table               writes selected.csv

question       settings of selections (number of stimuli, objectives, rules), and their results
natural        natural pairs (Golan et al. 2023, Eqs. 5-6)
triplets       triplets of a natural and two synthetic sentences
minimal_pairs  minimal pairs on which two models disagree
reviewed       keeps reviewed items in a selection, and gives reasons for changes
solver         solves integer linear programs
verification   independent checks of finished selections
"""
