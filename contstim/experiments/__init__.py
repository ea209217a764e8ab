"""From a stimulus set to people and back.

report        a page of stimuli to look at, changed words highlighted
design        trials of every group, from pairs and triplets (fillers: random pairs, catch trials)
presentation  what each participant sees: order and sides
summary       a design in numbers, and as a figure
simulated     participants that are a model plus noise
power         what an experiment would show if one of the models were human
"""
