"""Published data of the 2023 study, as contstim's own values.

fetch    the repository's files, checked against registry.txt
reading  scores, pairs, triplets, natural sentences and words
"""
