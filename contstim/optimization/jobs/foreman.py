"""The one loop of a job: hand out tasks, take answers, bear the death of workers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from contstim.errors import WorkerError
from contstim.optimization.jobs.executors.base import Answered, Died, Ready

if TYPE_CHECKING:
    from collections.abc import Callable

    from contstim.errors import ContstimError
    from contstim.optimization.jobs.agenda import Agenda
    from contstim.optimization.jobs.bench import Task
    from contstim.optimization.jobs.executors.base import Event, Executor

_FALSE_STARTS = 3


class Foreman:
    """Gives the workers of an executor something to do.

    Args:
        executor: has been started.
        say: told what a user should know, such as the death of a worker.
    """

    def __init__(self, executor: Executor, say: Callable[[str], None]) -> None:
        self._executor = executor
        self._say = say
        self._idle: dict[int, tuple[str, ...]] = {}  # what each has loaded
        self._busy: dict[int, Task] = {}
        self._places: dict[int, str] = {}
        self._false_starts = 0
        self._attempts: Counter[Task] = Counter()

    def work_through(self, agenda: Agenda[Any]) -> None:
        """Have an agenda done, whatever happens to workers on the way.

        A worker that dies or that fails in an unforeseen way is replaced.

        Raises:
            WorkerError: workers die again and again before they are ready.
        """
        while not agenda.finished:
            for worker in sorted(self._idle):
                task = agenda.take(self._idle[worker])
                if task is not None:
                    del self._idle[worker]
                    self._busy[worker] = task
                    self._executor.send(worker, task)
            self._note(self._executor.receive(), agenda)

    def _note(self, event: Event, agenda: Agenda[Any]) -> None:
        match event:
            case Ready(worker, place):
                self._false_starts = 0
                self._places[worker] = place
                self._idle[worker] = ()
            case Answered(worker, reply):
                task = self._busy.pop(worker)
                if reply.error is None:
                    self._attempts.pop(task, None)
                    agenda.done(task, reply.result)
                else:
                    self._fail(task, reply.error, agenda)
                if reply.detail:  # a GPU that failed once may fail for ever
                    self._executor.replace(worker)
                else:
                    self._idle[worker] = reply.loaded
            case Died(worker, reason):
                self._mourn(worker, reason, agenda)

    def _mourn(self, worker: int, reason: str, agenda: Agenda[Any]) -> None:
        place = self._places.pop(worker, "")
        self._idle.pop(worker, None)
        task = self._busy.pop(worker, None)
        if not place:
            self._false_starts += 1
            if self._false_starts == _FALSE_STARTS:
                raise WorkerError(f"Workers die before they are ready ({reason}).")
            return
        self._say(f"Worker {worker} ({place}) died ({reason}) and is replaced.")
        if task is not None:
            self._fail(task, WorkerError(f"its worker died ({reason})"), agenda)

    def _fail(self, task: Task, error: ContstimError, agenda: Agenda[Any]) -> None:
        self._attempts[task] += 1
        agenda.failed(task, error, self._attempts[task])
