"""Tasks of workers, and the context in which one does them: options, and loaded models."""

from __future__ import annotations

import os
import traceback
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from contstim.errors import ContstimError
from contstim.models.base import require_language_model
from contstim.models.catalog import free_memory, load_scorer
from contstim.models.loading import DEFAULT_LOADING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contstim.models.base import LanguageModel, Scorer
    from contstim.models.loading import Loading


ContextT = TypeVar("ContextT", bound="WorkerContext", contravariant=True)


class WorkerTask(ABC, Generic[ContextT]):
    """Something to do with models; a value that can be sent to another process."""

    @abstractmethod
    def perform(self, context: ContextT) -> Any:
        """Do it; the result can be sent to another process."""


@dataclass(frozen=True)
class Reply:
    """A task's result, or the error that it ended with.

    Attributes:
        result: what the task returned; None where it failed.
        error: what went wrong; None where it went well.
        detail: where the error arose, for errors that nobody foresaw.
        loaded: the models that the worker has loaded now, the least recently used first.
    """

    result: Any
    error: ContstimError | None
    detail: str
    loaded: tuple[str, ...]


@dataclass
class WorkerContext:
    """A worker's options and models; models are loaded when needed, and the last few stay.

    Until the first task it holds options only, and can be sent to another process.

    Attributes:
        loading: how models are loaded.
        capacity: how many models stay loaded, at least as many as a task needs.
        folder: what relative file names in specifications start from.
        names: what models are called, by their specifications; others are called by those.
    """

    loading: Loading = DEFAULT_LOADING
    capacity: int = 2
    folder: Path = field(default_factory=Path.cwd)
    names: Mapping[str, str] = field(default_factory=dict)
    # In order of use, the least recently used first.
    _models: dict[str, Scorer] = field(default_factory=dict, init=False)
    _lender: WorkerContext | None = field(default=None, init=False, repr=False)

    def fresh(self) -> Self:
        """A copy with the same options and nothing loaded."""
        return replace(self)

    def borrower(self) -> Self:
        """A copy for one of several workers of this process, which share this context's models.

        Weights are in memory once, and `capacity` holds for all of them together. What a search
        changes in a model is each task's own.
        """
        worker = self.fresh()
        worker._lender = self
        return worker

    @property
    def loaded(self) -> tuple[str, ...]:
        """The models that are loaded, the least recently used first."""
        return tuple((self._lender or self)._models)

    def answer(self, task: WorkerTask[Any]) -> Reply:
        """Do a task; the reply tells whatever goes wrong."""
        try:
            return Reply(task.perform(self), None, "", self.loaded)
        except ContstimError as error:
            return Reply(None, error, "", self.loaded)
        # The detail tells the scheduler that nobody foresaw this, and the worker is replaced.
        except Exception as error:
            unforeseen = ContstimError(f"{type(error).__name__}: {error}")
            return Reply(None, unforeseen, traceback.format_exc(), self.loaded)

    def models(self, names: tuple[str, ...]) -> list[LanguageModel]:
        """The language models of these specifications, loaded if need be.

        Raises:
            ModelError: a model cannot be loaded, or its scores are not log-probabilities.
        """
        return [require_language_model(scorer, "A search") for scorer in self.scorers(names)]

    def scorers(self, names: tuple[str, ...]) -> list[Scorer]:
        """Whatever these specifications name, loaded if need be.

        Raises:
            ModelError: a model cannot be loaded.
        """
        if self._lender is not None:
            lent = self._lender.scorers(names)
            for scorer in lent:
                _ = scorer.convention  # costs passes in coarse precision, and is remembered
            return [scorer.for_another_search() for scorer in lent]
        for name in names:
            if name not in self._models:
                self._make_room(for_models=names)
                if self.folder.is_dir():  # on another machine it need not be there
                    os.chdir(self.folder)
                self._models[name] = load_scorer(
                    name, self.loading, name=self.names.get(name, name)
                )
        for name in names:
            self._models[name] = self._models.pop(name)  # last in order: most recently used
        return [self._models[name] for name in names]

    def _make_room(self, for_models: tuple[str, ...]) -> None:
        """Drop models that a task does not need, the least recently used first."""
        # One place is for the model that is about to be loaded.
        room = max(self.capacity, len(for_models)) - 1
        for name in [name for name in self._models if name not in for_models]:
            if len(self._models) <= room:
                return
            del self._models[name]
            free_memory()
