"""Reanalyses of published experiments, with each published claim next to our result.

golan2023        experiment 1 of Golan et al. (2023)
golan2023_data   reading its trials and ratings, and importing them like those of any platform
adc              LI-Adger and the Acceptability Delta Criterion of Vázquez Martínez (2021)
published        fetching and reading the 2023 study's scores, stimuli and words
"""
