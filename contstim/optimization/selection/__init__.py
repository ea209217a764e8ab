"""Choose a set of natural pairs or triplets, exactly, with a certificate.

natural                natural pairs (2023, Eqs. 5-6); demand: how many each pair of models needs
triplets               triplets; triplet_question: what the set must be;
                       triplet_objective: what it is worth
reviewed               what a review says of what stood before
quantiles              deciles and other quantile groups
solver                 the one place that calls solvers; programs: linear programs with a bound
duals                  prices that prove a natural selection optimal
certificate            what a selection hands over
natural_verification   checks of finished selections: every constraint, and the bound
triplet_verification   of what was chosen
"""
