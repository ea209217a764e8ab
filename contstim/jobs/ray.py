"""Workers as actors on a Ray cluster, or on this machine where none is named."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from contstim.errors import InputError, WorkerError, needing
from contstim.jobs import watcher
from contstim.jobs.in_process import checked_number
from contstim.jobs.pool import Event, Executor
from contstim.jobs.worker_context import Reply

if TYPE_CHECKING:
    from contstim.jobs.worker_context import WorkerContext, WorkerTask


_PATIENCE = 10  # seconds for a cluster to answer


class RayExecutor(Executor):
    """Workers are actors that Ray places where there is room.

    Args:
        workers: how many; None for as many as there are GPUs (or shares of them), or processors.
        gpus_per_worker: the share of a GPU that each needs, such as 0.5; None for one whole GPU
            where the cluster has any.
        address: of a cluster, `auto` for the one that this machine belongs to; None to start one
            here, unless the environment variable RAY_ADDRESS names one.
        silence: seconds after which a worker that does not answer is taken to hang. More than for
            processes: over a network nobody tells whether it works, and a library that reads a
            large model may keep it from answering.

    Raises:
        InputError: fewer than one worker, or a negative share.
        WorkerError: Ray is not installed.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        gpus_per_worker: float | None = None,
        address: str | None = None,
        silence: float = 300,
    ) -> None:
        self._wanted = checked_number(workers)
        if gpus_per_worker is not None and gpus_per_worker < 0:
            raise InputError(f"`gpus_per_worker` must be 0 or more, not {gpus_per_worker}.")
        with needing("ray", "The executor ray"):
            import ray
        self._ray: Any = ray
        self._share, self._address, self.silence = gpus_per_worker, address, silence
        self._started_ray = False
        self._watcher: subprocess.Popen[bytes] | None = None
        self._actors: dict[int, Any] = {}
        self._pending: dict[Any, int] = {}  # the worker of each answer to come, by Ray's reference
        self._processes: dict[int, tuple[str, int]] = {}  # of workers that are ready: node, number
        self._beats: dict[int, Any] = {}  # the answer to come when each was last asked for a sign

    def start(self, context: WorkerContext) -> None:
        """See `Executor.start`.

        Raises:
            WorkerError: the cluster cannot be reached.
            InputError: it has not the processors or GPUs for so many workers.
        """
        self._connect()
        has = self._ray.cluster_resources()
        gpus, processors = float(has.get("GPU", 0)), int(has.get("CPU", 1))
        share = self._share
        if share is None:
            share = 1.0 if gpus and context.loading.device != "cpu" else 0.0
        # A worker takes one processor and its share of a GPU.
        room = min(processors, int(gpus / share)) if share else processors
        self.size = self._wanted or max(room, 1)
        if self.size > room:
            raise InputError(
                f"{self.size} workers with {share:g} GPUs each do not fit: the cluster has "
                f"{processors} processors and {gpus:g} GPUs, room for {room}. Lower `workers` or "
                f"`gpus_per_worker`."
            )
        self._context = context
        # A thread of its own answers while another does a task.
        self._actor_class = self._ray.remote(
            num_cpus=1, num_gpus=share, max_restarts=0, concurrency_groups={"beat": 1}
        )(_Actor)

    def _connect(self) -> None:
        if self._ray.is_initialized():
            return
        address = self._address or os.environ.get("RAY_ADDRESS")
        where: dict[str, Any] = {"address": address}
        if not address:
            where = {"address": "local", "include_dashboard": False}
            if self._wanted:
                where["num_cpus"] = max(self._wanted, os.cpu_count() or 1)
            self._watch()
        try:
            _knock(address or "")
            ray = self._ray.init(log_to_driver=False, logging_level=logging.ERROR, **where)
        except Exception as error:  # a start that takes too long raises no class of its own
            self._unwatch()
            raise WorkerError(
                f"Cannot reach or start Ray at {address or 'this machine'} ({_first_line(error)}). "
                f"Start it with 'ray start --head', or name no address to have it started here."
            ) from error
        self._started_ray = True
        if self._watcher is not None and self._watcher.stdin is not None:
            self._watcher.stdin.write(f"{ray.address_info['session_dir']}\n".encode())
            self._watcher.stdin.flush()

    def _watch(self) -> None:
        """See to it that the processes of a Ray started here end with this one, however it ends.

        Ray itself leaves most of them behind when its driver is killed.
        """
        mark = uuid4().hex
        self._watcher = subprocess.Popen(
            [sys.executable, watcher.__file__, mark],
            stdin=subprocess.PIPE,
            start_new_session=True,  # an interrupt from the keyboard is not for it
        )
        os.environ[watcher.VARIABLE] = mark

    def _unwatch(self) -> None:
        if self._watcher is not None:
            os.environ.pop(watcher.VARIABLE, None)
            self._watcher.communicate(watcher.DONE)
            self._watcher = None

    def spawn(self, worker: int) -> None:
        """See `Executor.spawn`."""
        actor = self._actor_class.remote(self._context.fresh())
        self._actors[worker] = actor
        self._pending[actor.place.remote()] = worker

    def send(self, worker: int, task: WorkerTask[Any]) -> None:
        """See `Executor.send`."""
        self._pending[self._actors[worker].answer.remote(task)] = worker

    def wait(self, timeout: float) -> Event | None:
        """See `Executor.wait`."""
        references, _ = self._ray.wait(list(self._pending), num_returns=1, timeout=timeout)
        for reference in references:
            worker = self._pending.pop(reference)
            try:
                message = self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                self._processes.pop(worker, None)
                return worker, WorkerError(_first_line(error))
            if isinstance(message, Reply):
                return worker, message
            # A worker's first answer, from `place`, says that it is ready.
            node, host, process = message
            self._processes[worker] = node, process
            return worker, f"process {process} on {host}"
        return None

    def signs_of_life(self) -> dict[int, object]:
        """For each worker that is ready the question that it answers next, a new one each time."""
        for worker in self._processes:
            asked = self._beats.get(worker)
            if asked is None or self._ray.wait([asked], timeout=0)[0]:
                beat = self._actors[worker].beat.options(concurrency_group="beat")
                self._beats[worker] = beat.remote()
        return dict(self._beats)

    def end(self, worker: int) -> None:
        """See `Executor.end`."""
        self._ray.kill(self._actors.pop(worker))
        place = self._processes.pop(worker, None)
        if place is not None:
            # Ray asks an actor to end, which one that was stopped cannot do: a program on its
            # machine ends it, so that there is room for the next.
            node, process = place
            there = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, False)
            kill = self._ray.remote(num_cpus=0, max_retries=0)(_kill)
            kill.options(scheduling_strategy=there).remote(process)
        self._pending = {wait: number for wait, number in self._pending.items() if number != worker}
        self._beats.pop(worker, None)

    def close(self) -> None:
        """See `Executor.close`."""
        for actor in self._actors.values():
            self._ray.kill(actor)
        for waiting in (self._actors, self._pending, self._processes, self._beats):
            waiting.clear()
        if self._started_ray:
            self._ray.shutdown()
            self._started_ray = False
        self._unwatch()


class _Actor:
    """A worker's context in a process that Ray starts."""

    def __init__(self, context: WorkerContext) -> None:
        self._context = context

    def place(self) -> tuple[str, str, int]:
        """Node, host and process."""
        import ray

        return ray.get_runtime_context().get_node_id(), socket.gethostname(), os.getpid()

    def beat(self) -> None:
        """Answer, which a process that was stopped does not."""

    def answer(self, task: WorkerTask[Any]) -> Reply:
        return self._context.answer(task)


def _kill(process: int) -> None:
    """End a process on the machine on which this runs."""
    with suppress(ProcessLookupError):
        # Windows has no SIGKILL; any signal ends a process there
        os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))


def _knock(address: str) -> None:
    """Ask once whether somebody listens; Ray itself would keep a user waiting for minutes.

    Raises:
        OSError: nobody does.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(". ")
