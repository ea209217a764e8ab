"""Trials for every group of participants, and what they would show.

sentence_needs   how many natural sentences a study needs
building         from pairs and triplets to trials; fillers: random pairs and catch trials
reviewed_trials  which trials stood before, by a review
allocation       exact allocation of trials to groups, so that no group meets a text twice
verification     an independent check of the finished trials; certificate: that it was passed
presentation     what each participant sees: order and sides
summary          a design in numbers, as a page and as a figure
simulated        participants that are a model plus noise; artificial: one by one, what each rates
power            what an experiment would show if one of the models were human
calibration      how often people agree, in 2023 or in a pilot, which the noise is set to
discoveries      which of a simulated experiment's differences are more than chance
power_report     the power of a whole design, as a page and a table
golan2023        numbers of the 2023 experiment that serve as defaults
"""
