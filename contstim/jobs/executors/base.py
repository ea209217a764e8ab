"""Guarantees of every executor, and the events that it reports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from types import TracebackType

    from contstim.jobs.queue import WorkerTask
    from contstim.jobs.worker_context import Reply, WorkerContext


@dataclass(frozen=True)
class Ready:
    """A worker has started and has nothing to do.

    Attributes:
        worker: its number.
        place: where it is: machine and process.
    """

    worker: int
    place: str


@dataclass(frozen=True)
class Answered:
    """A worker has answered its task and has nothing to do."""

    worker: int
    reply: Reply


@dataclass(frozen=True)
class Died:
    """A worker has ended or hung, and with it its task; another takes its number."""

    worker: int
    reason: str


Event: TypeAlias = Ready | Answered | Died
"""What a worker can report: that it waits for tasks, an answer, or its end."""


class Executor(ABC):
    """A way of running workers, each with a context of its own.

    What an implementation guarantees, and the contract test class proves:

    * Each worker is `Ready` once before it can be sent a task, and does one task at a time.
    * Every task that is sent is answered once: by its `Reply`, whether result or error, or by the
      worker's death; unless the worker is replaced meanwhile.
    * A worker that died is replaced, under the same number, by one with nothing loaded, which
      becomes `Ready`; the others are not disturbed.
    * So is a worker in another process that hangs: one that gives no sign of life, such as a
      process that was stopped. A long task is no silence: signs come from a thread beside it.
    * After `close` no worker is left, busy or not. A closed executor can be started again.
    """

    size: int
    """How many workers there are, numbered from 0; known once started."""

    shares_models: bool = False
    """Whether workers share loaded models, and gain by working with the same ones."""

    @abstractmethod
    def start(self, context: WorkerContext) -> None:
        """Start the workers, each with a copy of the context.

        Raises:
            ContstimError: they cannot be started here.
        """

    @abstractmethod
    def send(self, worker: int, task: WorkerTask[Any]) -> None:
        """Give a worker that has nothing to do a task."""

    @abstractmethod
    def receive(self, timeout: float | None = None) -> Event | None:
        """Wait for the next thing to happen.

        Args:
            timeout: seconds after which None comes instead; None to wait as long as it takes. A
                worker in this process cannot be left waiting, and takes as long as it takes.
        """

    @abstractmethod
    def replace(self, worker: int) -> None:
        """End a worker, whatever it does; another takes its number and becomes `Ready`."""

    @abstractmethod
    def close(self) -> None:
        """End all workers."""

    def __enter__(self) -> Executor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
