"""A pool of workers and its loop: assign tasks, receive results, replace failed workers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from contstim.errors import ContstimError, WorkerError
from contstim.jobs.worker_context import Reply, WorkerContext, WorkerTask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


TaskT = TypeVar("TaskT", bound=WorkerTask[Any])

PULSE = 1.0
"""Seconds between two heartbeats (signs of life) of a worker, and between two checks for them."""

_FALSE_STARTS = 3  # the job fails if this many workers in succession die before they are ready


class TaskQueue(ABC, Generic[TaskT]):
    """Tasks for workers, and methods that receive the results of these tasks.

    For each task that `take` returns, the pool calls `done` or `failed` once.
    """

    @property
    @abstractmethod
    def finished(self) -> bool:
        """True if no task is waiting or running."""

    @abstractmethod
    def take(self, loaded: Sequence[str]) -> TaskT | None:
        """Return a worker's next task, given its `loaded` models; None if no task is ready."""

    @abstractmethod
    def done(self, task: TaskT, result: Any) -> None:
        """Receive the result of a task."""

    def tick(self) -> None:
        """Report progress; the pool calls this method every second while no task ends."""

    @abstractmethod
    def failed(self, task: TaskT, error: ContstimError, attempt: int) -> None:
        """Receive a task that has failed `attempt` times; `take` may return it again."""


Event: TypeAlias = tuple[int, str | Reply | WorkerError]
"""Number of a worker, and a message.

A text (machine and process) means that the worker is ready for its first task. A `Reply` has the
result or the error of the worker's task. A `WorkerError` means that the worker died or hung.
"""


class Executor(ABC):
    """A way to spawn workers, each with a separate context (options and loaded models).

    Guarantees of an implementation, proved by the contract test class:

    * Each worker reports once that it is ready, before its first task.
    * Each worker performs one task at a time.
    * Each task causes exactly one event: a `Reply` or the death of the worker. The only exception
      is a task whose worker is ended by `end`: it causes no event.
    * A new worker has no loaded models, and does not disturb other workers.
    * A worker in another process has a heartbeat, a regular sign of life, in a separate thread. The
      heartbeat continues during a long task, and stops if the process is suspended.
    * After `shutdown`, no process of a worker is left, busy or not.
    """

    size: int
    """Number of workers, known after `start`; workers are numbered from 0."""

    shares_models: bool = False
    """Whether workers share loaded models; sharing makes concurrent tasks of one model faster."""

    silence: float = inf
    """Seconds without a sign of life after which a worker is assumed to hang."""

    @abstractmethod
    def start(self, context: WorkerContext) -> None:
        """Prepare for workers; each worker gets a copy of the context.

        Raises:
            ContstimError: if workers cannot be started here.
        """

    @abstractmethod
    def spawn(self, worker: int) -> None:
        """Start a worker with a free number."""

    @abstractmethod
    def send(self, worker: int, task: WorkerTask[Any]) -> None:
        """Send a task to an idle worker."""

    @abstractmethod
    def wait(self, timeout: float) -> Event | None:
        """Wait for the next event, at most `timeout` seconds; return None if there is no event.

        A worker in this process cannot be interrupted, so the wait may be longer than `timeout`.
        """

    def signs_of_life(self) -> Mapping[int, object]:
        """Return worker → a value that changes as long as the worker lives.

        The result may lack workers in this process, and workers that are not ready yet.
        """
        return {}

    @abstractmethod
    def end(self, worker: int) -> None:
        """End a worker, idle or busy, and free its number."""

    @abstractmethod
    def shutdown(self) -> None:
        """End all workers."""


@contextmanager
def worker_pool(
    executor: Executor,
    context: WorkerContext,
    *,
    say: Callable[[str], None] = lambda _text: None,
    task_limit: float | None = None,
) -> Iterator[Pool]:
    """Start workers, and end them at the end of the `with` statement.

    `context` is the initial context of every worker. `say` receives messages to the user, for
    example about the death of a worker. A worker is replaced if its task takes longer than
    `task_limit` seconds.

    Raises:
        ContstimError: if workers cannot be started here.
    """
    try:
        executor.start(context)
        for worker in range(executor.size):
            executor.spawn(worker)
        yield Pool(executor, say, inf if task_limit is None else task_limit)
    finally:
        executor.shutdown()


@dataclass
class _Worker:
    """A worker that has reported ready.

    Attributes:
        address: machine and process.
        loaded: specifications of its loaded models.
    """

    address: str
    loaded: tuple[str, ...] = ()
    task: WorkerTask[Any] | None = None
    deadline: float = inf


