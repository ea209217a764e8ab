"""New starts for a climb that has settled: its best sentence, shaken (iterated local search).

A settled sentence has mostly used up what the constraint allows. So some of its words are replaced
by others that keep the constraint and that the accepting models like better than the rejecting ones
do, whatever that does to the loss: this buys room for the next round.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.optimization.search.evaluator import Position, ScoredSentence
from contstim.optimization.search.screening import PositionEstimates

if TYPE_CHECKING:
    from contstim.arrays import IntArray
    from contstim.optimization.search.evaluator import Evaluator
    from contstim.sentence import Sentence


class Perturbation(ABC):
    """A way to make a new start."""

    @abstractmethod
    def perturb(
        self,
        best: ScoredSentence,
        search: Evaluator,
        rng: np.random.Generator,
        visit: int,
        failures: int,
    ) -> ScoredSentence | None:
        """A sentence that keeps the constraint; None to end the search.

        Args:
            best: the best sentence so far.
            search: the objective, the words, and what is known.
            rng: for what is left to chance.
            visit: how many positions have been visited.
            failures: how many rounds in a row found nothing better.
        """


@dataclass(frozen=True)
class SlackPerturbation(Perturbation):
    """Replace a few words by those with the largest believed surplus of acceptance over rejection.

    Attributes:
        max_words: how many are replaced at most.
        max_drafts: for how many words of a position a draft is asked.
        draft_covers: of the drafts.
        patience: rounds without gain after which the search ends.
        tries: sentences that are scored to find a start which keeps the constraint.
    """

    max_words: int = 3
    max_drafts: int = 8
    draft_covers: int = 1
    patience: int = 4
    tries: int = 4

    def perturb(
        self,
        best: ScoredSentence,
        search: Evaluator,
        rng: np.random.Generator,
        visit: int,
        failures: int,
    ) -> ScoredSentence | None:
        """See `Perturbation.perturb`."""
        if failures >= self.patience:
            return None
        for _ in range(self.tries):
            sentence = self._perturbed(best, search, rng, visit)
            start = None if sentence == best.sentence else search.score_feasible(sentence)
            if start is not None:
                return start
        return None

    def _perturbed(
        self, best: ScoredSentence, search: Evaluator, rng: np.random.Generator, visit: int
    ) -> Sentence:
        now = best
        n_words = int(rng.integers(1, self.max_words + 1))
        for position in rng.permutation(search.candidates.positions)[:n_words].tolist():
            now = self._replace(Position(now, position, visit), search)
        return now.sentence

    def _replace(self, place: Position, search: Evaluator) -> ScoredSentence:
        """The sentence with the word of least tension among those believed to keep the constraint.

        Its log-probabilities are believed, not exact.
        """
        visit = PositionEstimates(place, search)
        words = np.flatnonzero(search.candidates.allowed(place.sentence, place.position))
        words = self._slackest(visit, search, words)
        for number in range(len(search.models)):
            visit.refine_under(number, words, self.draft_covers)
        words = self._slackest(visit, search, words)
        if not len(words):
            return place.now
        changed = place.sentence.replace(place.position, visit.words[words[0]])
        return ScoredSentence(changed, visit.belief.mean[:, words[0]], place.now.loss)

    def _slackest(self, visit: PositionEstimates, search: Evaluator, words: IntArray) -> IntArray:
        mean, spread = visit.belief.mean[:, words], visit.belief.spread[:, words]
        cautious = mean - np.array(search.objective.accepting)[:, None] * spread
        feasible = search.objective.feasible(cautious)
        words, mean = words[feasible], mean[:, feasible]
        tension = search.objective.tension(mean)
        slackest: IntArray = words[np.argsort(tension, kind="stable")[: self.max_drafts]]
        return slackest
