"""Published experiments, analysed again, with each published claim beside ours.

golan2023   experiment 1 of Golan et al. (2023)
adc         LI-Adger and the Acceptability Delta Criterion of Vázquez Martínez (2021)
"""
