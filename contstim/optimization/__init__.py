"""Search for a controversial sentence, exact selection of a set, and many searches at once.

search      find one controversial sentence, or a triplet
selection   choose a set of natural pairs or triplets, with a proof of how good it is
jobs        search for every pair of models of a study

Searches and selections know nothing of each other; jobs run searches.
"""
