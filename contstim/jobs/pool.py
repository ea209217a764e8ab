"""A pool of workers, and its loop: hand out tasks, receive results, replace what fails."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from contstim.errors import WorkerError
from contstim.jobs.worker_context import Reply, WorkerTask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contstim.errors import ContstimError
    from contstim.jobs.worker_context import WorkerContext

TaskT = TypeVar("TaskT", bound=WorkerTask[Any])

PULSE = 1.0
"""Seconds between two beats of a worker, and between two looks at them."""

_FALSE_STARTS = 3  # workers that die in a row before any is ready, until the job is given up


class TaskQueue(ABC, Generic[TaskT]):
    """Tasks for workers, and what becomes of them.

    Every task that is taken comes back once, by `done` or by `failed`.
    """

    @property
    @abstractmethod
    def finished(self) -> bool:
        """True if nothing is left to take and nothing that was taken is still out."""

    @abstractmethod
    def take(self, loaded: Sequence[str]) -> TaskT | None:
        """The next task for a worker that has these models loaded; None for nothing now."""

    @abstractmethod
    def done(self, task: TaskT, result: Any) -> None:
        """Receive a task's result."""

    def tick(self) -> None:
        """Called every second while nothing ends, to report progress."""

    @abstractmethod
    def failed(self, task: TaskT, error: ContstimError, attempt: int) -> None:
        """Receive a task that failed, for the nth time; it may be taken again."""


Event: TypeAlias = tuple[int, str | Reply | WorkerError]
"""Number of a worker, and its message.

A text, machine and process, says that it has started and has nothing to do; an error, that it has
ended or hung, and with it its task.
"""


class Executor(ABC):
    """A way to spawn workers, each with a context of its own.

    Guarantees of an implementation, proved by the contract test class:

    * Each worker says once that it is ready before it is sent a task, and does one task at a time.
    * Every task that is sent is answered once: by its `Reply`, whether result or error, or by the
      worker's death; unless the worker is ended meanwhile.
    * A worker that is spawned has nothing loaded; the others are not disturbed.
    * A worker in another process gives signs of life, from a thread beside its task: a long task is
      no silence, and a process that was stopped is silent.
    * After `close` no worker is left, busy or not.
    """

    size: int
    """Number of workers, which count from 0; known once started."""

    shares_models: bool = False
    """Whether workers share loaded models, and gain by working with the same ones."""

    silence: float = inf
    """Seconds without a sign of life after which a worker is taken to hang."""

    @abstractmethod
    def start(self, context: WorkerContext) -> None:
        """Prepare for workers, each of which gets a copy of the context.

        Raises:
            ContstimError: they cannot be started here.
        """

    @abstractmethod
    def spawn(self, worker: int) -> None:
        """Start a worker under a number that is free."""

    @abstractmethod
    def send(self, worker: int, task: WorkerTask[Any]) -> None:
        """Give a worker that has nothing to do a task."""

    @abstractmethod
    def wait(self, timeout: float) -> Event | None:
        """Wait for the next thing to happen.

        Args:
            timeout: seconds after which None comes instead. A worker in this process cannot be left
                waiting, and takes as long as it takes.
        """

    def signs_of_life(self) -> Mapping[int, object]:
        """Values that change while a worker lives, by its number, of those that may hang."""
        return {}

    @abstractmethod
    def end(self, worker: int) -> None:
        """End a worker, whatever it does, and free its number."""

    @abstractmethod
    def close(self) -> None:
        """End all workers."""


@contextmanager
def worker_pool(
    executor: Executor,
    context: WorkerContext,
    *,
    say: Callable[[str], None] = lambda _text: None,
    task_limit: float | None = None,
) -> Iterator[Pool]:
    """Workers that are started, and ended with the context.

    Args:
        executor: spawns the workers.
        context: what every worker begins with.
        say: told what a user should know, such as the death of a worker.
        task_limit: seconds after which a task is taken from its worker, which is replaced; None for
            as long as it takes.

    Raises:
        ContstimError: they cannot be started here.
    """
    try:
        executor.start(context)
        for worker in range(executor.size):
            executor.spawn(worker)
        yield Pool(executor, say, inf if task_limit is None else task_limit)
    finally:
        executor.close()


@dataclass
class _Worker:
    """A worker that has been ready.

    Attributes:
        place: machine and process.
        loaded: its models.
        task: what it does; None for nothing.
        deadline: when the task must have ended.
    """

    place: str
    loaded: tuple[str, ...] = ()
    task: WorkerTask[Any] | None = None
    deadline: float = inf


