"""Trials for every group of participants, and simulations of their results.

building         the trials of a design: trials of pairs and triplets, random pairs, and catch
                 trials; a new design after a review
assignment       exact assignment of trials to groups, so that no group sees a text twice; for each
                 participant, the order of the trials and the sides of their sentences
verification     an independent check of the finished trials
summary          numbers of a design, as a page and as a figure; how many natural sentences a study
                 needs
artificial       artificial participants, who follow a model with noise, and their ratings
population       people, items and trials of simulated experiments; default values, which were
                 measured in the study of 2023
calibration      populations that match measured people, of the study of 2023 or of a pilot
simulated_tests  statistical tests of many simulated experiments at once, and their precision
power            power of experiments with new people and new items, for several sizes
power_report     power as a page, as tables and as a figure
"""
