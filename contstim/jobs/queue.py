"""Tasks for workers, and what becomes of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.errors import ContstimError
    from contstim.jobs.worker_context import WorkerContext

ContextT = TypeVar("ContextT", bound="WorkerContext", contravariant=True)


class WorkerTask(ABC, Generic[ContextT]):
    """Something to do with models; a value that can be sent to another process."""

    @abstractmethod
    def perform(self, context: ContextT) -> Any:
        """Do it; the result can be sent to another process."""


TaskT = TypeVar("TaskT", bound=WorkerTask[Any])


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

    @abstractmethod
    def failed(self, task: TaskT, error: ContstimError, attempt: int) -> None:
        """Receive a task that failed, for the nth time; it may be taken again."""
