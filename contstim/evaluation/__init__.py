"""Models and scoring rules on benchmarks: no person takes part.

Every evaluation has one shape: items are read, scored, and measured; the measures are tables, from
which a folder with figures and a page is written.

    settings        what may be chosen in each
    scores          of sentences that every model can read, and of pairs
    folder          tables, figures and a page in a folder

    minimal pairs   minimal_pairs (pair_columns) -> scores -> accuracies (learning_curves)
                    -> minimal_pair_report
                    does a model prefer what people accept (Warstadt et al. 2020)?
    acceptability   acceptability -> judged_scores -> criteria -> acceptability_report
                    do differences of scores follow gradient judgements (Vázquez Martínez 2021)?
    ratings         do scores of single sentences correlate with people's ratings?
    restarts        how well classifiers that were trained several times judge sentences
    desiderata      desiderata -> desiderata_report
                    what makes a scoring rule good (Kauf & Ivanova 2023)?
    comparison      how alike models order sentences, and what sets them at odds
    overview        facts about one model: contexts, unknown words, speed
"""
