"""Triplets for every pair of models: searches spread over workers, each result stored as it comes.

    SearchQuestion: triplets for each pair, recipe, limits, seed
        |
    [Assignment] natural sentences for each pair of models, none used twice
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
      |           impossible, or for which nothing    |
      |           is found, makes room for the next   |
      |                                               |
      +---------------- result -----------------------+
      |
      v
    TripletStore: each result under a key of all that decides it, so that nothing is searched twice
        |
    TripletResults: triplets, failures, statistics of each pair

Before, each model is loaded once to know what it is. The pool and the executors are those of
`contstim.jobs`.

triplets     the whole job, from a question to its results
question     what a study asks of its searches, and what of it decides a result
assignment   natural sentences for each pair of models, and their table
queues       a task for each slot of a pair, the result that stands there, and which comes next;
             rounds, where a word may stand in so many sentences of the study only
tasks        what workers do, and where: models that are loaded, the words of searches, and how
             rare a sentence may be
results      what is found: triplets, failures, statistics; the names that the user gave
"""
