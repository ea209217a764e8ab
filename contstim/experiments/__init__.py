"""From a stimulus set to people and back.

report       a page of stimuli to look at, changed words highlighted
responses    what people answered, whatever platform asked
regression   choices on log-probability ratios, errors clustered by people and items
controls     what else preferences could follow: tokens, word frequency, any feature
"""