class Pool:
    """Workers that perform the tasks of queues, one queue after the other; see `worker_pool`."""

    def __init__(self, executor: Executor, say: Callable[[str], None], task_limit: float) -> None:
        self.executor, self._say, self._limit = executor, say, task_limit
        self._workers: dict[int, _Worker] = {}
        # Worker → its sign of life, and seconds since the sign changed
        self._signs: dict[int, tuple[object, float]] = {}
        self._last_check = monotonic()
        self._false_starts = 0
        self._attempts: Counter[WorkerTask[Any]] = Counter()

    def work_off(self, queue: TaskQueue[Any]) -> None:
        """Perform all tasks of a queue.

        A worker is replaced if it dies, hangs, fails unexpectedly, or exceeds the time limit of a
        task.

        Raises:
            WorkerError: if workers repeatedly die before they are ready.
        """
        while not queue.finished:
            for number, worker in sorted(self._workers.items()):
                if worker.task is None and (task := queue.take(worker.loaded)) is not None:
                    worker.task, worker.deadline = task, monotonic() + self._limit
                    self.executor.send(number, task)
            next_deadline = min((worker.deadline for worker in self._workers.values()), default=inf)
            match self.receive(min(PULSE, max(0.0, next_deadline - monotonic()))):
                case None:
                    queue.tick()
                case number, str(address):
                    self._false_starts = 0
                    self._workers[number] = _Worker(address)
                case number, Reply() as reply:
                    self._on_reply(number, reply, queue)
                case number, WorkerError() as death:
                    self._on_death(number, str(death), queue)
            # Check deadlines after the event, so that a result that arrived in time is used
            late = [n for n, worker in self._workers.items() if worker.deadline < monotonic()]
            for number in late:
                self.replace(number)
                reason = f"its task took longer than the `task_timeout` of {self._limit:g} seconds"
                self._on_death(number, reason, queue)

    def receive(self, timeout: float = inf) -> Event | None:
        """Wait for the next event, and replace a worker that died or hung.

        Return None if there is no event within `timeout` seconds.
        """
        deadline = monotonic() + timeout
        while True:
            for worker in self.silent_workers():
                self.replace(worker)
                reason = f"no sign of life for {self.executor.silence:g} seconds"
                return worker, WorkerError(reason)
            event = self.executor.wait(min(PULSE, max(0.0, deadline - monotonic())))
            if event is not None:
                if isinstance(event[1], WorkerError):
                    self.replace(event[0])
                return event
            if monotonic() >= deadline:
                return None

    def silent_workers(self) -> list[int]:
        """Return the workers without a sign of life for more than `Executor.silence` seconds.

        Check at most once a second; between checks, return no workers. Time between two checks
        counts as at most two seconds. If more time has passed, this process was busy or suspended,
        so a missing sign of life does not show that a worker hangs.
        """
        now = monotonic()
        if now - self._last_check < PULSE:
            return []
        elapsed, self._last_check = min(now - self._last_check, 2 * PULSE), now
        previous, self._signs = self._signs, {}
        for worker, sign in self.executor.signs_of_life().items():
            last, quiet = previous.get(worker, (None, 0.0))
            self._signs[worker] = sign, quiet + elapsed if sign == last else 0.0
        limit = self.executor.silence
        return [worker for worker, (_, seconds) in self._signs.items() if seconds > limit]

    def replace(self, worker: int) -> None:
        """End a worker, and start a new worker with the same number."""
        self.executor.end(worker)
        self.executor.spawn(worker)

    def _on_reply(self, number: int, reply: Reply, queue: TaskQueue[Any]) -> None:
        worker = self._workers[number]
        task, worker.task, worker.deadline = worker.task, None, inf
        assert task is not None
        worker.loaded = reply.loaded
        if reply.error is None:
            self._attempts.pop(task, None)
            queue.done(task, reply.result)
        else:
            self._on_failure(task, reply.error, queue)
        # Replace the worker after an unexpected error (see `Reply`): its GPU may fail again
        if type(reply.error) is ContstimError:
            error = str(reply.error).rstrip(".")
            self._say(f"Worker {number} ({worker.address}) is replaced: {error}.")
            del self._workers[number]
            self.replace(number)

    def _on_death(self, number: int, reason: str, queue: TaskQueue[Any]) -> None:
        # The worker has already been replaced
        worker = self._workers.pop(number, None)
        if worker is None:  # it died before it was ready
            self._false_starts += 1
            if self._false_starts == _FALSE_STARTS:
                raise WorkerError(f"Workers die before they are ready ({reason}).")
            return
        self._say(f"Worker {number} ({worker.address}) is replaced: {reason}.")
        if worker.task is not None:
            self._on_failure(worker.task, WorkerError(f"its worker was lost: {reason}"), queue)

    def _on_failure(
        self, task: WorkerTask[Any], error: ContstimError, queue: TaskQueue[Any]
    ) -> None:
        self._attempts[task] += 1
        queue.failed(task, error, self._attempts[task])
