"""Models that are loaded in other processes: what is asked of them is asked of workers.

A benchmark takes models; these behave like the ones that the workers hold. Long lists are cut into
chunks, so that several workers share them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.models.base import LanguageModel, Scorer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.models.base import Continuation, Convention, TokenScore
    from contstim.models.specifications import NamedSpecification
    from contstim.models.training_text import TrainingText
    from contstim.sentence import Sentence
    from contstim.vocabulary import Vocabulary

CHUNK = 200
"""How many items are asked about at a time: what is lost at most when a worker is killed."""


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


class ModelWorkers(ABC):
    """Workers that hold models and answer calls, several at the same time."""

    @abstractmethod
    def answer(self, calls: Iterable[ModelCall], receive: Callable[[ModelCall, Any], None]) -> None:
        """Have every call answered, in whatever order; those of a model that fails are given up.

        Args:
            calls: what is asked.
            receive: told a call and its answer, as it comes.

        Raises:
            ContstimError: a call failed; only after all calls of other models were answered.
        """


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


class RemoteScorer(Scorer):
    """A scorer that workers hold.

    Args:
        named: its name and specification.
        facts: what a worker told of it.
        workers: who answer for it.
    """

    workers: ModelWorkers

    def __init__(self, named: NamedSpecification, facts: ModelFacts, workers: ModelWorkers) -> None:
        self.name, self.specification = named.name, named.specification
        self.workers = workers
        self._facts = facts

    @property
    def convention(self) -> Convention:
        """See `Scorer.convention`."""
        return self._facts.convention

    @property
    def training_text(self) -> TrainingText | None:
        """See `Scorer.training_text`."""
        return self._facts.training_text

    def _ask(self, method: str, items: Sequence[Any], **keywords: Any) -> Any:
        """The answer of a method of many items to one answer, an array, a list or None.

        An empty list is asked about too: a model may refuse a method by itself.
        """
        calls = [
            ModelCall(self.specification, method, (tuple(items[start : start + CHUNK]),), keywords)
            for start in range(0, max(len(items), 1), CHUNK)
        ]
        answered: dict[ModelCall, Any] = {}
        self.workers.answer(calls, answered.__setitem__)
        answers = [answered[call] for call in calls]
        if answers[0] is None:
            return None
        if isinstance(answers[0], np.ndarray):
            return np.concatenate(answers)
        return list(chain.from_iterable(answers))

    def scores(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `Scorer.scores`."""
        scores: FloatArray = self._ask("scores", sentences)
        return scores

    def unscorable(self, sentences: Sequence[Sentence]) -> list[str | None]:
        """See `Scorer.unscorable`."""
        reasons: list[str | None] = self._ask("unscorable", sentences)
        return reasons

    def exact(self, sentences: Sequence[Sentence]) -> BoolArray:
        """See `Scorer.exact`."""
        exact: BoolArray = self._ask("exact", sentences)
        return exact

    def standard_errors(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `Scorer.standard_errors`."""
        errors: FloatArray = self._ask("standard_errors", sentences)
        return errors

    def knows(self, words: Sequence[str]) -> BoolArray:
        """See `Scorer.knows`."""
        are_known: BoolArray = self._ask("knows", words)
        return are_known

    def vocabulary(self, min_count: int) -> Vocabulary | None:
        """See `Scorer.vocabulary`."""
        answers: dict[ModelCall, Vocabulary | None] = {}
        call = ModelCall(self.specification, "vocabulary", (min_count,))
        self.workers.answer([call], answers.__setitem__)
        return answers[call]

    def tokens_per_word(self, words: Sequence[str], *, initial: bool) -> IntArray | None:
        """See `Scorer.tokens_per_word`."""
        counts: IntArray | None = self._ask("tokens_per_word", words, initial=initial)
        return counts

    def token_counts(self, sentences: Sequence[Sentence]) -> IntArray:
        """See `Scorer.token_counts`."""
        counts: IntArray = self._ask("token_counts", sentences)
        return counts


class RemoteLanguageModel(RemoteScorer, LanguageModel):
    """A language model that workers hold.

    It is meant for scoring: a search would wait for a worker at every step.
    """

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.log_probs`."""
        log_probs: FloatArray = self._ask("log_probs", sentences)
        return log_probs

    def float32_log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.float32_log_probs`."""
        log_probs: FloatArray = self._ask("float32_log_probs", sentences)
        return log_probs

    def lower_bounds(self, sentences: Sequence[Sentence]) -> FloatArray | None:
        """See `LanguageModel.lower_bounds`."""
        bounds: FloatArray | None = self._ask("lower_bounds", sentences)
        return bounds

    def token_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """See `LanguageModel.token_log_probs`."""
        terms: list[list[TokenScore]] = self._ask("token_log_probs", sentences)
        return terms

    def completed_word_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """See `LanguageModel.completed_word_log_probs`."""
        terms: list[list[TokenScore]] = self._ask("completed_word_log_probs", sentences)
        return terms

    def continuation_log_probs(self, continuations: Sequence[Continuation]) -> FloatArray:
        """See `LanguageModel.continuation_log_probs`."""
        log_probs: FloatArray = self._ask("continuation_log_probs", continuations)
        return log_probs
