"""New starts for a climb at a local optimum (iterated local search).

A local optimum is usually just above the floor. There are two methods for a new start.
`Perturbation` replaces some words and stays above the floor. It prefers words that the accepting
models find likelier than the rejecting models do, even if the loss then increases. This increases
the slack, the margin above the floor, which the next round can use.

`Oscillation` passes through sentences below the floor (strategic oscillation). It needs cheap
scores of all words. A climb replaces one word at a time, cannot pass such sentences, and ends at a
local optimum with few feasible neighbours. Therefore `Oscillation` replaces the floor by a penalty
for a while, and minimises

    loss + price * shortfall          in nats; the shortfall is 0 at the floor and above

First, it replaces a few words at random. A low price leads to sentences far below the floor, which
are unlikely under the reject model. Each higher price leads back towards the floor, until a
violation costs more than it gains (Glover 1977, *Heuristics for integer programming using surrogate
constraints*).
If no single word lowers this sum, two neighbouring words are replaced at once. For an n-gram model,
most words are good or bad only together with their neighbours.

Example with a floor of -20 nats: `The dog sleeps` has a loss of -18 and is at the floor. The prices
0.5, 1 and 2 lead to

    price    sentence            accept    loss    loss + price * shortfall
    0.5      The idea sleeps        -26     -27    -27 + 0.5 * 6 = -24
    1        The idea barks         -24     -25    -25 + 1 * 4   = -21
    2        The cat barks          -20     -22    -22

The result is 4 nats better than the start, and has two other words.
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

_ROUNDING = 1e-9  # nats; smaller gains are rounding errors
_CACHED_BYTES = 2**26


@dataclass(frozen=True)
class Perturbation:
    """A method for new starts: replace a few words by those with the largest expected slack.

    Attributes:
        max_words: maximum number of replaced words.
        max_drafts: maximum number of words of a position that a draft scores.
        draft_covers: effort of a draft; see `LanguageModel.draft`.
        patience: rounds without gain after which the search ends.
        tries: maximum number of sentences to score until one satisfies the constraint.
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
        """Return an exactly scored sentence that satisfies the constraint; None to end the search.

        Args:
            best: best sentence so far.
            candidates: words allowed at each position.
            objective: loss, constraint and evaluator.
            state: search state, which this may update.
            rng: random generator.
        """
        evaluator = objective.evaluator
        for _ in range(self.tries):
            perturbed = best
            n_words = int(rng.integers(1, self.max_words + 1))
            for index in rng.permutation(candidates.positions)[:n_words].tolist():
                position = candidates.at(perturbed, index)
                estimates = PositionEstimates(position, objective, state)
                columns = np.flatnonzero(position.allowed)
                columns = self._select_slackest(objective, estimates, columns)
                for number in range(len(estimates.mean)):
                    estimates.refine_under(number, columns, self.draft_covers)
                columns = self._select_slackest(objective, estimates, columns)
                if len(columns):
                    # The log-probabilities are expected values; the loss is only a placeholder
                    sentence = position.replace(position.words[columns[0]])
                    scores = estimates.mean[:, columns[0]]
                    perturbed = ScoredSentence(sentence, scores, best.loss)
            if perturbed.sentence == best.sentence:
                continue
            # Score exactly, until the constraint is violated; any loss is accepted
            log_probs = np.full(len(evaluator.models), np.nan)
            for number in range(len(evaluator.models)):
                log_probs[number] = evaluator.log_prob(number, perturbed.sentence)
                if not objective.promising(log_probs[:, None], np.inf, np.inf)[0]:
                    break
            else:
                return objective.assess(perturbed.sentence, log_probs)
        return None

    def _select_slackest(
        self, objective: Objective, estimates: PositionEstimates, columns: IntArray
    ) -> IntArray:
        """Return the words with most slack that should satisfy the constraint, best first."""
        mean, spread = estimates.mean[:, columns], estimates.spread[:, columns]
        # Require the constraint even if accepting models err by one standard deviation
        cautious = mean - np.array(objective.accepting)[:, None] * spread
        feasible = objective.feasible(cautious)
        order = np.argsort(-objective.slack(mean[:, feasible]), kind="stable")
        return columns[feasible][order[: self.max_drafts]]


