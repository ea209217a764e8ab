"""Triplets for every pair of models: workers search, and each result is stored immediately.

    SearchQuestion: triplets for each pair, recipe, constraints, seed
        |
    [natural_walk]  natural sentences of each pair of models, in the pair's own order
        |
        v
    [TaskQueue] ---- search of a pair whose -----> [Pool] ------- task ------> [Executor]
      ^  |  ^        models a worker has loaded      |   ^                     workers, each with a
      |  |  |                                        |   +---- result, ------- SearchContext: the
      |  |  +---- the search again, up to two -------+         error or        loaded models
      |  |        times, if it failed or its         |         death
      |  |        worker died; the executor          |
      |  |        replaces a dead worker             |
      |  +------- the next sentence of the pair,     |
      |           if this one yields no triplet      |
      |                                              |
      +---------------- result ----------------------+
      |
      v
    TripletStore: each result, stored under a digest of all settings that determine it
        |
    TripletResults: triplets, failures, statistics of each pair

The pool and the executors are those of `contstim.jobs`.

triplets     the whole job, from a question to its results
question     settings of a study's searches, and the settings that determine a result
queues       order of the natural sentences of each pair; order of the searches of all pairs
tasks        tasks of workers: inspect a model, search for a triplet
floors       floors of plausibility: lowest log-probabilities of a study's sentences
so_far       triplets, statistics and progress while searches run
results      triplets, failures and statistics, with the user's names of the models
"""
