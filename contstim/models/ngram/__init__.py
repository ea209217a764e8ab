"""N-gram models: estimated here, kept as ARPA files, scored from tables or by KenLM.

adapter      NgramModel, under the contract of every language model
kenlm        the same by KenLM, where the kenlm package is installed, and what it must not read
tables       the model as sorted arrays, and conditional probabilities from them
arpa         tables from and to ARPA files
replace      the score with every word of the vocabulary at one position
training     train_ngram: from sentences to a model file, by interpolated modified Kneser-Ney
"""
