"""Published experiments, analysed again, with each published claim beside ours.

golan2023        experiment 1 of Golan et al. (2023)
golan2023_data   its trials and ratings, read, and imported as those of any platform
adc              LI-Adger and the Acceptability Delta Criterion of Vázquez Martínez (2021)
published        the 2023 study's scores, stimuli and words, fetched and read
"""
