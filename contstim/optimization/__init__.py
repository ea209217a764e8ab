"""Search for a controversial sentence, exact selection of a set, and many concurrent searches.

search      find one controversial sentence, or a triplet
selection   choose the best set of natural pairs, minimal pairs or triplets, with a proven bound
jobs        search for triplets of every pair of models of a study
"""
