"""Models that are loaded in other processes: what is asked of them is asked of workers.

A benchmark takes models; these behave like the ones that the workers hold. Long lists are cut into
chunks, so that several workers share them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np

from contstim.models.base import LanguageModel, Scorer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from contstim.models.base import Convention
    from contstim.models.specifications import Specification
    from contstim.words.vocabulary import Vocabulary

CHUNK = 200
"""How many items are asked about at a time: what is lost at most when a worker is killed."""

_Method = TypeVar("_Method", bound="Callable[..., object]")


@dataclass(frozen=True, eq=False)
class ModelCall:
    """A method of a model to be called; a value that can be sent to another process.

    Attributes:
        model: its specification.
        method: its name.
        arguments: by position.
        keywords: by name.
    """

    model: str
    method: str
    arguments: tuple[Any, ...]
    keywords: dict[str, Any] = field(default_factory=dict)


Answer: TypeAlias = "Callable[[Iterable[ModelCall], Callable[[ModelCall, Any], None]], None]"
"""A function of workers that has every call answered, in whatever order, and tells a function the
call and its answer as they come. Calls of a model that fails are given up; it raises the failure
when all calls of other models are answered."""


def _asked(method: _Method) -> _Method:
    """The method as workers answer it: of many items, to an array, a list or None."""
    name = method.__name__

    def ask(self: RemoteModel, items: Sequence[Any], **keywords: Any) -> Any:
        # An empty list is asked about too: a model may refuse a method by itself
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
    """A model that workers hold, any scorer; its convention says if it is a language model.

    It is meant for scoring: a search would wait for a worker at every step.

    Args:
        model: parsed.
        convention: how its scores come about, as a worker told.
        training_text: hashes of the sentences that it was trained on, where they are known.
        answer: the workers that answer for it.
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
        """The answers to calls of this model, in their order."""
        calls = list(calls)
        answers: dict[ModelCall, Any] = {}
        self.answer(calls, answers.__setitem__)
        return [answers[call] for call in calls]

    def vocabulary(self, min_count: int) -> Vocabulary | None:
        """See `Scorer.vocabulary`."""
        (words,) = self.ask([ModelCall(self.specification, "vocabulary", (min_count,))])
        return cast("Vocabulary | None", words)

    scores = _asked(Scorer.scores)
    unscorable = _asked(Scorer.unscorable)
    exact = _asked(Scorer.exact)
    standard_errors = _asked(Scorer.standard_errors)
    lower_bounds = _asked(Scorer.lower_bounds)
    knows = _asked(Scorer.knows)
    tokens_per_word = _asked(Scorer.tokens_per_word)
    token_counts = _asked(Scorer.token_counts)
    log_probs = _asked(LanguageModel.log_probs)
    float32_log_probs = _asked(LanguageModel.float32_log_probs)
    token_log_probs = _asked(LanguageModel.token_log_probs)
    completed_word_log_probs = _asked(LanguageModel.completed_word_log_probs)
    continuation_log_probs = _asked(LanguageModel.continuation_log_probs)
