"""Workers as processes of this machine, spread over its GPUs."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import socket
import subprocess
import threading
from contextlib import suppress
from multiprocessing import connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError, WorkerError
from contstim.jobs.in_process import checked_number
from contstim.jobs.pool import PULSE, Event, Executor

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

    from contstim.jobs.worker_context import WorkerContext, WorkerTask

_PATIENCE = 10  # seconds for a process to vanish


class ProcessExecutor(Executor):
    """Workers are spawned processes; each has one GPU, if there are any, in turn.

    Args:
        workers: how many; None for one a GPU, or one a processor where there is no GPU.
        silence: seconds without a sign of life after which a worker is taken to hang.

    Raises:
        InputError: fewer than one worker.
    """

    def __init__(self, workers: int | None = None, *, silence: float = 60) -> None:
        self._wanted = checked_number(workers)
        self.silence = silence
        self._processes: dict[int, SpawnProcess] = {}
        self._pipes: dict[int, Connection] = {}
        self._beats: dict[int, Any] = {}  # numbers that processes count up every second

    def start(self, context: WorkerContext) -> None:
        """See `Executor.start`.

        Raises:
            InputError: a model is to be spread over several GPUs, of which each process has one.
        """
        if context.loading.device_map is not None:
            raise InputError(
                "`device_map` spreads a model over several GPUs, and each process has one. Take "
                "the executor local, or ray with `gpus_per_worker` of 2 or more."
            )
        self._context = context
        self._gpus = [] if context.loading.device == "cpu" else visible_gpus()
        processors = usable_processors()
        self.size = self._wanted or len(self._gpus) or processors
        self._threads = max(1, processors // self.size)

    def spawn(self, worker: int) -> None:
        """See `Executor.spawn`."""
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
        self._processes[worker], self._pipes[worker], self._beats[worker] = process, ours, beats

    def send(self, worker: int, task: WorkerTask[Any]) -> None:
        """See `Executor.send`."""
        with suppress(OSError):  # it died, which `receive` will tell
            self._pipes[worker].send(task)

    def wait(self, timeout: float) -> Event | None:
        """See `Executor.wait`."""
        pipes = {pipe: number for number, pipe in self._pipes.items()}
        # A text, a worker's first message, says that it is ready; the end of a pipe, that it died.
        for pipe in connection.wait(list(pipes), timeout):
            number = pipes[pipe]  # type: ignore[index]
            try:
                return number, self._pipes[number].recv()
            except (EOFError, OSError):
                return number, WorkerError(self._why(number))
        return None

    def _why(self, worker: int) -> str:
        """The reason of which a process died."""
        process = self._processes[worker]
        process.join(0.5)  # one that is dying then has an exit status
        exit_code = process.exitcode
        if exit_code is None or exit_code >= 0:
            return f"exit status {exit_code}"
        name = signal.Signals(-exit_code).name
        return f"killed by {name}" + (", perhaps for want of memory" * (name == "SIGKILL"))

    def signs_of_life(self) -> dict[int, object]:
        """See `Executor.signs_of_life`: the beats of processes, and the processor time they took.

        Time counts too, since a library that reads a large model may keep Python, and so the thread
        that beats, from running for minutes. Where the system does not tell it, beats alone count.
        """
        signs: dict[int, object] = {}
        for number, process in self._processes.items():
            told: list[str] = []
            with suppress(OSError):
                # Behind the program's name, which may hold spaces (proc(5)): 12th and 13th value
                told = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            signs[number] = int(self._beats[number].value), *told[11:13]
        return signs

    def end(self, worker: int) -> None:
        """See `Executor.end`."""
        del self._beats[worker]
        self._pipes.pop(worker).close()
        process = self._processes.pop(worker)
        process.kill()  # which ends also one that was stopped
        process.join(_PATIENCE)

    def close(self) -> None:
        """See `Executor.close`."""
        for process in self._processes.values():
            process.kill()
        for number in [*self._processes]:
            self.end(number)


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
