"""New starts for a climb at a local optimum (iterated local search).

With one reject model, the loss of a sentence is its log-probability under this model. A climb is a
run of the search loop. A round of a climb replaces single words as long as this lowers the loss.
The round ends at a local optimum. The next round begins at a new start. The floor is the minimum
log-probability under the accept model: the log-probability of the natural sentence.

A local optimum is usually just above the floor, so most replacements lead below the floor. There
are two methods for a new start.

`Perturbation` replaces some words and stays above the floor. It prefers words with which
log p(sentence | accept model) - log p(sentence | reject model) is high, even if the loss increases.
The new sentence is further above the floor, so the next round has more possible replacements.

`Oscillation` passes through sentences below the floor (strategic oscillation, Glover 1977,
*Heuristics for integer programming using surrogate constraints*). It needs cheap scores of all
words. It replaces a few words at random, and then minimises

    loss + price * shortfall          in nats; shortfall: nats below the floor, or 0

A low price leads to sentences far below the floor, which are unlikely under the reject model. Each
higher price leads back towards the floor. If no single word lowers this sum, two neighbouring words
are replaced together. This helps because n-gram models score words together with their neighbours.

Example with a floor of -20 nats: `The dog sleeps` has a loss of -18 and is at the floor. The prices
0.5, 1 and 2 lead to

    price    sentence            accept    loss    loss + price * shortfall
    0.5      The idea sleeps        -26     -27    -27 + 0.5 * 6 = -24
    1        The idea barks         -24     -25    -25 + 1 * 4   = -21
    2        The cat barks          -20     -22    -22

The loss of the result is 4 nats lower than that of the start. Two words have changed.
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
    """A method for new starts: replace a few words by words with the largest expected slack.

    Slack is log p(sentence | accept model) - loss; see `Objective.slack`.

    Attributes:
        max_words: maximum number of words to replace.
        max_drafts: maximum number of words that drafts (cheaper models) score at each position.
        patience: number of rounds in a row without gain after which the search ends.
        tries: maximum number of new sentences to score. The first sentence that is not below the
            floor is the new start. If there is none, the search ends.
    """

    max_words: int = 3
    max_drafts: int = 8
    patience: int = 4
    tries: int = 4

    def perturb(
        self, best: ScoredSentence, candidates: Candidates, objective: Objective, state: SearchState
    ) -> ScoredSentence | None:
        """Return a new start, exactly scored and feasible; None to end the search."""
        evaluator, rng = objective.evaluator, state.rng
        for _ in range(self.tries):
            perturbed = best
            n_words = int(rng.integers(1, self.max_words + 1))
            for index in rng.permutation(candidates.positions)[:n_words].tolist():
                position = candidates.at(perturbed, index)
                estimates = PositionEstimates(position, objective, state)
                columns = np.flatnonzero(position.allowed)
                columns = self._select_slackest(objective, estimates, columns)
                for number in range(len(estimates.mean)):
                    estimates.refine_under(number, columns)
                columns = self._select_slackest(objective, estimates, columns)
                if len(columns):
                    # The log-probabilities are expected values; the loss is only a placeholder
                    sentence = position.replace(position.words[columns[0]])
                    scores = estimates.mean[:, columns[0]]
                    perturbed = ScoredSentence(sentence, scores, best.loss)
            if perturbed.sentence == best.sentence:
                continue
            # Stop scoring if the constraint is violated. A high loss is allowed here
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
        """Return the columns of words with the most slack, best first.

        Only words with which the sentence is probably not below the floor are returned.
        """
        mean, spread = estimates.mean[:, columns], estimates.spread[:, columns]
        # For safety, lower the means under accepting models by one standard deviation
        cautious = mean - np.array(objective.accepting)[:, None] * spread
        feasible = objective.feasible(cautious)
        order = np.argsort(-objective.slack(mean[:, feasible]), kind="stable")
        return columns[feasible][order[: self.max_drafts]]


@dataclass(frozen=True)
class Oscillation(Perturbation):
    """A method for new starts: go below the floor at a low price, and return as the price rises.

    All models must have cheap exact scores of all words (`Scorer.cheap_replacements`). If no
    attempt leads to a new feasible sentence, the new start is that of `Perturbation`.

    Attributes:
        oscillations: maximum number of attempts to find a new feasible sentence.
        random_words: number of words replaced at random at the beginning.
        lowest: lower limit of the random first price. A price is in nats for each nat below the
            floor.
        highest: upper limit of the random first price.
        rises: successive prices, divided by the first price.
        first_words: number of words to try at the first position of two neighbours: the words with
            the lowest sum loss + price * shortfall. Each of these words is combined with all words
            at the second position.
    """

    patience: int = 6
    oscillations: int = 2
    random_words: int = 3
    lowest: float = 0.5
    highest: float = 1.5
    rises: tuple[float, ...] = (1.0, 2.0, 4.0, 16.0)
    first_words: int = 3

    def perturb(
        self, best: ScoredSentence, candidates: Candidates, objective: Objective, state: SearchState
    ) -> ScoredSentence | None:
        """Return a new start; see `Perturbation.perturb`."""
        losses, rng = PricedLosses(candidates, objective), state.rng
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
        return super().perturb(best, candidates, objective, state)

    def _descend(
        self, sentence: Sentence, losses: PricedLosses, rng: np.random.Generator
    ) -> Sentence:
        """Replace a word, or two neighbours, as long as this lowers loss + price * shortfall.

        For two neighbours, only some pairs of words are tried; see `first_words`.
        """
        loss = losses.of_sentence(sentence)
        while True:
            # Visit positions in random cycles, and replace single words while this lowers the sum
            cycle: list[int] = []
            failures_in_a_row = 0
            while failures_in_a_row < len(losses.positions):
                cycle = cycle or rng.permutation(losses.positions).tolist()
                changed, lowest = losses.best(sentence, cycle.pop())
                failures_in_a_row += 1
                if lowest < loss - _ROUNDING:
                    sentence, loss, failures_in_a_row = changed, lowest, 0
            # Try pairs of neighbours in random order until one pair lowers the sum
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
    """Sums loss + price * shortfall, nats, with a cache; see the docstring of the module.

    Args:
        price: nats that are added for each nat below the floor.
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

        The value is infinite for words that are not allowed. It is also infinite for sentences from
        which no price leads back to the floor.
        """
        losses, shortfalls = self._cached(sentence, index)
        return losses + self.price * shortfalls

    def best(self, sentence: Sentence, index: int) -> tuple[Sentence, float]:
        """Return the sentence with the best word at a position, and its value in `of_words`."""
        losses = self.of_words(sentence, index)
        column = int(losses.argmin())
        return self.replace(sentence, index, column), float(losses[column])

    def of_sentence(self, sentence: Sentence) -> float:
        """Return loss + price * shortfall of a sentence, nats."""
        log_probs = self._objective.evaluator.log_probs(sentence)[:, None]
        losses, shortfalls = self._assess(log_probs, np.ones(1, np.bool_))
        return float(losses[0] + self.price * shortfalls[0])

    def _assess_words(self, sentence: Sentence, index: int) -> tuple[FloatArray, FloatArray]:
        words, models = self._candidates.vocabulary.at(index), self._objective.evaluator.models
        rows = [model.replacement_scores(sentence, index, words) for model in models]
        return self._assess(np.stack(rows), self._candidates.allowed(sentence, index))

    def _assess(self, log_probs: FloatArray, valid: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return losses (inf for invalid sentences) and shortfalls, (n_sentences,) each, nats."""
        losses, shortfalls = self._objective.loss(log_probs), self._objective.shortfall(log_probs)
        # No price outweighs a loss of -inf. So a sentence with this loss is valid only if it has no
        # shortfall
        valid = valid & np.isfinite(shortfalls) & ((losses > -np.inf) | (shortfalls == 0))
        return np.where(valid, losses, np.inf), np.where(valid, shortfalls, 0.0)
