"""New starts for a climb that has settled: its best sentence, changed (iterated local search).

A settled sentence mostly stands just above the floor. There are two ways on. `Perturbation`
replaces some of its words by others that stay above the floor and that the accepting models like
better than the rejecting ones do, even where the reject model then finds the sentence likelier: the
room so gained above the floor, the slack, is for the next round.

`Oscillation` crosses sentences below the floor, where scores of all words are cheap (strategic
oscillation). Replacing one word at a time, a climb cannot cross a sentence that misses the floor,
and a settled sentence has few others next to it that keep it. So for a while the floor is not kept
but paid for: what is minimised is

    loss + price * shortfall          in nats; the shortfall is 0 at the floor and above

First a few words are replaced at random. With a low price it goes where the reject model finds
sentences unlikely, far below the floor; with each higher price it comes back a little, until at the
last it pays to keep the floor (Glover 1977, *Heuristics for integer programming using surrogate
constraints*). Where no single word lowers that, two words next to each other are replaced at once:
to an n-gram model most words are good or bad only beside their neighbours.

An example, with a floor of -20 nats. `The dog sleeps` has a loss of -18 and stands at the floor.
The prices 0.5, 1 and 2 lead to

    price    sentence            accept    loss    loss + price * shortfall
    0.5      The idea sleeps        -26     -27    -27 + 0.5 * 6 = -24
    1        The idea barks         -24     -25    -25 + 1 * 4   = -21
    2        The cat barks          -20     -22    -22

which is 4 nats better than where it began, though both words had to change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.models.caching import SizedCache
from contstim.optimization.search.objectives import ScoredSentence
from contstim.optimization.search.screening import PositionEstimates

if TYPE_CHECKING:
    from contstim.files.arrays import BoolArray, FloatArray, IntArray
    from contstim.optimization.search.constraints import Candidates
    from contstim.optimization.search.objectives import Objective
    from contstim.optimization.search.screening import SearchState
    from contstim.words.sentence import Sentence

_ROUNDING = 1e-9  # nats; a gain is more than that, so that rounding is none
_CACHED_BYTES = 2**26


@dataclass(frozen=True)
class Perturbation:
    """A way to make a new start: replace a few words by those with the largest expected slack.

    Attributes:
        max_words: how many are replaced at most.
        max_drafts: for how many words of a position a draft is asked.
        draft_covers: how much work a draft is; see `LanguageModel.draft`.
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
        candidates: Candidates,
        objective: Objective,
        state: SearchState,
        rng: np.random.Generator,
    ) -> ScoredSentence | None:
        """A sentence that keeps the constraint, exactly scored; None to end the search.

        Args:
            best: the best sentence so far.
            candidates: the words that may stand at each position.
            objective: what to minimise and to keep, and what scores exactly.
            state: what the proposer has learned; this may add to it.
            rng: for what is left to chance.
        """
        evaluator = objective.evaluator
        for _ in range(self.tries):
            perturbed = best
            n_words = int(rng.integers(1, self.max_words + 1))
            for index in rng.permutation(candidates.positions)[:n_words].tolist():
                position = candidates.at(perturbed, index)
                estimates = PositionEstimates(position, objective, state)
                columns = np.flatnonzero(position.allowed)
                columns = self._slackest(objective, estimates, columns)
                for number in range(len(estimates.mean)):
                    estimates.refine_under(number, columns, self.draft_covers)
                columns = self._slackest(objective, estimates, columns)
                if len(columns):
                    # Its log-probabilities are expected ones, and its loss is not its own
                    sentence = position.replace(position.words[columns[0]])
                    scores = estimates.mean[:, columns[0]]
                    perturbed = ScoredSentence(sentence, scores, best.loss)
            if perturbed.sentence == best.sentence:
                continue
            # Now exact scores, until it is clear that the constraint is broken; which loss they
            # make does not matter.
            log_probs = np.full(len(evaluator.models), np.nan)
            for number in range(len(evaluator.models)):
                log_probs[number] = evaluator.log_prob(number, perturbed.sentence)
                if not objective.promising(log_probs[:, None], np.inf, np.inf)[0]:
                    break
            else:
                return objective.assess(perturbed.sentence, log_probs)
        return None

    def _slackest(
        self, objective: Objective, estimates: PositionEstimates, columns: IntArray
    ) -> IntArray:
        """The words of most slack among those expected to keep the constraint, best first."""
        mean, spread = estimates.mean[:, columns], estimates.spread[:, columns]
        # A word is to keep the constraint even where accepting models err by one spread.
        cautious = mean - np.array(objective.accepting)[:, None] * spread
        feasible = objective.feasible(cautious)
        order = np.argsort(-objective.slack(mean[:, feasible]), kind="stable")
        return columns[feasible][order[: self.max_drafts]]


