"""Desiderata of a scoring rule, which hold of any measure of a sentence's likelihood.

In: models, sentences, words and their frequencies. Out: `Desiderata`, which `write_desiderata`
leaves in a folder.

carriers           the scores of single words in neutral sentences
measures           a correlation with its interval; what splitting a word does to its score
evaluation         all of it for a list of models
claims             what the paper found of two rules, and whether it holds
desiderata_report  the page, and everything written into a folder

Source: Kauf & Ivanova (2023), *A Better Way to Do Masked Language Model Scoring*, ACL. Longer
sentences should be less likely, frequent words likelier, and masked models should agree with causal
ones.
"""
