"""Workers as processes on this machine, distributed over its GPUs."""

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
from contstim.jobs.in_process import check_worker_count
from contstim.jobs.pool import PULSE, Event, Executor

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

    from contstim.jobs.worker_context import WorkerContext, WorkerTask

_PATIENCE = 10  # seconds to wait for the end of a process


class ProcessExecutor(Executor):
    """Workers as spawned processes on this machine.

    If there are GPUs and the device is not `cpu`, each worker uses one GPU. Several workers may use
    the same GPU.

    Args:
        workers: number of workers. None means one worker per GPU or, without GPUs, one worker per
            processor.
        silence: seconds without a sign of life after which a worker is assumed to hang.

    Raises:
        InputError: if there is fewer than one worker.
    """

    def __init__(self, workers: int | None = None, *, silence: float = 60) -> None:
        self._requested = check_worker_count(workers)
        self.silence = silence
        self._processes: dict[int, SpawnProcess] = {}
        self._pipes: dict[int, Connection] = {}
        self._beats: dict[int, Any] = {}  # counters that processes increase every second

    def start(self, context: WorkerContext) -> None:
        """See `Executor.start`.

        Raises:
            InputError: if `device_map` is set, because each process uses only one GPU.
        """
        if context.loading.device_map is not None:
            raise InputError(
                "`device_map` distributes a model over several GPUs, but with `executor` "
                "processes, each worker uses only one GPU. Set `executor` to local, or to "
                "ray with `gpus_per_worker` of at least 2."
            )
        self._context = context
        self._gpus = [] if context.loading.device == "cpu" else visible_gpus()
        processors = usable_processors()
        self.size = self._requested or len(self._gpus) or processors
        self._threads = max(1, processors // self.size)

    def spawn(self, worker: int) -> None:
        """See `Executor.spawn`."""
        environment = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(self._threads))}
        if self._gpus:
            environment["CUDA_VISIBLE_DEVICES"] = self._gpus[worker % len(self._gpus)]
        spawning = multiprocessing.get_context("spawn")
        ours, theirs = spawning.Pipe()
        # Heartbeats are counted in shared memory, because sending messages can block
        beats = spawning.RawValue("Q", 0)
        process = spawning.Process(
            target=_work, args=(theirs, self._context, environment, beats), daemon=True
        )
        process.start()
        theirs.close()
        self._processes[worker], self._pipes[worker], self._beats[worker] = process, ours, beats

    def send(self, worker: int, task: WorkerTask[Any]) -> None:
        """See `Executor.send`."""
        with suppress(OSError):  # the process has died; `wait` will report it
            self._pipes[worker].send(task)

    def wait(self, timeout: float) -> Event | None:
        """See `Executor.wait`."""
        pipes = {pipe: number for number, pipe in self._pipes.items()}
        # A worker sends a text when it is ready, then a `Reply` after each task. If the worker has
        # died, its pipe is closed
        for pipe in connection.wait(list(pipes), timeout):
            number = pipes[pipe]  # type: ignore[index]
            try:
                return number, self._pipes[number].recv()
            except (EOFError, OSError):
                return number, WorkerError(self._exit_reason(number))
        return None

    def _exit_reason(self, worker: int) -> str:
        process = self._processes[worker]
        process.join(0.5)  # wait, because a dying process may have no exit status yet
        exit_code = process.exitcode
        if exit_code is None or exit_code >= 0:
            return f"exit status {exit_code}"
        name = signal.Signals(-exit_code).name
        return f"killed by {name}" + (", perhaps for lack of memory" * (name == "SIGKILL"))

    def signs_of_life(self) -> dict[int, object]:
        """Return the heartbeats and the processor time of each process.

        Heartbeats alone are not sufficient: a library that reads a large model may block all Python
        threads of a process for minutes. The processor time of this process still increases. On
        systems without /proc, the result has only heartbeats.
        """
        signs: dict[int, object] = {}
        for number, process in self._processes.items():
            fields: list[str] = []
            with suppress(OSError):
                # The times are the 12th and 13th value after the last parenthesis, see proc(5)
                fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            signs[number] = int(self._beats[number].value), *fields[11:13]
        return signs

    def end(self, worker: int) -> None:
        """See `Executor.end`."""
        del self._beats[worker]
        self._pipes.pop(worker).close()
        process = self._processes.pop(worker)
        process.kill()  # also ends a suspended process
        process.join(_PATIENCE)

    def shutdown(self) -> None:
        """See `Executor.shutdown`."""
        for process in self._processes.values():
            process.kill()
        for number in [*self._processes]:
            self.end(number)


def _work(
    pipe: Connection, context: WorkerContext, environment: dict[str, str], beats: Any
) -> None:
    # The driver, the process that started the workers, handles interrupts. Workers ignore them
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(environment)

    # A separate thread counts heartbeats. When the driver ends, the thread ends this process.
    # Otherwise, workers of a killed driver would occupy the GPUs until their tasks end
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
    """Return the number of processors that this process may use.

    A cluster may limit a job to some of a machine's processors.
    """
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def visible_gpus() -> list[str]:
    """Return the GPUs as `CUDA_VISIBLE_DEVICES` names them, without loading PyTorch."""
    variable = os.environ.get("CUDA_VISIBLE_DEVICES")
    if variable is not None:
        return [gpu.strip() for gpu in variable.split(",") if gpu.strip() not in ("", "-1")]
    try:
        output = subprocess.run(
            ["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return re.findall(r"^GPU (\d+):", output, re.MULTILINE)
