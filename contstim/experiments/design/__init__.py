"""Trials for every group of participants, and what they would show.

sentence_needs   how many natural sentences a study needs
building         from pairs and triplets to trials, after a review too; random pairs, catch trials
assignment       exact assignment of trials to groups, so that no group meets a text twice
verification     an independent check of the finished trials
presentation     what each participant sees: order and sides
summary          a design in numbers, as a page and as a figure
artificial       participants that are a model plus noise, one by one, and what each rates
population       people, items and trials that simulated experiments draw from
calibration      populations by what was measured of people, in 2023 or in a pilot
simulated_tests  analysis of many simulated experiments at once: what tests find, how precisely
power            what experiments with new people and new items would show, of which size
power_report     that as a page, as tables and as a figure
golan2023        numbers of the 2023 experiment that serve as defaults
"""
