"""Models and scoring rules pitted against each other on standard benchmarks.

acceptability   gradient judgements: the BLiMP criterion and the Acceptability Delta Criterion
scored          log-probabilities of a benchmark's sentences, from models or from a table
outputs         the folder that every evaluation writes: tables, figures, and a report
"""
