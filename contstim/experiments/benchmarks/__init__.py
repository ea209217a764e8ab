"""Models and scoring rules pitted against each other on standard benchmarks.

scored    log-probabilities of a benchmark's sentences, from models or from a table
names     of models, for figures
outputs   the folder that every evaluation writes: tables, figures, and a report of what was run

desiderata   what makes a scoring rule good
comparison   how alike models order sentences, and where they part
"""
