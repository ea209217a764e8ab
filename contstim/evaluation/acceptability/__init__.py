"""Gradient acceptability: do differences between a model's scores follow those of judgements?

The parts, from what a command calls to what they rest on:

    outputs      the folder of tables, figures and the report
    figures      heat map of the deltas' correlations, model against human scores
    comparison   correlations, fits, and the pairs that set models or criteria apart
    evaluation   deltas of every pair, and which criteria each meets
    criteria     z-scores, the BLiMP criterion, the Acceptability Delta Criterion
    scores       scores of the judged sentences, from models or from any published table
    matching     which row of a table belongs to which judged sentence
    reading      LI-Adger's files as published, or any table of judgements
    restarts     how well classifiers that were trained several times judge sentences
    judgements   the values: judged sentences and their minimal pairs
"""
