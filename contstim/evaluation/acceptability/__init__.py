"""Gradient acceptability: do differences between a model's scores follow those of judgements?

In: judged sentences with their minimal pairs, and scores from models or published tables. Out: an
`AcceptabilityEvaluation`, which `write_acceptability` leaves in a folder.

    read_judgements -> model_scores, published_scores -> evaluate_acceptability
                    -> write_acceptability

judgements             the values: judged sentences and their minimal pairs
reading                LI-Adger's files as published, or any table of judgements
sentence_scores        scores of the judged sentences, from models or from any published table
criteria               z-scores, the BLiMP criterion, the Acceptability Delta Criterion
evaluation             deltas of every pair, and which criteria each meets
results                criteria met, correlations, fits, pairs on which models or criteria differ
acceptability_figures  heat map of the deltas' correlations, model against human scores
acceptability_report   the page, and everything written into a folder
restarts               how well classifiers that were trained several times judge sentences
"""
