"""Which word to put at a position: candidates, and ways to find the best of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import ModelError

if TYPE_CHECKING:
    from contstim.arrays import BoolArray, FloatArray
    from contstim.optimization.objective import Objective
    from contstim.sentence import Sentence
    from contstim.vocabulary import Vocabulary


@dataclass(frozen=True)
class Proposal:
    """A word for a position, with the exact log-probabilities, (n_models,), nats, it leads to."""

    word: str
    log_probs: FloatArray
    loss: float


@dataclass(frozen=True)
class Candidates:
    """The words that may stand at a position: those of the vocabulary that repeat no other word.

    Words are compared in lower case; the vocabulary's repeatable words may stand twice.
    """

    vocabulary: Vocabulary

    def allowed(self, sentence: Sentence, position: int) -> BoolArray:
        """Which of `vocabulary.at(position)` may stand there, (n_words,)."""
        places = self._places[min(position, 1)]
        allowed = np.ones(len(self.vocabulary.at(position)), bool)
        for other, word in enumerate(sentence.words):
            lowered = word.lower()
            if other != position and lowered not in self.vocabulary.repeatable:
                allowed[places.get(lowered, [])] = False
        return allowed

    @cached_property
    def _places(self) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
        """Where each lower-case word stands in the initial and in the inner list."""
        initial: defaultdict[str, list[int]] = defaultdict(list)
        inner: defaultdict[str, list[int]] = defaultdict(list)
        for places, words in ((initial, self.vocabulary.initial), (inner, self.vocabulary.inner)):
            for index, word in enumerate(words):
                places[word.lower()].append(index)
        return dict(initial), dict(inner)


class Proposer(ABC):
    """A way to find a better word for a position."""

    @abstractmethod
    def propose(
        self, sentence: Sentence, position: int, loss: float, objective: Objective
    ) -> Proposal | None:
        """A word whose exact loss is below `loss` and that keeps the constraint; None without one.

        Raises:
            ModelError: a model cannot tell what this way of proposing needs.
        """


@dataclass(frozen=True)
class ExactRanking(Proposer):
    """The best of all candidates, for models that know every replacement exactly.

    Of several equally good words, the first in the vocabulary.
    """

    candidates: Candidates

    def propose(
        self, sentence: Sentence, position: int, loss: float, objective: Objective
    ) -> Proposal | None:
        """See `Proposer.propose`."""
        words = self.candidates.vocabulary.at(position)
        known = []
        for model in objective.models:
            replacements = model.replacements(sentence, position, words)
            if not replacements.complete:
                raise ModelError(
                    f"{model.name} does not know every replacement exactly, which ranking the "
                    f"whole vocabulary needs."
                )
            known.append(replacements.exact)
        log_probs = np.stack(known)
        losses = objective.loss(log_probs)
        eligible = self.candidates.allowed(sentence, position) & objective.feasible(log_probs)
        eligible &= losses < loss
        if not eligible.any():
            return None
        best = int(np.argmin(np.where(eligible, losses, np.inf)))
        if not eligible[best]:  # every eligible loss is +inf
            return None
        return Proposal(words[best], log_probs[:, best], float(losses[best]))
