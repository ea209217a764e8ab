"""Loss that a search minimises, and constraint that it keeps, from exact log-probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from contstim.files.arrays import BoolArray, FloatArray
    from contstim.optimization.search.evaluator import Evaluator
    from contstim.words.sentence import Sentence


@dataclass(frozen=True)
class ScoredSentence:
    """A sentence with its log-probabilities, (n_models,), nats, and the loss they make.

    They are exact, except where a perturbation replaces a further word: there they are expected.
    """

    sentence: Sentence
    log_probs: FloatArray
    loss: float


@dataclass(frozen=True)
class Objective:
    """A sentence that some models accept and others reject (Golan et al. 2023, Eq. 2).

    The loss is the log-probability, above its limit, under the model that rejects least. Every
    accepting model is to find the sentence no less likely than its limit, which of a model that
    judges fluency is its floor, and of others the natural sentence's log-probability.

    Attributes:
        evaluator: scores exactly; its models fix the rows of every array of log-probabilities,
            (n_models, n_sentences), nats.
        accepting: which models accept: a higher log-probability can only help, as it never raises
            the loss and never breaks the constraint. Of the others a lower one can only help.
        limits: of each model, nats; 0 of a single model that rejects makes its log-probability the
            loss.
    """

    evaluator: Evaluator
    accepting: tuple[bool, ...]
    limits: tuple[float, ...]

    def loss(self, log_probs: FloatArray) -> FloatArray:
        """Loss to minimise, (n_sentences,)."""
        rows = zip(self.accepting, log_probs, self.limits, strict=True)
        # Asked of every word at every visit: without a copy for a single model that rejects
        return reduce(
            np.maximum, [row - limit if limit else row for a, row, limit in rows if not a]
        )

    def margins(self, log_probs: FloatArray) -> list[tuple[FloatArray, float | FloatArray]]:
        """What must be no less than what, (n_sentences,) each, nats: the constraint."""
        rows = zip(self.accepting, log_probs, self.limits, strict=True)
        return [(row, limit) for accepting, row, limit in rows if accepting]

    def shortfall(self, log_probs: FloatArray) -> FloatArray:
        """By how much sentences miss the constraint, (n_sentences,), nats; 0 where they keep it."""
        total = np.zeros(log_probs.shape[1])
        for values, floor in self.margins(log_probs):
            misses = ~(values >= floor)  # not -inf - -inf, but nan
            below = np.zeros(len(total))
            np.subtract(floor, values, out=below, where=misses)
            total += below
        return total

    def feasible(self, log_probs: FloatArray) -> BoolArray:
        """Mask of sentences that keep the constraint, (n_sentences,); False if a score is nan."""
        return reduce(np.logical_and, [row >= floor for row, floor in self.margins(log_probs)])

    def slack(self, log_probs: FloatArray) -> FloatArray:
        """Sum of the accepting models' log-probabilities less the loss, (n_sentences,), nats.

        High where the constraint leaves room.
        """
        accepted = log_probs[np.array(self.accepting)].sum(axis=0)  # over the accept models' rows
        with np.errstate(invalid="ignore"):  # -inf - -inf
            slack = accepted - self.loss(log_probs)
        return np.where(np.isnan(slack), -np.inf, slack)

    def assess(self, sentence: Sentence, log_probs: FloatArray) -> ScoredSentence:
        """A sentence with its exact log-probabilities, (n_models,), nats, and their loss."""
        return ScoredSentence(sentence, log_probs, float(self.loss(log_probs[:, None])[0]))

    def promising(
        self, log_probs: FloatArray, upper_bounds: FloatArray | float, loss: float
    ) -> BoolArray:
        """Mask of sentences that may still keep the constraint with a loss below the given one.

        Args:
            log_probs: (n_models, n_sentences), nats; nan where not known.
            upper_bounds: which these cannot exceed, (n_models, n_sentences); inf where unknown.
            loss: to fall below.
        """
        # The best that scores not known can be: their bound if accepting, nothing if rejecting.
        best = log_probs.copy()
        bounds = np.broadcast_to(upper_bounds, best.shape)
        for row, (accepting, bound) in enumerate(zip(self.accepting, bounds, strict=True)):
            np.copyto(best[row], bound if accepting else -np.inf, where=np.isnan(best[row]))
        return np.logical_and(self.feasible(best), self.loss(best) < loss)


@dataclass(frozen=True)
class PairObjective(Objective):
    """One sentence of a pair on which two models disagree, the other one given.

    Each model is to find its own sentence of the pair likelier. With the other sentence fixed, the
    difference of the two models' log-ratios, which the pair maximises, grows by what this loss
    falls. First the model that is to prefer this sentence, then the one that is to prefer the
    other, with the other sentence's log-probabilities as limits.
    """

    def loss(self, log_probs: FloatArray) -> FloatArray:
        """Log-probability under the second model less that under the first, nats."""
        with np.errstate(invalid="ignore"):  # -inf - -inf
            difference = log_probs[1] - log_probs[0]
        return np.where(np.isnan(difference), np.inf, difference)

    def margins(self, log_probs: FloatArray) -> list[tuple[FloatArray, float | FloatArray]]:
        """The same, and the second model prefers the other sentence."""
        first, *judges = super().margins(log_probs)
        return [first, (np.broadcast_to(self.limits[1], log_probs.shape[1]), log_probs[1]), *judges]
