"""Triplets for every pair of models: workers search, and each result is stored immediately.

A triplet is a natural sentence with two synthetic sentences. Model 1 rejects the first synthetic
sentence, that is, it prefers the natural sentence. Model 1 accepts the second synthetic sentence.
For model 2, the roles of the two synthetic sentences are reversed. Workers are processes that load
models and execute tasks.

    SearchQuestion: number of triplets for each pair, recipe (search method), constraints, seed
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
    TripletStore: each result, and as its key a digest of all settings that determine the result
        |
    TripletResults: triplets, failures, statistics of each pair

The pool and the executors are in `contstim.jobs`. These are the modules of this folder:

triplets     the whole job, from its settings to its results
question     `SearchQuestion`: the settings of a study's searches
queues       order of each pair's natural sentences; order of the searches of all pairs
tasks        tasks of workers: inspect a model, search for a triplet
floors       floors of plausibility: lowest log-probabilities that natural sentences may have
so_far       triplets, statistics and progress while searches run
results      triplets, failures and statistics, with the user's names of the models
"""
