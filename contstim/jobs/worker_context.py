"""Tasks of workers, and the context of a worker: options and loaded models."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from contstim.errors import ContstimError
from contstim.models.catalog import free_memory, load_scorer
from contstim.models.loading import DEFAULT_LOADING, Loading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contstim.models.base import Scorer


ContextT = TypeVar("ContextT", bound="WorkerContext", contravariant=True)


class WorkerTask(ABC, Generic[ContextT]):
    """A task that uses models; the task and its result can be pickled."""

    @abstractmethod
    def perform(self, context: ContextT) -> Any:
        """Perform the task, and return the result."""


@dataclass(frozen=True)
class Reply:
    """The result or the error of a task.

    Attributes:
        error: error of the task; None if the task succeeded. Unexpected errors, such as a
            `RuntimeError`, are converted to `ContstimError` itself, not to a subclass.
        loaded: specifications of the worker's loaded models, the least recently used first.
    """

    result: Any
    error: ContstimError | None
    loaded: tuple[str, ...]


@dataclass
class WorkerContext:
    """A worker's options and models.

    A model is loaded when a task needs it. The most recently used models stay loaded.

    Before the first task, the context contains only options, so that it can be pickled.

    Attributes:
        capacity: maximum number of models that stay loaded. A task that needs more models may
            exceed this number.
        folder: folder to which relative file names in specifications refer.
        names: specification of a model → name. A model that is not listed is named by its
            specification.
    """

    loading: Loading = DEFAULT_LOADING
    capacity: int = 2
    folder: Path = field(default_factory=Path.cwd)
    names: Mapping[str, str] = field(default_factory=dict)
    # Specification → loaded model, the least recently used model first
    _models: dict[str, Scorer] = field(default_factory=dict, init=False)
    # Context whose models this context uses, see `borrower`
    _lender: WorkerContext | None = field(default=None, init=False, repr=False)

    def fresh(self) -> Self:
        """Return a copy without loaded models."""
        return replace(self)

    def borrower(self) -> Self:
        """Return a context that shares this context's models, for a worker of this process.

        `capacity` applies to all such workers together. Scorers of different tasks share weights.
        They do not share data that a search changes, such as cached prefixes of sentences.
        """
        worker = self.fresh()
        worker._lender = self
        return worker

    @property
    def loaded(self) -> tuple[str, ...]:
        """Specifications of the loaded models, the least recently used first."""
        return tuple((self._lender or self)._models)

    def answer(self, task: WorkerTask[Any]) -> Reply:
        """Perform a task, and return its result or error."""
        try:
            return Reply(task.perform(self), None, self.loaded)
        except ContstimError as error:
            return Reply(None, error, self.loaded)
        except Exception as error:
            return Reply(None, ContstimError(f"{type(error).__name__}: {error}"), self.loaded)

    def scorers(self, names: tuple[str, ...]) -> list[Scorer]:
        """Return the scorers of `names`, which are specifications; load missing models.

        Raises:
            ModelError: if a model cannot be loaded.
        """
        if self._lender is not None:
            lent = self._lender.scorers(names)
            for scorer in lent:
                # Compute the convention once, before copying; copies then have the cached value. If
                # the model's precision is below float32, the convention needs network passes
                _ = scorer.convention
            return [scorer.for_another_search() for scorer in lent]
        for name in names:
            if name not in self._models:
                self._make_room(for_models=names)
                if self.folder.is_dir():  # on another machine, it may be missing
                    os.chdir(self.folder)
                model_name = self.names.get(name, name)
                self._models[name] = load_scorer(name, self.loading, name=model_name)
        for name in names:
            self._models[name] = self._models.pop(name)  # last in order: most recently used
        return [self._models[name] for name in names]

    def _make_room(self, for_models: tuple[str, ...]) -> None:
        """Make room for one more model; the least recently used models are dropped first."""
        room = max(self.capacity, len(for_models)) - 1
        for name in [name for name in self._models if name not in for_models]:
            if len(self._models) <= room:
                return
            del self._models[name]
            free_memory()
