"""The steps of a study: each reads files, writes files, and leaves a record of both beside them.

A step is declared once, as a dataclass whose fields say what they are (`contstim.options`): the
command with its options, the section of a study file, the stage, the record and the reference
follow from it.

step         base of all steps, and what follows from their fields
fields       fields that several steps share
execution    where work runs: in this process, in several, or on a Ray cluster
vocabulary   the words of a text
sentences    its natural sentences
training     n-gram models and networks
scoring      sentences under models
synthesis    one controversial sentence, or a pair
triplets     searches for every pair of models, and what is asked of their sentences (constraints)
pairs        natural sentence pairs on which models disagree most
selection    the most controversial triplets
earlier      stimuli from before a review, each in its row
review       a page on which people keep or reject items
design       trials of an experiment, and its power
export       trials for a platform
responses    what people answered, imported or simulated
analysis     what people answered, compared with models
mixed        mixed models of people's ratings
controls     what else models may follow
reproduction published analyses done again
embedded_text, minimal_pairs         sentences of the embedded English
text_settings, simulation_settings   settings of texts and of artificial participants
"""
