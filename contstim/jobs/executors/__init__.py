"""Ways of running workers: in this process, in processes of this machine, on a Ray cluster."""

from contstim.jobs.executors.base import Answered, Died, Event, Executor, Ready
from contstim.jobs.executors.local import LocalExecutor
from contstim.jobs.executors.processes import ProcessExecutor
from contstim.jobs.executors.ray import RayExecutor

__all__ = [
    "Answered",
    "Died",
    "Event",
    "Executor",
    "LocalExecutor",
    "ProcessExecutor",
    "RayExecutor",
    "Ready",
]
