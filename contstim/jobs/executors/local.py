"""One worker, in this process."""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, Any

from contstim.jobs.executors.base import Answered, Event, Executor, Ready

if TYPE_CHECKING:
    from contstim.jobs.queue import WorkerTask
    from contstim.jobs.worker_context import WorkerContext


class LocalExecutor(Executor):
    """Does each task when its answer is asked for; a task that kills its worker kills all."""

    size = 1

    def __init__(self) -> None:
        self._context: WorkerContext | None = None
        self._events: deque[Ready | WorkerTask[Any]] = deque()

    def start(self, context: WorkerContext) -> None:
        """See `Executor.start`."""
        self._context = context
        self.replace(0)

    def send(self, worker: int, task: WorkerTask[Any]) -> None:
        """See `Executor.send`."""
        del worker
        self._events.append(task)

    def receive(self, timeout: float | None = None) -> Event:
        """See `Executor.receive`."""
        del timeout
        event = self._events.popleft()
        if isinstance(event, Ready):
            return event
        assert self._context is not None
        return Answered(0, self._context.answer(event))

    def replace(self, worker: int) -> None:
        """See `Executor.replace`."""
        assert self._context is not None
        self._context = self._context.fresh()
        self._events.append(Ready(worker, f"process {os.getpid()}"))

    def close(self) -> None:
        """See `Executor.close`."""
        self._events.clear()
        self._context = None
