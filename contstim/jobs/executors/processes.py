"""Workers as processes of this machine, spread over its GPUs."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import socket
import subprocess
import threading
from dataclasses import dataclass
from multiprocessing import connection
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.jobs.executors.base import Answered, Died, Event, Executor, Ready

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

    from contstim.jobs.queue import WorkerTask
    from contstim.jobs.worker_context import WorkerContext

_PATIENCE = 10  # seconds for a process to vanish


@dataclass(frozen=True)
class _Worker:
    process: SpawnProcess
    pipe: Connection


class ProcessExecutor(Executor):
    """Workers are spawned processes; each has one GPU, if there are any, in turn.

    Args:
        workers: how many; None for one a GPU, or one a processor where there is no GPU.

    Raises:
        InputError: fewer than one worker.
    """

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise InputError(f"There must be 1 worker or more, not {workers}.")
        self._wanted = workers
        self._workers: dict[int, _Worker] = {}

    def start(self, context: WorkerContext) -> None:
        """See `Executor.start`."""
        self._context = context
        self._gpus = [] if context.device == "cpu" else visible_gpus()
        processors = os.cpu_count() or 1
        self.size = self._wanted or len(self._gpus) or processors
        self._threads = max(1, processors // self.size)
        for worker in range(self.size):
            self._spawn(worker)

    def _spawn(self, worker: int) -> None:
        # Workers share the processors, and take turns with the GPUs.
        environment = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(self._threads))}
        if self._gpus:
            environment["CUDA_VISIBLE_DEVICES"] = self._gpus[worker % len(self._gpus)]
        spawning = multiprocessing.get_context("spawn")
        ours, theirs = spawning.Pipe()
        process = spawning.Process(
            target=_work, args=(theirs, self._context, environment), daemon=True
        )
        process.start()
        theirs.close()
        self._workers[worker] = _Worker(process, ours)

    def send(self, worker: int, task: WorkerTask[Any]) -> None:
        """See `Executor.send`."""
        try:
            self._workers[worker].pipe.send(task)
        except OSError:
            return  # it died, which `receive` will tell

    def receive(self) -> Event:
        """See `Executor.receive`."""
        # A text, a worker's first message, says that it is ready; the end of a pipe, that it died.
        pipes = {process.pipe: worker for worker, process in self._workers.items()}
        pipe = connection.wait(list(pipes))[0]
        worker = pipes[pipe]  # type: ignore[index]
        try:
            message = self._workers[worker].pipe.recv()
        except (EOFError, OSError):
            return self._reap(worker)
        return Ready(worker, message) if isinstance(message, str) else Answered(worker, message)

    def _reap(self, worker: int) -> Died:
        """Clear away a worker that died, and start another under its number."""
        dead = self._workers.pop(worker)
        _end(dead)
        self._spawn(worker)
        exit_code = dead.process.exitcode
        if exit_code is None or exit_code >= 0:
            return Died(worker, f"exit status {exit_code}")
        name = signal.Signals(-exit_code).name
        hint = ", perhaps for want of memory" if name == "SIGKILL" else ""
        return Died(worker, f"killed by {name}{hint}")

    def replace(self, worker: int) -> None:
        """See `Executor.replace`."""
        _end(self._workers.pop(worker))
        self._spawn(worker)

    def close(self) -> None:
        """See `Executor.close`."""
        for worker in self._workers.values():
            worker.process.kill()
        for worker in self._workers.values():
            _end(worker)
        self._workers.clear()


def _end(worker: _Worker) -> None:
    worker.pipe.close()
    worker.process.join(0.5)  # one that is dying anyway then has an exit status that says why
    if worker.process.is_alive():
        worker.process.kill()
        worker.process.join(_PATIENCE)


def _work(pipe: Connection, context: WorkerContext, environment: dict[str, str]) -> None:
    """Answer tasks in a worker process until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides
    os.environ.update(environment)

    # A driver that is killed would leave its workers on the GPUs until their tasks end, but for a
    # thread that waits for that.
    driver = multiprocessing.parent_process()
    assert driver is not None
    driver_end = driver.sentinel

    def end_with_the_driver() -> None:
        connection.wait([driver_end])
        os._exit(1)

    threading.Thread(target=end_with_the_driver, daemon=True).start()
    try:
        pipe.send(f"process {os.getpid()} on {socket.gethostname()}")
        while True:
            pipe.send(context.answer(pipe.recv()))
    except (EOFError, OSError):
        return


def visible_gpus() -> list[str]:
    """What `CUDA_VISIBLE_DEVICES` may name, GPU by GPU, told without loading PyTorch.

    Empty where there is no GPU.
    """
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [gpu.strip() for gpu in named.split(",") if gpu.strip() not in ("", "-1")]
    try:
        listed = subprocess.run(
            ["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return re.findall(r"^GPU (\d+):", listed, re.MULTILINE)
