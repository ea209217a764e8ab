"""How alike models or scoring rules order sentences, and where they part.

gathering  the scores, from tables and from models
joining    one table from several, on the sentences that all of them have
measures   rank correlations, agreement on pairs, the sentences of most disagreement
pitting    from there to stimuli: the commands, and the search, that set two of them at odds
report     the folder that it writes
"""
