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

from contstim.optimization.search.search import Place, Scored
from contstim.optimization.search.visit import Visit

if TYPE_CHECKING:
    from contstim.arrays import IntArray
    from contstim.optimization.search.search import Search
    from contstim.sentence import Sentence


class Shaker(ABC):
    """A way to make a new start."""

    @abstractmethod
    def shake(
        self, best: Scored, search: Search, rng: np.random.Generator, visit: int, failures: int
    ) -> Scored | None:
        """A sentence that keeps the constraint; None to end the search.

        Args:
            best: the best sentence so far.
            search: the objective, the words, and what is known.
            rng: for what is left to chance.
            visit: how many positions have been visited.
            failures: how many rounds in a row found nothing better.
        """


@dataclass(frozen=True)
class BuyRoom(Shaker):
    """Replace a few words by those with the largest believed surplus of acceptance over rejection.

    Attributes:
        words: how many are replaced at most.
        width: for how many words of a position a draft is asked.
        effort: of the drafts.
        patience: rounds without gain after which the search ends.
        tries: sentences that are scored to find a start which keeps the constraint.
    """

    words: int = 3
    width: int = 8
    effort: int = 1
    patience: int = 4
    tries: int = 4

    def shake(
        self, best: Scored, search: Search, rng: np.random.Generator, visit: int, failures: int
    ) -> Scored | None:
        """See `Shaker.shake`."""
        if failures >= self.patience:
            return None
        for _ in range(self.tries):
            sentence = self._shaken(best, search, rng, visit)
            start = None if sentence == best.sentence else search.score_feasible(sentence)
            if start is not None:
                return start
        return None

    def _shaken(
        self, best: Scored, search: Search, rng: np.random.Generator, visit: int
    ) -> Sentence:
        now = best
        n_words = int(rng.integers(1, self.words + 1))
        for position in rng.permutation(search.candidates.positions)[:n_words].tolist():
            now = self._replace(Place(now, position, visit), search)
        return now.sentence

    def _replace(self, place: Place, search: Search) -> Scored:
        """The sentence with the word of least tension among those believed to keep the constraint.

        Its log-probabilities are believed, not exact.
        """
        visit = Visit(place, search)
        words = np.flatnonzero(search.candidates.allowed(place.sentence, place.position))
        words = self._slackest(visit, search, words)
        for number in range(len(search.models)):
            visit.look(number, words, self.effort)
        words = self._slackest(visit, search, words)
        if not len(words):
            return place.now
        changed = place.sentence.replace(place.position, visit.words[words[0]])
        return Scored(changed, visit.belief.mean[:, words[0]], place.now.loss)

    def _slackest(self, visit: Visit, search: Search, words: IntArray) -> IntArray:
        mean, spread = visit.belief.mean[:, words], visit.belief.spread[:, words]
        cautious = mean - np.array(search.objective.accepting)[:, None] * spread
        feasible = search.objective.feasible(cautious)
        words, mean = words[feasible], mean[:, feasible]
        tension = search.objective.tension(mean)
        slackest: IntArray = words[np.argsort(tension, kind="stable")[: self.width]]
        return slackest
