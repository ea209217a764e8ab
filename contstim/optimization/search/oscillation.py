"""New starts from below the floor, where scores of all words are cheap (strategic oscillation).

Replacing one word at a time, a climb cannot cross a sentence that misses the floor, and a settled
sentence has few others next to it that keep it. So for a while the floor is not kept but paid for:
what is minimised is

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

from contstim.optimization.search.perturbation import Perturbation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import BoolArray, FloatArray
    from contstim.optimization.search.constraints import Candidates
    from contstim.optimization.search.evaluator import Evaluator
    from contstim.optimization.search.objectives import Objective, ScoredSentence
    from contstim.optimization.search.screening import SearchState
    from contstim.sentence import Sentence

_ROUNDING = 1e-9  # nats; a gain is more than that, so that rounding is none
_CACHED_BYTES = 2**26


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
        position_losses = PositionLosses(candidates, objective, evaluator)
        for _ in range(self.tries):
            sentence = best.sentence
            for index in rng.permutation(candidates.positions)[: self.random_words].tolist():
                words = np.flatnonzero(candidates.allowed(sentence, index))
                if len(words):
                    sentence = position_losses.replace(sentence, index, int(rng.choice(words)))
            first_price = rng.uniform(self.lowest, self.highest)
            for rise in self.rises:
                losses = Priced(position_losses, first_price * rise)
                sentence = self._settle(sentence, losses, rng)
            log_probs = evaluator.log_probs(sentence)
            if sentence != best.sentence and objective.feasible(log_probs[:, None])[0]:
                return objective.assess(sentence, log_probs)
        return self.otherwise.perturb(best, candidates, objective, evaluator, state, rng)

    def _settle(self, sentence: Sentence, losses: Priced, rng: np.random.Generator) -> Sentence:
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
        self, sentence: Sentence, loss: float, losses: Priced, rng: np.random.Generator
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
            losses.position_losses.compute(with_firsts, index + 1)
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


class PositionLosses:
    """Loss and shortfall of sentences with every word at a position, computed once each.

    Args:
        candidates: the words that may stand at each position.
        objective: whose loss and shortfall these are.
        evaluator: its models score.
    """

    def __init__(self, candidates: Candidates, objective: Objective, evaluator: Evaluator) -> None:
        self.candidates = candidates
        self._objective, self._evaluator = objective, evaluator
        self._known: dict[tuple[Sentence, int], tuple[FloatArray, FloatArray]] = {}
        n_words = max(len(candidates.vocabulary.at(index)) for index in (0, 1))
        self._most_known = max(1, _CACHED_BYTES // (16 * n_words))

    def replace(self, sentence: Sentence, index: int, column: int) -> Sentence:
        """The sentence with the word of a column at a position."""
        return sentence.replace(index, self.candidates.vocabulary.at(index)[column])

    def of_words(self, sentence: Sentence, index: int) -> tuple[FloatArray, FloatArray]:
        """Losses and shortfalls with each word at a 0-based position, (n_words,) each, nats.

        The loss is infinite, and the shortfall 0, where a word is not allowed or makes a sentence
        that cannot come back to the floor at any price.
        """
        if (sentence, index) not in self._known:
            self.compute([sentence], index)
        return self._known[sentence, index]

    def compute(self, sentences: Sequence[Sentence], index: int) -> None:
        """Compute those of several sentences together, to be asked for next."""
        new = [sentence for sentence in sentences if (sentence, index) not in self._known]
        if not new:
            return
        if len(self._known) + len(new) > self._most_known:
            self._known.clear()
            new = list(sentences)
        words, models = self.candidates.vocabulary.at(index), self._evaluator.models
        log_probs = np.empty((len(models), len(new), len(words)))
        keeps = np.empty((len(new), len(words)), np.bool_)
        for i, sentence in enumerate(new):
            keeps[i] = self.candidates.allowed(sentence, index)
            for number, model in enumerate(models):
                log_probs[number, i] = model.replacement_log_probs(sentence, index, words)
        # Objectives take (n_models, n_sentences): here each sentence with each word
        of_each = self._assess(log_probs.reshape(len(models), -1), keeps.ravel())
        losses, shortfalls = (values.reshape(keeps.shape) for values in of_each)
        for i, sentence in enumerate(new):
            self._known[sentence, index] = losses[i], shortfalls[i]

    def of_sentence(self, sentence: Sentence) -> tuple[float, float]:
        """Loss and shortfall of a sentence, nats, as in `of_words`."""
        log_probs = self._evaluator.log_probs(sentence)[:, None]
        losses, shortfalls = self._assess(log_probs, np.ones(1, np.bool_))
        return float(losses[0]), float(shortfalls[0])

    def _assess(self, log_probs: FloatArray, keeps: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Losses and shortfalls, (n_sentences,) each, of sentences of which some are allowed."""
        losses, shortfalls = self._objective.loss(log_probs), self._objective.shortfall(log_probs)
        # No price outweighs a loss of -inf
        keeps = keeps & np.isfinite(shortfalls) & ((losses > -np.inf) | (shortfalls == 0))
        return np.where(keeps, losses, np.inf), np.where(keeps, shortfalls, 0.0)


@dataclass(frozen=True)
class Priced:
    """Losses of sentences where what misses the floor is paid for.

    Attributes:
        position_losses: losses and shortfalls.
        price: nats for each nat below the floor.
    """

    position_losses: PositionLosses
    price: float

    @property
    def positions(self) -> tuple[int, ...]:
        """The 0-based positions at which words may be replaced."""
        return self.position_losses.candidates.positions

    def of_sentence(self, sentence: Sentence) -> float:
        """Loss + price * shortfall of a sentence, nats."""
        loss, shortfall = self.position_losses.of_sentence(sentence)
        return loss + self.price * shortfall

    def of_words(self, sentence: Sentence, index: int) -> FloatArray:
        """Loss + price * shortfall with each word at a position, (n_words,), nats."""
        losses, shortfalls = self.position_losses.of_words(sentence, index)
        priced: FloatArray = losses + self.price * shortfalls
        return priced

    def replace(self, sentence: Sentence, index: int, column: int) -> Sentence:
        """See `PositionLosses.replace`."""
        return self.position_losses.replace(sentence, index, column)
