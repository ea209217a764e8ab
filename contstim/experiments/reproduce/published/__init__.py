"""Published data of the 2023 study, as contstim's own values.

Every reader takes the folder of the repository dpmlab/contstimlang (or, where it says so, a part of
it). Sentences come as `Sentence.text`, closed by an end mark, and orientation is ours: model_1
rejects sentence_1 and synthetic_1.

fetch        the repository's files, checked against registry.txt
scores       log-probabilities of the natural sentences under nine models
stimuli      natural pairs, triplets and natural sentences
vocabulary   words for the start of a sentence and for elsewhere
pickles      numbers and texts out of pickled files, of which nothing is run
"""
