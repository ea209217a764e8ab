"""From a stimulus set to people and back.

design       trials of every group, from pairs, triplets and fillers; what they would show (power)
platforms    one folder or file a platform: exports, and readers of what it returns
collection   a small server that keeps people's answers
responses    what people answered: one table, its checks, and who takes part in an analysis
analysis     from ratings and scores to results, tables, figures and a page
reproduce    published experiments, claim by claim

Imports point down: reproduce and collection stand on platforms, these on design, design (whose
power analysis is an analysis of simulated answers) on analysis, and analysis on responses.
"""
