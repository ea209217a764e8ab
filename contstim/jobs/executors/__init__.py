"""Ways of running workers.

One in this process, several that take turns in this process, processes of this machine, or a Ray
cluster.
"""

from contstim.jobs.executors.base import Answered, Died, Event, Executor, Ready
from contstim.jobs.executors.interleaved import InterleavedExecutor
from contstim.jobs.executors.local import LocalExecutor
from contstim.jobs.executors.processes import ProcessExecutor
from contstim.jobs.executors.ray import RayExecutor

__all__ = [
    "Answered",
    "Died",
    "Event",
    "Executor",
    "InterleavedExecutor",
    "LocalExecutor",
    "ProcessExecutor",
    "RayExecutor",
    "Ready",
]
