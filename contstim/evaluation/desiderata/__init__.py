"""What makes a scoring rule good: desiderata that hold of any measure of a sentence's likelihood.

carriers     the scores of single words in neutral sentences
measures     correlations with length, frequency and a causal model; what splitting a word does
run          all of it for a list of models
claims       what the paper found of two rules, and whether it holds
report       the folder that it writes: tables, scatter plots, and a page

Source: Kauf & Ivanova (2023), *A Better Way to Do Masked Language Model Scoring*, ACL. Longer
sentences should be less likely, frequent words likelier, and masked models should agree with causal
ones.
"""
