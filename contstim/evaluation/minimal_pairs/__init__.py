"""Minimal pairs: does a model prefer the sentence that people accept (Warstadt et al. 2020)?

In: a folder or table of pairs, and models or a table of scores. Out: a `MinimalPairEvaluation`,
which `write_minimal_pairs` leaves in a folder.

    read_minimal_pairs -> score_pairs -> evaluate_minimal_pairs -> write_minimal_pairs

pairs              a pair, and the methods by which it can be put to a model
reading            BLiMP's files, or any table of pairs
published_results  what people chose, and what published models did
pair_scores        scores of both sides of pairs; ties
accuracies         by paradigm, phenomenon and overall; correlations and contrasts
profile            accuracy against length, perplexity, log-probability and confidence
curves             accuracy against the size of the training text
evaluation         all of that together, with what others found beside
accuracy_figures   heat maps, profiles, learning curves
accuracy_tables    the tables
accuracy_report    the page, and everything written into a folder
"""
