"""Trials for every group of participants, and what they would show.

sentence_needs   how many natural sentences a study needs
building         from pairs and triplets to trials; fillers: random pairs and catch trials
reviewed_trials  which trials stood before, by a review
allocation       exact allocation of trials to groups, so that no group meets a text twice
verification     an independent check of the finished trials; certificate: that it was passed
presentation     what each participant sees: order and sides
summary          a design in numbers, as a page and as a figure
artificial       participants that are a model plus noise, one by one, and what each rates
population       people, items and trials that simulated experiments draw from
calibration      populations by what was measured of people, in 2023 or in a pilot
power            what experiments with new people and new items would show, for one kind of trial
precision        how exactly a difference is measured, by people and by items
design_power     all kinds of trials, with more and fewer people and items; its page and figure:
                 power_report, power_figure
golan2023        numbers of the 2023 experiment that serve as defaults
"""
