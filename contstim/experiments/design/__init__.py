"""Trials for every group of participants, and simulations of their results.

building         trials from pairs and triplets, also after a review; random pairs, catch trials
assignment       exact assignment of trials to groups, so that no group sees a text twice; order and
                 sides of the trials for each participant
verification     an independent check of the finished trials
summary          numbers of a design, as a page and as a figure; natural sentences that it needs
artificial       artificial participants (a model plus noise) and their ratings
population       people, items and trials for simulated experiments; defaults measured in 2023
calibration      populations that match measured people, of 2023 or of a pilot
simulated_tests  tests of many simulated experiments at once, and their precision
power            power of experiments with new people and new items, by their size
power_report     power as a page, as tables and as a figure
"""