@dataclass(frozen=True)
class Oscillation(Perturbation):
    """A method for new starts: go below the floor at a low price, and return as the price rises.

    All words of a position are scored exactly at every visit (`LanguageModel.cheap_replacements`).
    If the prices lead back to the best sentence, or to no feasible sentence, the start is that of
    `Perturbation`.

    Attributes:
        patience: rounds without gain after which the search ends.
        oscillations: maximum number of attempts to find a new feasible sentence.
        random_words: number of words replaced at random at the beginning.
        lowest: lower limit of the random first price, nats per nat.
        highest: upper limit of the random first price, nats per nat.
        rises: successive factors by which the first price is multiplied.
        first_words: number of best words at a position that are combined with every next word.
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
        """Return a new start; see `Perturbation.perturb`."""
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
                sentence = self._descend(sentence, losses, rng)
            log_probs = objective.evaluator.log_probs(sentence)
            if sentence != best.sentence and objective.feasible(log_probs[:, None])[0]:
                return objective.assess(sentence, log_probs)
        return super().perturb(best, candidates, objective, state, rng)

    def _descend(
        self, sentence: Sentence, losses: PricedLosses, rng: np.random.Generator
    ) -> Sentence:
        """Replace words until no word and no tried pair of neighbours (`first_words`) is better."""
        loss = losses.of_sentence(sentence)
        while True:
            # Replace single words at positions in random cycles until none is better. Unlike
            # `climb`, this takes the best word, adds the price and records nothing.
            cycle: list[int] = []
            failures_in_a_row = 0
            while failures_in_a_row < len(losses.positions):
                cycle = cycle or rng.permutation(losses.positions).tolist()
                changed, lowest = losses.best(sentence, cycle.pop())
                failures_in_a_row += 1
                if lowest < loss - _ROUNDING:
                    sentence, loss, failures_in_a_row = changed, lowest, 0
            # Take the best pair at the first position, in random order, that has a better pair
            for index in rng.permutation(losses.positions).tolist():
                if index + 1 not in losses.positions:
                    continue
                first_losses = losses.of_words(sentence, index)
                n_firsts = min(self.first_words, len(first_losses))
                firsts = np.argpartition(first_losses, n_firsts - 1)[:n_firsts]
                firsts = firsts[np.isfinite(first_losses[firsts])]
                starts = [losses.replace(sentence, index, first) for first in firsts.tolist()]
                pairs = [losses.best(start, index + 1) for start in starts]
                changed, lowest = min(pairs, key=lambda pair: pair[1], default=(sentence, np.inf))
                if lowest < loss - _ROUNDING:
                    sentence, loss = changed, lowest
                    break
            else:
                return sentence


class PricedLosses:
    """Cached losses of sentences, with a price for the shortfall below the floor.

    Args:
        candidates: words allowed at each position.
        objective: objective with loss, shortfall and models.
        price: nats for each nat below the floor.
    """

    def __init__(self, candidates: Candidates, objective: Objective, price: float = 0.0) -> None:
        self.price, self.positions = price, candidates.positions
        self._candidates, self._objective = candidates, objective
        self._cached = SizedCache(self._assess_words, lambda p: 2 * p[0].nbytes, _CACHED_BYTES)

    def replace(self, sentence: Sentence, index: int, column: int) -> Sentence:
        """Return the sentence with the word of a column at a position."""
        return sentence.replace(index, self._candidates.vocabulary.at(index)[column])

    def of_words(self, sentence: Sentence, index: int) -> FloatArray:
        """Return loss + price * shortfall with each word at a 0-based position, (n_words,), nats.

        The value is infinite if a word is not allowed, or if no price can lead from the sentence
        back to the floor.
        """
        losses, shortfalls = self._cached(sentence, index)
        return losses + self.price * shortfalls

    def best(self, sentence: Sentence, index: int) -> tuple[Sentence, float]:
        """Return the sentence with the best word at a position, and its loss."""
        losses = self.of_words(sentence, index)
        column = int(losses.argmin())
        return self.replace(sentence, index, column), float(losses[column])

    def of_sentence(self, sentence: Sentence) -> float:
        """Return loss + price * shortfall of a sentence, nats."""
        log_probs = self._objective.evaluator.log_probs(sentence)[:, None]
        losses, shortfalls = self._assess(log_probs, np.ones(1, np.bool_))
        return float(losses[0] + self.price * shortfalls[0])

    def _assess_words(self, sentence: Sentence, index: int) -> tuple[FloatArray, FloatArray]:
        """Return losses and shortfalls with each word at a position, (n_words,) each, nats."""
        words, models = self._candidates.vocabulary.at(index), self._objective.evaluator.models
        rows = [model.replacement_log_probs(sentence, index, words) for model in models]
        return self._assess(np.stack(rows), self._candidates.allowed(sentence, index))

    def _assess(self, log_probs: FloatArray, valid: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return losses, inf for invalid sentences, and shortfalls, (n_sentences,) each."""
        losses, shortfalls = self._objective.loss(log_probs), self._objective.shortfall(log_probs)
        # No price outweighs a loss of -inf, so such a sentence is valid only without a shortfall
        valid = valid & np.isfinite(shortfalls) & ((losses > -np.inf) | (shortfalls == 0))
        return np.where(valid, losses, np.inf), np.where(valid, shortfalls, 0.0)
