"""Workers as processes of this machine, spread over its GPUs."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
from dataclasses import dataclass
from multiprocessing import connection
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.optimization.jobs.executors.base import Answered, Died, Event, Executor, Ready
from contstim.optimization.jobs.executors.gpus import visible_gpus

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

    from contstim.optimization.jobs.bench import Bench, Task

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
        self._crew: dict[int, _Worker] = {}

    def start(self, bench: Bench) -> None:
        """See `Executor.start`."""
        self._bench = bench
        self._gpus = [] if bench.device == "cpu" else visible_gpus()
        processors = os.cpu_count() or 1
        self.size = self._wanted or len(self._gpus) or processors
        self._threads = max(1, processors // self.size)
        for worker in range(self.size):
            self._hire(worker)

    def _hire(self, worker: int) -> None:
        surroundings = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(self._threads))}
        if self._gpus:
            surroundings["CUDA_VISIBLE_DEVICES"] = self._gpus[worker % len(self._gpus)]
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_work, args=(theirs, self._bench, surroundings), daemon=True
        )
        process.start()
        theirs.close()
        self._crew[worker] = _Worker(process, ours)

    def send(self, worker: int, task: Task) -> None:
        """See `Executor.send`."""
        try:
            self._crew[worker].pipe.send(task)
        except OSError:
            return  # it died, which `receive` will tell

    def receive(self) -> Event:
        """See `Executor.receive`."""
        pipes = {member.pipe: worker for worker, member in self._crew.items()}
        pipe = connection.wait(list(pipes))[0]
        worker = pipes[pipe]  # type: ignore[index]
        try:
            message = self._crew[worker].pipe.recv()
        except (EOFError, OSError):
            return self._bury(worker)
        return Ready(worker, message) if isinstance(message, str) else Answered(worker, message)

    def _bury(self, worker: int) -> Died:
        member = self._crew.pop(worker)
        _end(member)
        self._hire(worker)
        return Died(worker, _reason(member.process.exitcode))

    def replace(self, worker: int) -> None:
        """See `Executor.replace`."""
        _end(self._crew.pop(worker))
        self._hire(worker)

    def close(self) -> None:
        """See `Executor.close`."""
        for member in self._crew.values():
            member.process.kill()
        for member in self._crew.values():
            _end(member)
        self._crew.clear()


def _end(member: _Worker) -> None:
    member.pipe.close()
    member.process.join(0.5)  # one that is dying anyway tells why
    if member.process.is_alive():
        member.process.kill()
        member.process.join(_PATIENCE)


def _reason(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        name = signal.Signals(-exit_code).name
        hint = ", perhaps for want of memory" if name == "SIGKILL" else ""
        return f"killed by {name}{hint}"
    return f"exit status {exit_code}"


def _work(pipe: Connection, bench: Bench, surroundings: dict[str, str]) -> None:
    """What a worker process does: answer tasks until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides
    os.environ.update(surroundings)
    _die_with_the_driver()
    try:
        pipe.send(f"process {os.getpid()} on {socket.gethostname()}")
        while True:
            pipe.send(bench.answer(pipe.recv()))
    except (EOFError, OSError):
        return


def _die_with_the_driver() -> None:
    """Else a driver that is killed would leave its workers on the GPUs until their tasks end."""
    driver = multiprocessing.parent_process()
    assert driver is not None

    def watch() -> None:
        connection.wait([driver.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
