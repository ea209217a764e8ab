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
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.jobs.executors.base import Answered, Died, Event, Executor, Ready
from contstim.jobs.executors.silence import PULSE, SilenceWatch

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
    beats: Any  # a number shared with the process, which counts it up every second

    @property
    def sign_of_life(self) -> tuple[int, str]:
        """Values that change while the process lives: its beats, and the processor time it took.

        Time counts too, since a library that reads a large model may keep Python, and so the thread
        that beats, from running for minutes. Where the system does not tell it, beats alone count.
        """
        try:
            # Behind the program's name, which may hold spaces (proc(5)): the 12th and 13th value.
            told = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            told = []
        return int(self.beats.value), " ".join(told[11:13])


class ProcessExecutor(Executor):
    """Workers are spawned processes; each has one GPU, if there are any, in turn.

    Args:
        workers: how many; None for one a GPU, or one a processor where there is no GPU.
        silence: seconds without a sign of life after which a worker is taken to hang.

    Raises:
        InputError: fewer than one worker.
    """

    def __init__(self, workers: int | None = None, *, silence: float = 60) -> None:
        if workers is not None and workers < 1:
            raise InputError(f"There must be 1 worker or more, not {workers}.")
        self._wanted = workers
        self._silence = SilenceWatch(silence)
        self._workers: dict[int, _Worker] = {}

    def start(self, context: WorkerContext) -> None:
        """See `Executor.start`.

        Raises:
            InputError: a model is to be spread over several GPUs, of which each process has one.
        """
        if context.loading.device_map is not None:
            raise InputError(
                "--device-map spreads a model over several GPUs, and each process of --executor "
                "processes has one. Give --executor local, or ray with --gpus-per-worker 2 or more."
            )
        self._context = context
        self._gpus = [] if context.loading.device == "cpu" else visible_gpus()
        processors = usable_processors()
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
        # Shared memory and not a message: it waits for nobody, and nobody has to read it.
        beats = spawning.RawValue("Q", 0)
        process = spawning.Process(
            target=_work, args=(theirs, self._context, environment, beats), daemon=True
        )
        process.start()
        theirs.close()
        self._workers[worker] = _Worker(process, ours, beats)

    def send(self, worker: int, task: WorkerTask[Any]) -> None:
        """See `Executor.send`."""
        try:
            self._workers[worker].pipe.send(task)
        except OSError:
            return  # it died, which `receive` will tell

    def receive(self, timeout: float | None = None) -> Event | None:
        """See `Executor.receive`."""
        deadline = None if timeout is None else monotonic() + timeout
        while True:
            # Also where messages never cease: the others' must not hide one that hangs.
            if self._silence.due:
                signs = {number: worker.sign_of_life for number, worker in self._workers.items()}
                for worker in self._silence.look(signs):
                    self.replace(worker)
                    return Died(worker, f"no sign of life for {self._silence.limit:g} seconds")
            # A text, a worker's first message, says that it is ready; the end of a pipe, that it
            # died.
            pipes = {worker.pipe: number for number, worker in self._workers.items()}
            left = PULSE if deadline is None else min(PULSE, max(0.0, deadline - monotonic()))
            for pipe in connection.wait(list(pipes), left):
                worker = pipes[pipe]  # type: ignore[index]
                try:
                    message = self._workers[worker].pipe.recv()
                except (EOFError, OSError):
                    return self._reap(worker)
                if isinstance(message, str):
                    return Ready(worker, message)
                return Answered(worker, message)
            if deadline is not None and monotonic() >= deadline:
                return None

    def _reap(self, worker: int) -> Died:
        """Clear away a worker that died, and start another under its number."""
        dead = self._workers.pop(worker)
        dead.process.join(0.5)  # one that is dying then has an exit status that says why
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
    if worker.process.is_alive():
        worker.process.kill()  # which ends also one that was stopped
        worker.process.join(_PATIENCE)


def _work(
    pipe: Connection, context: WorkerContext, environment: dict[str, str], beats: Any
) -> None:
    """Answer tasks in a worker process until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides
    os.environ.update(environment)

    # A thread beside the tasks tells the driver that the process lives. It also waits for the
    # driver's end: a driver that is killed would leave its workers on the GPUs until their tasks
    # end.
    driver = multiprocessing.parent_process()
    assert driver is not None
    driver_end = driver.sentinel

    def beat_until_the_driver_ends() -> None:
        while not connection.wait([driver_end], PULSE):
            beats.value += 1
        os._exit(1)

    threading.Thread(target=beat_until_the_driver_ends, daemon=True).start()
    try:
        pipe.send(f"process {os.getpid()} on {socket.gethostname()}")
        while True:
            pipe.send(context.answer(pipe.recv()))
    except (EOFError, OSError):
        return


def usable_processors() -> int:
    """Number of processors that this process may use, which a cluster's job may limit."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def visible_gpus() -> list[str]:
    """Names of the GPUs for `CUDA_VISIBLE_DEVICES`, one by one, found without loading PyTorch.

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
