"""Evaluations of models and scoring rules on benchmarks, without participants.

Every evaluation reads items, scores them, and writes tables of measures, figures and a page into a
folder.

    scores          score the sentences and pairs that all models can read
    folder          write tables, figures and a page into a folder

The other modules, by question (an arrow means that the next module continues):

    minimal pairs   minimal_pairs (pair_columns) -> scores -> accuracies
                    -> minimal_pair_report
                    does a model prefer acceptable sentences (Warstadt et al. 2020)?
    acceptability   acceptability -> judged_scores -> criteria
                    do score differences in pairs match differences in gradient judgements
                    (Vázquez Martínez 2021)?
    ratings         do scores of single sentences correlate with people's ratings?
    restarts        how well do classifiers with different training seeds judge acceptability?
    desiderata      does a scoring rule have the expected properties (Kauf & Ivanova 2023)?
    comparison      how much do models agree on the ranks of sentences?
                    on which sentences do they disagree most?
    diff            in which pairs do models prefer different sentences (diff_report: its page)?
    overview        facts about one model: contexts, unknown words, speed
"""
