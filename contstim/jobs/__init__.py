"""Tasks spread over workers: processes of this machine, or actors of a Ray cluster.

    [TaskQueue] ---- a task, of models that a ---> [Scheduler] ---- task ----> [Executor]
      ^  ^          worker has loaded if possible     |   ^                    workers, each with a
      |  |                                            |   +---- result, ------ WorkerContext: the
      |  +---- the task again, two times more --------+         error or       models it has loaded
      |        at most, where its worker died         |         death
      |        or hung and was replaced               |
      +---------------- result -----------------------+

queue           tasks, and queues that decide what becomes of them
scheduler       the loop that hands out tasks and receives results
worker_context  where they are done: a worker's options and loaded models
model_workers   models that workers hold, for all that scores sentences under them
executors       workers in this process, in several processes, or on a Ray cluster

Searches for triplets have tasks and queues of their own, see `contstim.optimization.jobs`.
"""
