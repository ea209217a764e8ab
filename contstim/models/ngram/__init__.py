"""N-gram models: estimated here, kept as ARPA files, scored by KenLM.

adapter      NgramModel, under the contract of every language model
precautions  checks of a file before KenLM reads it
tables       the model as sorted arrays
arpa         tables from and to ARPA files
replace      the score with every word of the vocabulary at one position
training     train_ngram: from sentences to a model file
estimate     interpolated modified Kneser-Ney, with its equations
counts       word counts of the training text, beside the model
"""
