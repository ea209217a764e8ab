"""One worker, in this process."""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING

from contstim.optimization.jobs.executors.base import Answered, Event, Executor, Ready

if TYPE_CHECKING:
    from contstim.optimization.jobs.bench import Bench, Task


class LocalExecutor(Executor):
    """Does each task when its answer is asked for; a task that kills its worker kills all."""

    size = 1

    def __init__(self) -> None:
        self._bench: Bench | None = None
        self._events: deque[Ready | Task] = deque()

    def start(self, bench: Bench) -> None:
        """See `Executor.start`."""
        self._bench = bench
        self.replace(0)

    def send(self, worker: int, task: Task) -> None:
        """See `Executor.send`."""
        del worker
        self._events.append(task)

    def receive(self) -> Event:
        """See `Executor.receive`."""
        event = self._events.popleft()
        if isinstance(event, Ready):
            return event
        assert self._bench is not None
        return Answered(0, self._bench.answer(event))

    def replace(self, worker: int) -> None:
        """See `Executor.replace`."""
        assert self._bench is not None
        self._bench = self._bench.fresh()
        self._events.append(Ready(worker, f"process {os.getpid()}"))

    def close(self) -> None:
        """See `Executor.close`."""
        self._events.clear()
        self._bench = None
