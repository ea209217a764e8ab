"""Tasks spread over workers: in this process, in several, or as actors of a Ray cluster.

    [TaskQueue] ---- a task, of models that a -----> [Pool] ---- task -----> [Executor]
      ^  ^           worker has loaded if possible    |  ^                   workers, each with
      |  |                                            |  +---- result, ----- a WorkerContext: the
      |  +---- the task again, two times more --------+        error or      models it has loaded
      |        at most, where its worker died         |        death
      |        or hung and was replaced               |
      +---------------- result -----------------------+

pool            the one loop that hands out tasks, receives results and replaces workers; the
                guarantees of queues, and of executors, which spawn workers
worker_context  tasks, and where they are done: a worker's options and loaded models
in_process      workers of this process: one, or several that take turns
processes       workers in several processes
ray             workers on a Ray cluster
watcher         a program that ends what a killed driver of Ray leaves behind
model_workers   models that workers hold, for all that scores sentences under them

Searches for triplets have tasks and queues of their own, see `contstim.optimization.jobs`.
"""

from contstim.jobs.in_process import InterleavedExecutor, LocalExecutor
from contstim.jobs.pool import Executor, worker_pool
from contstim.jobs.processes import ProcessExecutor
from contstim.jobs.ray import RayExecutor

__all__ = [
    "Executor",
    "InterleavedExecutor",
    "LocalExecutor",
    "ProcessExecutor",
    "RayExecutor",
    "worker_pool",
]
