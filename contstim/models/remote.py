"""Models that workers have loaded in other processes.

A worker is a process that loads models and executes their methods. A `RemoteModel` has the methods
of a loaded model and lets workers execute them. A long list of items, such as sentences, is split
into chunks. Each call of a method processes one chunk.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import wraps
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
"""Maximum number of items in a call. A killed worker loses at most the results of one call."""

_Method = TypeVar("_Method", bound="Callable[..., object]")


@dataclass(frozen=True, eq=False)
class ModelCall:
    """Call of a model's method, as a value that can be sent to another process.

    `model` is the model's specification, such as `hf:gpt2`.
    """

    model: str
    method: str
    arguments: tuple[Any, ...]
    keywords: dict[str, Any] = field(default_factory=dict)


Answer: TypeAlias = "Callable[[Iterable[ModelCall], Callable[[ModelCall, Any], None]], None]"
"""Function that lets workers execute calls in any order, and passes each call and its result to a
callback. If a call fails, the remaining calls of its model are dropped. The error is raised after
the calls of all other models have ended."""


def _remote_method(method: _Method) -> _Method:
    """Return a method of `RemoteModel` that lets workers execute `method` of the loaded model.

    The argument of `method` is a list of items, which is split into chunks. `method` must return
    None, or an array or a list. The array or list must have a value for each item.
    """
    name = method.__name__

    def call_workers(self: RemoteModel, items: Sequence[Any], **keywords: Any) -> Any:
        # Also send an empty list: a model that does not support the method must raise an error
        chunks = [tuple(items[i : i + CHUNK]) for i in range(0, max(len(items), 1), CHUNK)]
        calls = [ModelCall(self.specification, name, (chunk,), keywords) for chunk in chunks]
        results = self.ask(calls)
        if results[0] is None:
            return None
        if isinstance(results[0], np.ndarray):
            return np.concatenate(results)
        return list(chain.from_iterable(results))

    # `updated=()`: the attribute that marks abstract methods must not be copied
    return cast("_Method", wraps(method, updated=())(call_workers))


class RemoteModel(LanguageModel):
    """Scorer that workers have loaded.

    Some scorers are not language models, because their scores are not in nats. Their `RemoteModel`
    is nevertheless an instance of `LanguageModel`. `require_language_model` refuses this instance,
    and its language-model methods raise errors.

    Use this class for scoring. A search would be slow, because it would wait for a worker at each
    step.
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

    def ask(self, calls: Sequence[ModelCall]) -> list[Any]:
        """Execute calls of this model and return their results in the order of the calls."""
        results: dict[ModelCall, Any] = {}
        self.answer(calls, results.__setitem__)
        return [results[call] for call in calls]

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
