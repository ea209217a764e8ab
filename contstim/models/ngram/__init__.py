"""N-gram models: trained here, stored as ARPA files, scored from tables or by KenLM.

adapter      NgramModel, an implementation of LanguageModel with tables or the kenlm package
tables       a model as sorted arrays, and its conditional probabilities
arpa         reading and writing of ARPA files; `sections` parses their text
replace      scores of a sentence with each word of the vocabulary at one position
training     train_ngram: a model file from sentences, by interpolated modified Kneser-Ney
"""
