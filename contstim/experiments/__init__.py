"""Experiments with participants, from a stimulus set to results.

design       trials of every group, with random pairs and catch trials; power of a design
platforms    a folder or file for each platform: its export, and the reader of its data
collection   a small server that stores the answers of participants
responses    the table of responses, its checks, and the participants admitted to an analysis
analysis     from ratings and scores to results, tables, figures and a page
reproduce    published experiments, claim by claim

Imports have one direction: reproduce and collection import platforms, platforms imports design,
design imports analysis, and analysis imports responses. design needs analysis, because a power
analysis analyses simulated answers.
"""
