"""Evaluations of models and scoring rules on benchmarks, without participants.

Every evaluation reads items, scores them, and computes tables of measures. From these it writes a
folder with figures and a page.

    scores          scores of sentences that every model can read, and of pairs
    folder          tables, figures and a page in a folder

    minimal pairs   minimal_pairs (pair_columns) -> scores -> accuracies
                    -> minimal_pair_report
                    does a model prefer acceptable sentences (Warstadt et al. 2020)?
    acceptability   acceptability -> judged_scores -> criteria
                    do score differences follow gradient judgements (Vázquez Martínez 2021)?
    ratings         do scores of single sentences correlate with people's ratings?
    restarts        how well do classifiers with different seeds judge sentences?
    desiderata      is a scoring rule well-behaved (Kauf & Ivanova 2023)?
    comparison      how much do models agree on the order of sentences, and where do they differ?
    overview        facts about one model: contexts, unknown words, speed
"""