@dataclass(frozen=True)
class Oscillation(Perturbation):
    """Go below the floor at a low price, and back at higher ones.

    All words of a position are scored exactly at every visit (`LanguageModel.cheap_replacements`).
    Where prices lead back to the best sentence, or to none that keeps the floor, the start is made
    as by `Perturbation`.

    Attributes:
        patience: see `Perturbation`.
        oscillations: how often prices may lead back, or to no sentence that keeps the floor.
        random_words: how many are replaced at random to begin with.
        lowest: the first price is drawn between this and the next, nats for each nat.
        highest: see `lowest`.
        rises: by what the first price is multiplied, one after the other.
        first_words: so many of the best words at a position are tried with every word after them.
    """

    patience: int = 6
    oscillations: int = 2
    random_words: int = 3
    lowest: float = 0.5
    highest: float = 1.5
    rises: tuple[float, ...] = (1.0, 2.0, 4.0, 16.0)
    first_words: int = 3

    def perturb(
        self,
        best: ScoredSentence,
        candidates: Candidates,
        objective: Objective,
        state: SearchState,
        rng: np.random.Generator,
    ) -> ScoredSentence | None:
        """See `Perturbation.perturb`."""
        losses = PricedLosses(candidates, objective)
        for _ in range(self.oscillations):
            sentence = best.sentence
            for index in rng.permutation(candidates.positions)[: self.random_words].tolist():
                words = np.flatnonzero(candidates.allowed(sentence, index))
                if len(words):
                    sentence = losses.replace(sentence, index, int(rng.choice(words)))
            first_price = rng.uniform(self.lowest, self.highest)
            for rise in self.rises:
                losses.price = first_price * rise
                sentence = self._settle(sentence, losses, rng)
            log_probs = objective.evaluator.log_probs(sentence)
            if sentence != best.sentence and objective.feasible(log_probs[:, None])[0]:
                return objective.assess(sentence, log_probs)
        return super().perturb(best, candidates, objective, state, rng)

    def _settle(
        self, sentence: Sentence, losses: PricedLosses, rng: np.random.Generator
    ) -> Sentence:
        """Replace words until neither one nor two next to each other lower the loss."""
        loss = losses.of_sentence(sentence)
        while True:
            # Single words, at positions in random cycles, until none is better anywhere: as in
            # `climb`, but for the best word at once, priced, and not written down
            cycle: list[int] = []
            failures_in_a_row = 0
            while failures_in_a_row < len(losses.positions):
                cycle = cycle or rng.permutation(losses.positions).tolist()
                changed, lowest = losses.best(sentence, cycle.pop())
                failures_in_a_row += 1
                if lowest < loss - _ROUNDING:
                    sentence, loss, failures_in_a_row = changed, lowest, 0
            # The best pair at the first position, in random order, where there is a better one
            for index in rng.permutation(losses.positions).tolist():
                if index + 1 not in losses.positions:
                    continue
                of_firsts = losses.of_words(sentence, index)
                n_firsts = min(self.first_words, len(of_firsts))
                firsts = np.argpartition(of_firsts, n_firsts - 1)[:n_firsts]
                firsts = firsts[np.isfinite(of_firsts[firsts])]
                pairs = [
                    losses.best(losses.replace(sentence, index, first), index + 1)
                    for first in firsts.tolist()
                ]
                changed, lowest = min(pairs, key=lambda pair: pair[1], default=(sentence, np.inf))
                if lowest < loss - _ROUNDING:
                    sentence, loss = changed, lowest
                    break
            else:
                return sentence


class PricedLosses:
    """Losses of sentences where what misses the floor is paid for, computed once each.

    Args:
        candidates: the words that may stand at each position.
        objective: whose loss and shortfall these are, and whose models score.
        price: nats for each nat below the floor.
    """

    def __init__(self, candidates: Candidates, objective: Objective, price: float = 0.0) -> None:
        self.price, self.positions = price, candidates.positions
        self._candidates, self._objective = candidates, objective
        self._known = SizedCache(self._assess_words, lambda pair: 2 * pair[0].nbytes, _CACHED_BYTES)

    def replace(self, sentence: Sentence, index: int, column: int) -> Sentence:
        """The sentence with the word of a column at a position."""
        return sentence.replace(index, self._candidates.vocabulary.at(index)[column])

    def of_words(self, sentence: Sentence, index: int) -> FloatArray:
        """Loss + price * shortfall with each word at a 0-based position, (n_words,), nats.

        Infinite where a word is not allowed or makes a sentence that cannot come back to the floor
        at any price.
        """
        losses, shortfalls = self._known(sentence, index)
        return losses + self.price * shortfalls

    def best(self, sentence: Sentence, index: int) -> tuple[Sentence, float]:
        """The sentence with the best word at a position, and its loss."""
        of_words = self.of_words(sentence, index)
        column = int(of_words.argmin())
        return self.replace(sentence, index, column), float(of_words[column])

    def of_sentence(self, sentence: Sentence) -> float:
        """Loss + price * shortfall of a sentence as it stands."""
        log_probs = self._objective.evaluator.log_probs(sentence)[:, None]
        losses, shortfalls = self._assess(log_probs, np.ones(1, np.bool_))
        return float(losses[0] + self.price * shortfalls[0])

    def _assess_words(self, sentence: Sentence, index: int) -> tuple[FloatArray, FloatArray]:
        """Losses and shortfalls with each word at a position, (n_words,) each, nats."""
        words, models = self._candidates.vocabulary.at(index), self._objective.evaluator.models
        each = [model.replacement_log_probs(sentence, index, words) for model in models]
        return self._assess(np.stack(each), self._candidates.allowed(sentence, index))

    def _assess(self, log_probs: FloatArray, keeps: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Losses and shortfalls, (n_sentences,) each, of sentences of which some are allowed."""
        losses, shortfalls = self._objective.loss(log_probs), self._objective.shortfall(log_probs)
        # No price outweighs a loss of -inf
        keeps = keeps & np.isfinite(shortfalls) & ((losses > -np.inf) | (shortfalls == 0))
        return np.where(keeps, losses, np.inf), np.where(keeps, shortfalls, 0.0)
