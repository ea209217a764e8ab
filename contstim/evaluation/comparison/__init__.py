"""Agreement of models or scoring rules on the order of sentences, and where they part.

In: tables of scores, models, or both. Out: one table of scores, whose comparison `write_comparison`
leaves in a folder; and contests, from which stimuli are made.

gathering          the scores, from tables and from models; one table from several
agreement          rank correlations, agreement on pairs, the sentences of most disagreement
contests           from there to stimuli: the commands, and the search, that set two models at odds
comparison_report  the page, and everything written into a folder
"""
