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

    from contstim.models.base import Convention
    from contstim.models.specifications import Specification
    from contstim.models.training_text import TrainingText
    from contstim.vocabulary import Vocabulary

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


@dataclass(frozen=True)
class ModelFacts:
    """Facts of a model that a worker tells once and for all.

    Attributes:
        convention: how its scores come about.
        training_text: the sentences that it was trained on; None where they are not known.
        is_language_model: whether its scores are log-probabilities.
    """

    convention: Convention
    training_text: TrainingText | None
    is_language_model: bool


def _asked(method: _Method) -> _Method:
    """The method as workers answer it: of many items, to an array, a list or None."""
    name = method.__name__

    def ask(self: RemoteScorer, items: Sequence[Any], **keywords: Any) -> Any:
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


class RemoteScorer(Scorer):
    """A scorer that workers hold.

    Args:
        model: parsed.
        facts: what a worker told of it.
        answer: the workers that answer for it.
    """

    def __init__(self, model: Specification, facts: ModelFacts, answer: Answer) -> None:
        self.name, self.specification = model.name, model.specification
        self.answer = answer
        self._facts = facts

    @property
    def convention(self) -> Convention:
        """See `Scorer.convention`."""
        return self._facts.convention

    @property
    def training_text(self) -> TrainingText | None:
        """See `Scorer.training_text`."""
        return self._facts.training_text

    def ask(self, calls: Iterable[ModelCall]) -> list[Any]:
        """The answers to calls of this model, in their order."""
        calls = list(calls)
        answers: dict[ModelCall, Any] = {}
        self.answer(calls, answers.__setitem__)
        return [answers[call] for call in calls]

    scores = _asked(Scorer.scores)
    unscorable = _asked(Scorer.unscorable)
    exact = _asked(Scorer.exact)
    standard_errors = _asked(Scorer.standard_errors)
    knows = _asked(Scorer.knows)
    tokens_per_word = _asked(Scorer.tokens_per_word)
    token_counts = _asked(Scorer.token_counts)

    def vocabulary(self, min_count: int) -> Vocabulary | None:
        """See `Scorer.vocabulary`."""
        (words,) = self.ask([ModelCall(self.specification, "vocabulary", (min_count,))])
        return cast("Vocabulary | None", words)


class RemoteLanguageModel(RemoteScorer, LanguageModel):
    """A language model that workers hold.

    It is meant for scoring: a search would wait for a worker at every step.
    """

    log_probs = _asked(LanguageModel.log_probs)
    float32_log_probs = _asked(LanguageModel.float32_log_probs)
    lower_bounds = _asked(LanguageModel.lower_bounds)
    token_log_probs = _asked(LanguageModel.token_log_probs)
    completed_word_log_probs = _asked(LanguageModel.completed_word_log_probs)
    continuation_log_probs = _asked(LanguageModel.continuation_log_probs)
