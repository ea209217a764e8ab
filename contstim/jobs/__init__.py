"""Tasks for workers. Workers run in this process, in several processes, or on a Ray cluster.

    [TaskQueue] ---- task, if possible for models --> [Pool] ---- task -----> [Executor]
      ^  ^           that the worker has loaded        |  ^                   workers, each with
      |  |                                             |  +---- result, ----- a WorkerContext and
      |  +---- the same task, at most twice, if its ---+        error or      its loaded models
      |        worker had to be replaced               |        death
      +---------------- result ------------------------+

pool            the loop that assigns tasks, receives results and replaces workers; the contracts
                of queues and of executors, which spawn workers
worker_context  tasks, and their context: a worker's options and loaded models
in_process      workers in this process: one, or several that take turns
processes       workers in several processes
ray             workers on a Ray cluster
watcher         a program that kills Ray's processes if the process that started Ray was killed
model_workers   scores of sentences under models that workers have loaded

`contstim.optimization.jobs` has the tasks and queues of searches for triplets.
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
