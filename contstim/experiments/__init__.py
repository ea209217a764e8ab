"""From a stimulus set to people and back.

report       a page of stimuli to look at, changed words highlighted
responses    what people answered, whatever platform asked
consistency  how well log-probability ratios predict ratings: accuracy, signed-rank cosine
ceilings     how well people predict one another
inference    signed-rank tests, false-discovery rate, contrasts
analysis     from ratings and scores to results, tables, figures and a page
figures      what a paper can print
reproduce    published experiments, claim by claim
regression   choices on log-probability ratios, errors clustered by people and items
controls     what else preferences could follow: tokens, word frequency, any feature
"""
