"""The steps of a study: each reads files, writes files, and leaves a record of both beside them.

A command parses its options and calls a step; the stages of a study file call the same steps. What
a user may choose about a step is a dataclass of settings, which says of each what a command's help
says: the options of the command and the keys of the study file are its fields.

watching     how a step tells what it does
execution    where work runs: in this process, in several, or on a Ray cluster
vocabulary   the words of a text
sentences    its natural sentences
training     n-gram models and networks
scoring      sentences under models
review       a page on which people keep or reject items
export       trials for a platform
responses    what people answered, imported or simulated
pairs        natural sentence pairs on which models disagree most
constraints  what is asked of the sentences of a search
triplets     searches for every pair of models
selection    the most controversial triplets
design       trials of an experiment, and its power
analysis     what people answered, compared with models
mixed        mixed models of people's ratings

text_settings, simulation_settings   settings that commands read before anything heavy is loaded
settings_files                       files that settings name
embedded_text                        sentences of the embedded English, for practice
"""
