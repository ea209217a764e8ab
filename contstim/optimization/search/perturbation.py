"""New starts for a climb that has settled: its best sentence, changed (iterated local search).

A settled sentence mostly stands just above the floor. There are two ways on. `SlackPerturbation`
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

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.optimization.search.objectives import ScoredSentence
from contstim.optimization.search.screening import PositionEstimates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.optimization.search.constraints import Candidates, Position
    from contstim.optimization.search.evaluator import Evaluator
    from contstim.optimization.search.objectives import Objective
    from contstim.optimization.search.screening import SearchState
    from contstim.sentence import Sentence

_ROUNDING = 1e-9  # nats; a gain is more than that, so that rounding is none
_CACHED_BYTES = 2**26


class Perturbation(ABC):
    """A way to make a new start.

    Attributes:
        patience: rounds without gain after which the search ends.
    """

    patience: int

    @abstractmethod
    def perturb(
        self,
        best: ScoredSentence,
        candidates: Candidates,
        objective: Objective,
        evaluator: Evaluator,
        state: SearchState,
        rng: np.random.Generator,
    ) -> ScoredSentence | None:
        """A sentence that keeps the constraint, exactly scored; None to end the search.

        Args:
            best: the best sentence so far.
            candidates: the words that may stand at each position.
            objective: what to minimise and to keep.
            evaluator: scores exactly.
            state: what the proposer has learned; this may add to it.
            rng: for what is left to chance.
        """


@dataclass(frozen=True)
class SlackPerturbation(Perturbation):
    """Replace a few words by those with the largest expected slack.

    Attributes:
        max_words: how many are replaced at most.
        max_drafts: for how many words of a position a draft is asked.
        draft_covers: how much work a draft is; see `LanguageModel.draft`.
        patience: see `Perturbation`.
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
        evaluator: Evaluator,
        state: SearchState,
        rng: np.random.Generator,
    ) -> ScoredSentence | None:
        """See `Perturbation.perturb`."""
        for _ in range(self.tries):
            perturbed = best
            n_words = int(rng.integers(1, self.max_words + 1))
            for index in rng.permutation(candidates.positions)[:n_words].tolist():
                position = candidates.at(perturbed, index)
                estimates = PositionEstimates(position, objective, evaluator, state)
                perturbed = self._replace(position, objective, estimates)
            if perturbed.sentence == best.sentence:
                continue
            # Its scores were expected ones. Now exact ones, until it is clear that the constraint
            # is broken; which loss they make does not matter.
            log_probs = np.full(len(evaluator.models), np.nan)
            for number in range(len(evaluator.models)):
                log_probs[number] = evaluator.log_prob(number, perturbed.sentence)
                if not objective.promising(log_probs[:, None], np.inf, np.inf)[0]:
                    break
            else:
                return objective.assess(perturbed.sentence, log_probs)
        return None

    def _replace(
        self, position: Position, objective: Objective, estimates: PositionEstimates
    ) -> ScoredSentence:
        """The sentence with the word of most slack among those expected to keep the constraint.

        Its log-probabilities are expected ones, not exact, and its loss is not its own.
        """
        columns = np.flatnonzero(position.allowed)
        columns = self._slackest(objective, estimates, columns)
        for number in range(len(estimates.mean)):
            estimates.refine_under(number, columns, self.draft_covers)
        columns = self._slackest(objective, estimates, columns)
        if not len(columns):
            return position.current
        sentence = position.replace(position.words[columns[0]])
        return ScoredSentence(sentence, estimates.mean[:, columns[0]], position.current.loss)

    def _slackest(
        self, objective: Objective, estimates: PositionEstimates, columns: IntArray
    ) -> IntArray:
        mean, spread = estimates.mean[:, columns], estimates.spread[:, columns]
        # A word is to keep the constraint even where accepting models err by one spread.
        cautious = mean - np.array(objective.accepting)[:, None] * spread
        feasible = objective.feasible(cautious)
        columns, slack = columns[feasible], objective.slack(mean[:, feasible])
        if len(slack) > self.max_drafts:  # few remain to be sorted
            high = slack >= np.partition(slack, -self.max_drafts)[-self.max_drafts]
            columns, slack = columns[high], slack[high]
        order = np.argsort(-slack, kind="stable")
        slackest: IntArray = columns[order[: self.max_drafts]]
        return slackest


