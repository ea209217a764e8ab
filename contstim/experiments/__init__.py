"""From a stimulus set to people and back.

report        a page of stimuli to look at, changed words highlighted
design        trials of every group, from pairs, triplets and fillers
presentation  what each participant sees: order and sides
summary       a design in numbers, and as a figure
simulated     participants that are a model plus noise
artificial    the same, one by one: what each would rate
collection    a small server that keeps people's answers
power         what an experiment would show if one of the models were human
discoveries   which of a simulated experiment's differences are more than chance
export        experiments that people can take part in, and data sets for the public
responses     what people answered, whatever platform asked
consistency   how well log-probability ratios predict ratings: accuracy, signed-rank cosine
ceilings      how well people predict one another
inference     signed-rank tests, false-discovery rate, contrasts
analysis      from ratings and scores to results, tables, figures and a page
regression    choices on log-probability ratios, errors clustered by people and items
controls      what else preferences could follow: tokens, word frequency, any feature
benchmarks    models and scoring rules on minimal pairs, judgements and one another
figures       what a paper can print
names         short names of models, for figures and tables
reproduce     published experiments, claim by claim
golan2023     numbers of the 2023 experiment that serve as defaults
"""