class Pool:
    """Workers that do the tasks of one queue after another; see `worker_pool`.

    Attributes:
        executor: spawns the workers.
    """

    def __init__(self, executor: Executor, say: Callable[[str], None], task_limit: float) -> None:
        self.executor, self._say, self._limit = executor, say, task_limit
        self._workers: dict[int, _Worker] = {}
        # The last sign of life of each worker, and the seconds for which it has stayed the same
        self._signs: dict[int, tuple[object, float]] = {}
        self._looked = monotonic()
        self._false_starts = 0
        self._attempts: Counter[WorkerTask[Any]] = Counter()

    def work_off(self, queue: TaskQueue[Any]) -> None:
        """Have all tasks of a queue done, whatever happens to workers on the way.

        A worker that dies, hangs, fails in an unforeseen way, or exceeds the time limit of a task
        is replaced.

        Raises:
            WorkerError: workers die again and again before they are ready.
        """
        while not queue.finished:
            # All that are idle get what there is before anything is waited for.
            for number, worker in sorted(self._workers.items()):
                if worker.task is None and (task := queue.take(worker.loaded)) is not None:
                    worker.task, worker.deadline = task, monotonic() + self._limit
                    self.executor.send(number, task)
            first = min((worker.deadline for worker in self._workers.values()), default=inf)
            match self.receive(min(PULSE, max(0.0, first - monotonic()))):
                case None:
                    queue.tick()
                case number, str(place):
                    self._false_starts = 0
                    self._workers[number] = _Worker(place)
                case number, Reply() as reply:
                    self._on_reply(number, reply, queue)
                case number, WorkerError() as death:
                    self._on_death(number, str(death), queue)
            # After the event: what has come in time counts, however late it is read.
            late = [n for n, worker in self._workers.items() if worker.deadline < monotonic()]
            for number in late:
                self.replace(number)
                reason = f"its task took longer than the `task_timeout` of {self._limit:g} seconds"
                self._on_death(number, reason, queue)

    def receive(self, timeout: float = inf) -> Event | None:
        """Wait for the next thing to happen; a worker that died or hung is replaced.

        Args:
            timeout: seconds after which None comes instead.
        """
        deadline = monotonic() + timeout
        while True:
            # Also where messages never cease: the others' must not hide one that hangs.
            for worker in self.silent_workers():
                self.replace(worker)
                silence = self.executor.silence
                return worker, WorkerError(f"no sign of life for {silence:g} seconds")
            event = self.executor.wait(min(PULSE, max(0.0, deadline - monotonic())))
            if event is not None:
                if isinstance(event[1], WorkerError):
                    self.replace(event[0])
                return event
            if monotonic() >= deadline:
                return None

    def silent_workers(self) -> list[int]:
        """The workers that have given no sign of life for too long, looked for every second.

        Only time in which the driver looks counts: where it is stopped with Ctrl-Z, sleeps with its
        machine, or has other work, two looks are far apart, and no worker is to blame.
        """
        now = monotonic()
        if now - self._looked < PULSE:
            return []
        elapsed, self._looked = min(now - self._looked, 2 * PULSE), now
        before, self._signs = self._signs, {}
        for worker, sign in self.executor.signs_of_life().items():
            last, quiet = before.get(worker, (None, 0.0))
            self._signs[worker] = sign, quiet + elapsed if sign == last else 0.0
        limit = self.executor.silence
        return [worker for worker, (_, seconds) in self._signs.items() if seconds > limit]

    def replace(self, worker: int) -> None:
        """End a worker, whatever it does; another takes its number, and says when it is ready."""
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
        if reply.detail:  # unforeseen: a GPU that failed once may fail for ever
            del self._workers[number]
            self.replace(number)

    def _on_death(self, number: int, reason: str, queue: TaskQueue[Any]) -> None:
        """Return the worker's task to its queue; another worker is on the way."""
        worker = self._workers.pop(number, None)
        if worker is None:  # it has never been ready
            self._false_starts += 1
            if self._false_starts == _FALSE_STARTS:
                raise WorkerError(f"Workers die before they are ready ({reason}).")
            return
        self._say(f"Worker {number} ({worker.place}) is replaced: {reason}.")
        if worker.task is not None:
            self._on_failure(worker.task, WorkerError(f"its worker was lost: {reason}"), queue)

    def _on_failure(
        self, task: WorkerTask[Any], error: ContstimError, queue: TaskQueue[Any]
    ) -> None:
        # Attempts are counted here, over all workers: a queue decides what each is worth.
        self._attempts[task] += 1
        queue.failed(task, error, self._attempts[task])
