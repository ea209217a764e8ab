"""The one loop of a job: hand out tasks, receive results, replace what fails."""

from __future__ import annotations

from collections import Counter
from time import monotonic
from typing import TYPE_CHECKING, Any

from contstim.errors import WorkerError
from contstim.jobs.executors.base import Answered, Died, Ready

if TYPE_CHECKING:
    from collections.abc import Callable

    from contstim.errors import ContstimError
    from contstim.jobs.executors.base import Executor
    from contstim.jobs.queue import TaskQueue, WorkerTask

_FALSE_STARTS = 3  # workers that die in a row before any is ready, until the job is given up


class Scheduler:
    """Gives the workers of an executor the tasks of a queue.

    Args:
        executor: has been started.
        say: told what a user should know, such as the death of a worker.
        task_limit: seconds after which a task is taken from its worker, which is replaced; None for
            as long as it takes.
    """

    def __init__(
        self, executor: Executor, say: Callable[[str], None], task_limit: float | None = None
    ) -> None:
        self._executor = executor
        self._say = say
        self._limit = task_limit
        self._deadlines: dict[int, float] = {}  # when the task of each must have ended
        self._idle: dict[int, tuple[str, ...]] = {}  # the models that each has loaded
        self._busy: dict[int, WorkerTask[Any]] = {}
        self._places: dict[int, str] = {}
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
            for worker in sorted(self._idle):
                task = queue.take(self._idle[worker])
                if task is not None:
                    del self._idle[worker]
                    self._busy[worker] = task
                    if self._limit is not None:
                        self._deadlines[worker] = monotonic() + self._limit
                    self._executor.send(worker, task)
            first = min(self._deadlines.values(), default=None)
            match self._executor.receive(None if first is None else max(0.0, first - monotonic())):
                case Ready(worker, place):
                    self._false_starts = 0
                    self._places[worker] = place
                    # New, it has nothing loaded, whatever a worker of this number had before.
                    self._idle[worker] = ()
                case Answered(worker, reply):
                    task = self._busy.pop(worker)
                    self._deadlines.pop(worker, None)
                    if reply.error is None:
                        self._attempts.pop(task, None)
                        queue.done(task, reply.result)
                    else:
                        self._on_failure(task, reply.error, queue)
                    if reply.detail:  # unforeseen: a GPU that failed once may fail for ever
                        self._executor.replace(worker)
                    else:
                        self._idle[worker] = reply.loaded
                case Died(worker, reason):
                    self._on_worker_death(worker, reason, queue)
            # After the event: what has come in time counts, however late it is read.
            for worker in [w for w, end in self._deadlines.items() if end < monotonic()]:
                self._executor.replace(worker)
                reason = f"its task took longer than --task-timeout {self._limit:g}"
                self._on_worker_death(worker, reason, queue)

    def _on_worker_death(self, worker: int, reason: str, queue: TaskQueue[Any]) -> None:
        """Return the worker's task to its queue; the executor has another worker on the way."""
        place = self._places.pop(worker, "")
        self._idle.pop(worker, None)
        task = self._busy.pop(worker, None)
        self._deadlines.pop(worker, None)
        if not place:  # it has never been ready
            self._false_starts += 1
            if self._false_starts == _FALSE_STARTS:
                raise WorkerError(f"Workers die before they are ready ({reason}).")
            return
        self._say(f"Worker {worker} ({place}) is replaced: {reason}.")
        if task is not None:
            self._on_failure(task, WorkerError(f"its worker was lost: {reason}"), queue)

    def _on_failure(
        self, task: WorkerTask[Any], error: ContstimError, queue: TaskQueue[Any]
    ) -> None:
        # Attempts are counted here, over all workers: a queue decides what each is worth.
        self._attempts[task] += 1
        queue.failed(task, error, self._attempts[task])
