"""Trials for every group of participants, and simulations of their results.

sentence_needs   number of natural sentences that a study needs
building         trials from pairs and triplets, also after a review; random pairs, catch trials
assignment       exact assignment of trials to groups, so that no group sees a text twice
verification     an independent check of the finished trials
presentation     order and sides of the trials for each participant
summary          numbers of a design, as a page and as a figure
artificial       artificial participants, a model plus noise, and their ratings
population       people, items and trials for simulated experiments
calibration      populations that match measured people, of 2023 or of a pilot
simulated_tests  tests of many simulated experiments at once, and their precision
power            power of experiments with new people and new items, by size
power_report     power as a page, as tables and as a figure
golan2023        numbers of the 2023 experiment that serve as defaults
"""
