"""Reanalyses of published experiments, with each published claim next to our result.

golan2023        experiment 1 of Golan et al. (2023)
adc              LI-Adger and the Acceptability Delta Criterion of Vázquez Martínez (2021)
published        fetching and reading the 2023 study's scores, stimuli, words and ratings
"""
