"""Models and scoring rules on benchmarks: no person takes part.

minimal_pairs   BLiMP and its like: does a model prefer what people accept
acceptability   gradient judgements: the BLiMP criterion and the Acceptability Delta Criterion
desiderata      what makes a scoring rule good
comparison      how alike models order sentences, and where they part
scored          log-probabilities of a benchmark's sentences, from models or from a table
outputs         the folder that every evaluation writes: tables, figures, and a report
"""
