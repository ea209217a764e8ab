"""Models and scoring rules on benchmarks: no person takes part.

minimal_pairs     BLiMP and its like: does a model prefer what people accept
acceptability     gradient judgements: the BLiMP criterion and the Acceptability Delta Criterion
desiderata        what makes a scoring rule good
comparison        how alike models order sentences, and where they part

benchmark_scores  log-probabilities of a benchmark's sentences, from models or from a table
output_folder     the folder that every evaluation writes: tables, figures, and a page

In: models or a table of scores, and the files of a benchmark. Out: a value with the results, which
`write_…` of each room leaves in a folder, and whose `to_frame` is a table for pandas.
"""
