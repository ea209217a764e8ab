"""A program that starts Ray with two workers and waits until it is killed."""

import time

from contstim.jobs.pool import worker_pool
from contstim.jobs.ray import RayExecutor
from contstim.jobs.worker_context import WorkerContext
from contstim.models.loading import Loading

if __name__ == "__main__":
    with worker_pool(RayExecutor(2), WorkerContext(Loading(device="cpu"))) as pool:
        for _ in range(2):
            pool.receive()
        print("ready", flush=True)
        time.sleep(600)
