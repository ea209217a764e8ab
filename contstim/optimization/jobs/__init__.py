"""Triplets for every pair of models: searches spread over workers, each result stored as it comes.

    SynthesisPlan: models, natural sentences, triplets for each pair, recipe, seed
        |
    [SentenceAllocator] natural sentences for each pair of models, none used twice
        |
        v
    [TaskQueue] ---- a task, of a pair whose ----> [Pool] ------- task ------> [Executor]
      ^  |  ^        models a worker has loaded       |   ^                    workers, each with a
      |  |  |                                         |   +---- result, ------ SearchContext: the
      |  |  +---- the task again, two times more -----+         error or       models it has loaded
      |  |        at most, where it failed or its     |         death
      |  |        worker died; a dead worker is       |
      |  |        replaced by the executor            |
      |  +------- a sentence that a model finds       |
      |           impossible makes room for the next  |
      |                                               |
      +---------------- result -----------------------+
      |
      v
    TripletStore: each result in one transaction, so that a job that was killed goes on from there
        |
    TripletResults: triplets, failures, statistics of each pair

Two queues are worked off: `ModelInspection` has each model loaded once, `TripletQueue` has triplets
searched for. The pool and the executors are those of `contstim.jobs`.

triplets             the whole job, from a plan to its results
plan                 all that decides which triplets are found
speed                how long the search for a triplet takes, from a few seconds of it
results              what is found: triplets, failures, statistics; the names that the user gave
task_queue           which task comes next, and what becomes of it
tasks                what workers do: inspect a model, search for a triplet
search_context       where they do it: a worker's loaded models, and the words of searches
sentence_allocation  natural sentences for each pair of models
allotment            the same as a table, from which a study can be repeated elsewhere
store_changes        a store for a study that has changed: what is done again, and what stays
words                the words that a search between two models may use
plausibility         floors: how rare a sentence may be, as a quantile of natural ones
word_cap             in how many sentences of the study a word may stand; searches in waves
"""
