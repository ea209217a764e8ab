"""Models that are loaded in other processes, so that workers execute their methods.

A remote model behaves like the model loaded by the workers. Long lists are split into chunks, so
that several workers share them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np

from contstim.models.base import Convention, LanguageModel, Scorer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from contstim.models.specifications import Specification
    from contstim.words.vocabulary import Vocabulary

CHUNK = 200
"""Number of items in a call; at most so many results are lost if a worker is killed."""

_Method = TypeVar("_Method", bound="Callable[..., object]")


@dataclass(frozen=True, eq=False)
class ModelCall:
    """Call of a model's method, as a value that can be sent to another process.

    Attributes:
        model: specification of the model.
        method: name of the method.
        arguments: positional arguments.
        keywords: keyword arguments.
    """

    model: str
    method: str
    arguments: tuple[Any, ...]
    keywords: dict[str, Any] = field(default_factory=dict)


Answer: TypeAlias = "Callable[[Iterable[ModelCall], Callable[[ModelCall, Any], None]], None]"
"""Function that lets workers execute calls in any order. It passes each call and its result to a
callback. After an error, the remaining calls of that model are dropped; the error is raised after
all calls of other models."""


def _remote_method(method: _Method) -> _Method:
    """Return a method executed by workers, from a list of items to an array, a list or None."""
    name = method.__name__

    def ask(self: RemoteModel, items: Sequence[Any], **keywords: Any) -> Any:
        # An empty list is also sent, since a model may refuse the method itself
        chunks = range(0, max(len(items), 1), CHUNK)
        answers = self.ask(
            ModelCall(self.specification, name, (tuple(items[i : i + CHUNK]),), keywords)
            for i in chunks
        )
        if answers[0] is None:
            return None
        if isinstance(answers[0], np.ndarray):
            return np.concatenate(answers)
        return list(chain.from_iterable(answers))

    ask.__name__, ask.__doc__ = name, f"See `{method.__qualname__}`."
    return cast("_Method", ask)


class RemoteModel(LanguageModel):
    """Scorer loaded by workers; its convention shows if it is a language model.

    It is intended for scoring, since a search would wait for a worker at each step.

    Args:
        model: parsed specification.
        convention: convention of the model, as reported by a worker.
        training_text: file with hashes of the training sentences; None if unknown.
        answer: function that lets workers execute calls.
    """

    def __init__(
        self,
        model: Specification,
        convention: Convention,
        training_text: Path | None,
        answer: Answer,
    ) -> None:
        self.name, self.specification = model.name, model.specification
        self._convention, self.training_text, self.answer = convention, training_text, answer

    @property
    def convention(self) -> Convention:
        """See `Scorer.convention`."""
        return self._convention

    def ask(self, calls: Iterable[ModelCall]) -> list[Any]:
        """Execute calls of this model and return their results in order."""
        calls = list(calls)
        answers: dict[ModelCall, Any] = {}
        self.answer(calls, answers.__setitem__)
        return [answers[call] for call in calls]

    def vocabulary(self, min_count: int) -> Vocabulary | None:
        """See `Scorer.vocabulary`."""
        (words,) = self.ask([ModelCall(self.specification, "vocabulary", (min_count,))])
        return cast("Vocabulary | None", words)

    scores = _remote_method(Scorer.scores)
    unscorable = _remote_method(Scorer.unscorable)
    exact = _remote_method(Scorer.exact)
    standard_errors = _remote_method(Scorer.standard_errors)
    lower_bounds = _remote_method(Scorer.lower_bounds)
    knows = _remote_method(Scorer.knows)
    tokens_per_word = _remote_method(Scorer.tokens_per_word)
    token_counts = _remote_method(Scorer.token_counts)
    log_probs = _remote_method(LanguageModel.log_probs)
    float32_log_probs = _remote_method(LanguageModel.float32_log_probs)
    token_log_probs = _remote_method(LanguageModel.token_log_probs)
    completed_word_log_probs = _remote_method(LanguageModel.completed_word_log_probs)
    continuation_log_probs = _remote_method(LanguageModel.continuation_log_probs)
