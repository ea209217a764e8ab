"""N-gram models: trained here, stored as ARPA files, scored from tables or by KenLM.

adapter      NgramModel, an implementation of LanguageModel, from tables or by the kenlm package
tables       the model as sorted arrays, and their conditional probabilities
arpa         reading and writing of ARPA files
replace      scores of a sentence with each word of the vocabulary at one position
training     train_ngram: a model file from sentences, by interpolated modified Kneser-Ney
"""
