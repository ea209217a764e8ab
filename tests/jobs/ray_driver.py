"""A driver with two workers on a Ray of its own, which waits to be killed; a program of its own."""

from __future__ import annotations

import time

from contstim.jobs.executors import RayExecutor
from contstim.jobs.worker_context import WorkerContext
from contstim.models.loading import Loading

if __name__ == "__main__":
    executor = RayExecutor(2)
    executor.start(WorkerContext(Loading(device="cpu")))
    for _ in range(executor.size):
        executor.receive()
    print("ready", flush=True)
    time.sleep(600)
