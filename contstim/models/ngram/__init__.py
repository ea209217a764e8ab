"""N-gram models: estimated here, kept as ARPA files, scored by KenLM.

estimate   interpolated modified Kneser-Ney from sentences
tables     the model as sorted arrays
arpa       tables from and to ARPA files
replace    the score with every word of the vocabulary at one position
counts     word counts of the training text, beside the model
adapter    KenlmModel, under the contract of every language model
training   the four steps from a text file to a model file
"""
