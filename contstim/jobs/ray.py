"""Workers as actors (processes that Ray manages).

Actors run on a Ray cluster, or on this machine if the variable `RAY_ADDRESS` is not set.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from typing import Any
from uuid import uuid4

from contstim.errors import InputError, WorkerError, needing
from contstim.jobs import watcher
from contstim.jobs.in_process import check_worker_count
from contstim.jobs.pool import Event, Executor
from contstim.jobs.worker_context import Reply, WorkerContext, WorkerTask

_PATIENCE = 10  # seconds to wait for a connection to the cluster


class RayExecutor(Executor):
    """Workers as actors that Ray assigns to machines.

    The environment variable `RAY_ADDRESS` is the address of a cluster, or `auto` for a running
    cluster on this machine. If the variable is not set, a cluster is started on this machine.

    Args:
        workers: number of workers. None means the largest number for which the cluster has enough
            GPUs and processors.
        gpus_per_worker: number of GPUs for each worker, or a fraction such as 0.5. None means 1 if
            the cluster has GPUs and the device is not `cpu`, otherwise 0.
        silence: seconds without a sign of life after which a worker is assumed to hang. A library
            that reads a large model may block the heartbeat for minutes. `ProcessExecutor` then
            uses processor time as a sign of life. On a cluster, the processor time is unknown. So
            the default is longer than that of `ProcessExecutor`.

    Raises:
        InputError: if there is fewer than one worker, or `gpus_per_worker` is negative.
        WorkerError: if Ray is not installed.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        gpus_per_worker: float | None = None,
        silence: float = 300,
    ) -> None:
        self._requested = check_worker_count(workers)
        if gpus_per_worker is not None and gpus_per_worker < 0:
            raise InputError(f"`gpus_per_worker` must be 0 or more, not {gpus_per_worker}.")
        with needing("ray", "The executor ray"):
            import ray
        self._ray: Any = ray
        self._share, self.silence = gpus_per_worker, silence
        self._started_ray = False
        self._watcher: subprocess.Popen[bytes] | None = None
        self._actors: dict[int, Any] = {}
        self._pending: dict[Any, int] = {}  # Ray's reference to a pending answer -> worker
        self._processes: dict[int, tuple[str, int]] = {}  # ready worker -> node, process number
        self._beats: dict[int, Any] = {}  # worker -> Ray's reference to its pending heartbeat

    def start(self, context: WorkerContext) -> None:
        """See `Executor.start`.

        Raises:
            WorkerError: if the cluster cannot be reached, or Ray cannot be started here.
            InputError: if the cluster has too few processors or GPUs for the workers.
        """
        self._connect()
        resources = self._ray.cluster_resources()
        gpus, processors = float(resources.get("GPU", 0)), int(resources.get("CPU", 1))
        share = self._share
        if share is None:
            share = 1.0 if gpus and context.loading.device != "cpu" else 0.0
        # Each worker occupies one processor
        room = min(processors, int(gpus / share)) if share else processors
        self.size = self._requested or max(room, 1)
        if self.size > room:
            raise InputError(
                f"{self.size} workers with {share:g} GPUs each do not fit: the cluster has "
                f"{processors} processors and {gpus:g} GPUs, enough for {room} workers. Lower "
                f"`workers` or `gpus_per_worker`."
            )
        self._context = context
        # The concurrency group "beat" is a separate thread, so heartbeats continue during a task
        self._actor_class = self._ray.remote(
            num_cpus=1, num_gpus=share, max_restarts=0, concurrency_groups={"beat": 1}
        )(_Actor)

    def _connect(self) -> None:
        if self._ray.is_initialized():
            return
        address = os.environ.get("RAY_ADDRESS", "")
        options: dict[str, Any] = {"address": address}
        if not address:
            options = {"address": "local", "include_dashboard": False}
            if self._requested:
                options["num_cpus"] = max(self._requested, os.cpu_count() or 1)
            self._watch()
        try:
            _check_connection(address)
            ray = self._ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
        except Exception as error:  # for some failures, Ray raises `Exception` itself
            self._unwatch()
            remedy = "unset RAY_ADDRESS to start Ray here" if address else "use another executor"
            raise WorkerError(
                f"Cannot reach or start Ray at {address or 'this machine'} ({_first_line(error)}). "
                f"Start a cluster with 'ray start --head', or {remedy}."
            ) from error
        self._started_ray = True
        if self._watcher is not None and self._watcher.stdin is not None:
            self._watcher.stdin.write(f"{ray.address_info['session_dir']}\n".encode())
            self._watcher.stdin.flush()

    def _watch(self) -> None:
        """Start a program that kills the processes of a local Ray when this process is killed.

        Ray itself would leave most of its processes running.
        """
        mark = uuid4().hex
        self._watcher = subprocess.Popen(
            [sys.executable, watcher.__file__, mark],
            stdin=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C must not end the watcher
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
        self._pending[actor.locate.remote()] = worker

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
            # The first answer of an actor comes from `locate`
            node, host, process = message
            self._processes[worker] = node, process
            return worker, f"process {process} on {host}"
        return None

    def signs_of_life(self) -> dict[int, object]:
        """Return ready worker → pending heartbeat, a request that the worker has not answered yet.

        A heartbeat that the worker has answered is replaced by a new heartbeat.
        """
        for worker in self._processes:
            heartbeat = self._beats.get(worker)
            if heartbeat is None or self._ray.wait([heartbeat], timeout=0)[0]:
                beat = self._actors[worker].beat.options(concurrency_group="beat")
                self._beats[worker] = beat.remote()
        return dict(self._beats)

    def end(self, worker: int) -> None:
        """See `Executor.end`."""
        self._ray.kill(self._actors.pop(worker))
        process_location = self._processes.pop(worker, None)
        if process_location is not None:
            # Ray only asks the process to exit, but a suspended process cannot exit. So a task on
            # the same machine kills the process
            node, process = process_location
            strategies = self._ray.util.scheduling_strategies
            affinity = strategies.NodeAffinitySchedulingStrategy(node, False)
            kill = self._ray.remote(num_cpus=0, max_retries=0)(_kill)
            kill.options(scheduling_strategy=affinity).remote(process)
        self._pending = {wait: number for wait, number in self._pending.items() if number != worker}
        self._beats.pop(worker, None)

    def shutdown(self) -> None:
        """See `Executor.shutdown`."""
        for actor in self._actors.values():
            self._ray.kill(actor)
        for mapping in (self._actors, self._pending, self._processes, self._beats):
            mapping.clear()
        if self._started_ray:
            self._ray.shutdown()
            self._started_ray = False
        self._unwatch()


class _Actor:
    """A worker's context in a process that Ray starts."""

    def __init__(self, context: WorkerContext) -> None:
        self._context = context

    def locate(self) -> tuple[str, str, int]:
        # Node, host, process number
        import ray

        return ray.get_runtime_context().get_node_id(), socket.gethostname(), os.getpid()

    def beat(self) -> None:
        """Answer a heartbeat."""

    def answer(self, task: WorkerTask[Any]) -> Reply:
        return self._context.answer(task)


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        # On Windows, which has no SIGKILL, any signal ends a process
        os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))


def _check_connection(address: str) -> None:
    """Try to connect once, because Ray itself would try for minutes.

    Raises:
        OSError: if the connection fails.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(". ")