@dataclass(frozen=True)
class Oscillation(Perturbation):
    """Go below the floor at a low price, and back at higher ones.

    All words of a position are scored exactly at every visit (`LanguageModel.cheap_replacements`).

    Attributes:
        otherwise: makes the start where prices lead back to the best sentence, or to none that
            keeps the floor.
        random_words: how many are replaced at random to begin with.
        lowest: the first price is drawn between this and the next, nats for each nat.
        highest: see `lowest`.
        rises: by what the first price is multiplied, one after the other.
        first_words: so many of the best words at a position are tried with every word after them.
        patience: see `Perturbation`.
        tries: how often prices may lead back, or to no sentence that keeps the floor.
    """

    otherwise: Perturbation
    random_words: int = 3
    lowest: float = 0.5
    highest: float = 1.5
    rises: tuple[float, ...] = (1.0, 2.0, 4.0, 16.0)
    first_words: int = 3
    patience: int = 6
    tries: int = 2

    def perturb(
        self,
        best: ScoredSentence,
        candidates: Candidates,
        objective: Objective,
        evaluator: Evaluator,
        state: SearchState,
        rng: np.random.Generator,
    ) -> ScoredSentence | None:
        """See `Perturbation.perturb`."""
        losses = PricedLosses(candidates, objective, evaluator)
        for _ in range(self.tries):
            sentence = best.sentence
            for index in rng.permutation(candidates.positions)[: self.random_words].tolist():
                words = np.flatnonzero(candidates.allowed(sentence, index))
                if len(words):
                    sentence = losses.replace(sentence, index, int(rng.choice(words)))
            first_price = rng.uniform(self.lowest, self.highest)
            for rise in self.rises:
                losses.price = first_price * rise
                sentence = self._settle(sentence, losses, rng)
            log_probs = evaluator.log_probs(sentence)
            if sentence != best.sentence and objective.feasible(log_probs[:, None])[0]:
                return objective.assess(sentence, log_probs)
        return self.otherwise.perturb(best, candidates, objective, evaluator, state, rng)

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
                index = cycle.pop()
                of_words = losses.of_words(sentence, index)
                column = int(of_words.argmin())
                if of_words[column] < loss - _ROUNDING:
                    sentence = losses.replace(sentence, index, column)
                    loss, failures_in_a_row = float(of_words[column]), 0
                else:
                    failures_in_a_row += 1
            better = self._replace_two(sentence, loss, losses, rng)
            if better is None:
                return sentence
            sentence, loss = better

    def _replace_two(
        self, sentence: Sentence, loss: float, losses: PricedLosses, rng: np.random.Generator
    ) -> tuple[Sentence, float] | None:
        """The sentence with two neighbours replaced by a better pair, and its loss; None if none.

        The pair is the best at the first position, in random order, where there is a better one.
        """
        for index in rng.permutation(losses.positions).tolist():
            if index + 1 not in losses.positions:
                continue
            of_first_words = losses.of_words(sentence, index)
            n_firsts = min(self.first_words, len(of_first_words))
            firsts = np.argpartition(of_first_words, n_firsts - 1)[:n_firsts]
            firsts = firsts[np.isfinite(of_first_words[firsts])]
            with_firsts = [losses.replace(sentence, index, first) for first in firsts.tolist()]
            losses.compute(with_firsts, index + 1)
            best, lowest = None, loss - _ROUNDING
            for with_first in with_firsts:
                of_second_words = losses.of_words(with_first, index + 1)
                second = int(of_second_words.argmin())
                if of_second_words[second] < lowest:
                    lowest = float(of_second_words[second])
                    best = losses.replace(with_first, index + 1, second)
            if best is not None:
                return best, lowest
        return None


class PricedLosses:
    """Losses of sentences where what misses the floor is paid for, computed once each.

    Args:
        candidates: the words that may stand at each position.
        objective: whose loss and shortfall these are.
        evaluator: its models score.
        price: nats for each nat below the floor.
    """

    def __init__(
        self, candidates: Candidates, objective: Objective, evaluator: Evaluator, price: float = 0.0
    ) -> None:
        self.price, self.positions = price, candidates.positions
        self._candidates, self._objective, self._evaluator = candidates, objective, evaluator
        # Losses and shortfalls with each word at a position, (n_words,) each, nats
        self._known: dict[tuple[Sentence, int], tuple[FloatArray, FloatArray]] = {}
        n_words = max(len(candidates.vocabulary.at(index)) for index in (0, 1))
        self._most_known = max(1, _CACHED_BYTES // (16 * n_words))

    def replace(self, sentence: Sentence, index: int, column: int) -> Sentence:
        """The sentence with the word of a column at a position."""
        return sentence.replace(index, self._candidates.vocabulary.at(index)[column])

    def of_words(self, sentence: Sentence, index: int) -> FloatArray:
        """Loss + price * shortfall with each word at a 0-based position, (n_words,), nats.

        Infinite where a word is not allowed or makes a sentence that cannot come back to the floor
        at any price.
        """
        self.compute([sentence], index)
        losses, shortfalls = self._known[sentence, index]
        priced: FloatArray = losses + self.price * shortfalls
        return priced

    def of_sentence(self, sentence: Sentence) -> float:
        """The same of a sentence as it stands."""
        log_probs = self._evaluator.log_probs(sentence)[:, None]
        losses, shortfalls = self._assess(log_probs, np.ones(1, np.bool_))
        return float(losses[0] + self.price * shortfalls[0])

    def compute(self, sentences: Sequence[Sentence], index: int) -> None:
        """Compute those of several sentences together, to be asked for next."""
        new = [sentence for sentence in sentences if (sentence, index) not in self._known]
        if not new:
            return
        if len(self._known) + len(new) > self._most_known:
            self._known.clear()
            new = list(sentences)
        words, models = self._candidates.vocabulary.at(index), self._evaluator.models
        log_probs = np.empty((len(models), len(new), len(words)))
        keeps = np.empty((len(new), len(words)), np.bool_)
        for i, sentence in enumerate(new):
            keeps[i] = self._candidates.allowed(sentence, index)
            for number, model in enumerate(models):
                log_probs[number, i] = model.replacement_log_probs(sentence, index, words)
        # Objectives take (n_models, n_sentences): here each sentence with each word
        of_each = self._assess(log_probs.reshape(len(models), -1), keeps.ravel())
        losses, shortfalls = (values.reshape(keeps.shape) for values in of_each)
        for i, sentence in enumerate(new):
            self._known[sentence, index] = losses[i], shortfalls[i]

    def _assess(self, log_probs: FloatArray, keeps: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Losses and shortfalls, (n_sentences,) each, of sentences of which some are allowed."""
        losses, shortfalls = self._objective.loss(log_probs), self._objective.shortfall(log_probs)
        # No price outweighs a loss of -inf
        keeps = keeps & np.isfinite(shortfalls) & ((losses > -np.inf) | (shortfalls == 0))
        return np.where(keeps, losses, np.inf), np.where(keeps, shortfalls, 0.0)
