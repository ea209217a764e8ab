"""Loss and constraint of a search, computed from exact log-probabilities."""

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
    """A sentence with its log-probabilities, (n_models,), nats, and its loss.

    The log-probabilities are exact, except between the replacements of a perturbation, where they
    are expected values.
    """

    sentence: Sentence
    log_probs: FloatArray
    loss: float


@dataclass(frozen=True)
class Objective:
    """Objective of a sentence that some models accept and others reject (2023, Eq. 2).

    The loss is the largest log-probability above the limit among the rejecting models. The
    constraint is that every accepting model's log-probability is at or above its limit. The limit
    of a judge is minus infinity; the limit of other models is their log-probability of the
    natural sentence.

    Attributes:
        evaluator: evaluator for exact scores; the order of its models is the order of rows in all
            arrays of log-probabilities, (n_models, n_sentences), nats.
        accepting: whether each model accepts. A higher log-probability under an accepting model, or
            a lower one under a rejecting model, never raises the loss or breaks the constraint.
        limits: limit of each model, nats; with 0 for a single rejecting model, the loss is its
            log-probability.
    """

    evaluator: Evaluator
    accepting: tuple[bool, ...]
    limits: tuple[float, ...]

    def loss(self, log_probs: FloatArray) -> FloatArray:
        """Return the loss to minimise, (n_sentences,)."""
        rows = zip(self.accepting, log_probs, self.limits, strict=True)
        # Computed for every word at every visit, so a single rejecting model needs no copy
        above = [row - limit if limit else row for accepts, row, limit in rows if not accepts]
        return reduce(np.maximum, above)

    def margins(self, log_probs: FloatArray) -> list[tuple[FloatArray, float | FloatArray]]:
        """Return the constraint as pairs of values and their lower bounds, (n_sentences,), nats."""
        rows = zip(self.accepting, log_probs, self.limits, strict=True)
        return [(row, limit) for accepting, row, limit in rows if accepting]

    def shortfall(self, log_probs: FloatArray) -> FloatArray:
        """Return the total violation of the constraint, (n_sentences,), nats; 0 if satisfied."""
        total = np.zeros(log_probs.shape[1])
        for values, floor in self.margins(log_probs):
            misses = ~(values >= floor)  # also True for nan; False if both are -inf
            below = np.zeros(len(total))
            np.subtract(floor, values, out=below, where=misses)
            total += below
        return total

    def feasible(self, log_probs: FloatArray) -> BoolArray:
        """Return a mask of sentences that satisfy the constraint, (n_sentences,); False for nan."""
        return reduce(np.logical_and, [row >= floor for row, floor in self.margins(log_probs)])

    def slack(self, log_probs: FloatArray) -> FloatArray:
        """Return summed log-probabilities of accepting models minus the loss, (n_sentences,), nats.

        Sentences with high values are far from violating the constraint.
        """
        accepted = log_probs[np.array(self.accepting)].sum(axis=0)
        with np.errstate(invalid="ignore"):  # -inf - -inf
            slack = accepted - self.loss(log_probs)
        return np.where(np.isnan(slack), -np.inf, slack)

    def assess(self, sentence: Sentence, log_probs: FloatArray) -> ScoredSentence:
        """Return a sentence with its exact log-probabilities, (n_models,), nats, and its loss."""
        return ScoredSentence(sentence, log_probs, float(self.loss(log_probs[:, None])[0]))

    def promising(
        self, log_probs: FloatArray, upper_bounds: FloatArray | float, loss: float
    ) -> BoolArray:
        """Return a mask of sentences that may satisfy the constraint with a loss below `loss`.

        Args:
            log_probs: log-probabilities, (n_models, n_sentences), nats; nan if unknown.
            upper_bounds: upper bounds of these, (n_models, n_sentences); inf if unknown.
            loss: loss to improve on.
        """
        # Best case of unknown scores: the bound for accepting models, -inf for rejecting models
        best = log_probs.copy()
        bounds = np.broadcast_to(upper_bounds, best.shape)
        for row, (accepting, bound) in enumerate(zip(self.accepting, bounds, strict=True)):
            np.copyto(best[row], bound if accepting else -np.inf, where=np.isnan(best[row]))
        return np.logical_and(self.feasible(best), self.loss(best) < loss)


@dataclass(frozen=True)
class PairObjective(Objective):
    """Objective of one sentence of a pair on which two models disagree; the other one is fixed.

    The first model should find this sentence likelier, the second model the other one. The limits
    are the models' log-probabilities of the other sentence. The search maximises the difference of
    the two models' log-ratios. This difference grows by the same amount as the loss falls.
    """

    def loss(self, log_probs: FloatArray) -> FloatArray:
        """Return log-probabilities under the second model minus those under the first, nats."""
        with np.errstate(invalid="ignore"):  # -inf - -inf
            difference = log_probs[1] - log_probs[0]
        return np.where(np.isnan(difference), np.inf, difference)

    def margins(self, log_probs: FloatArray) -> list[tuple[FloatArray, float | FloatArray]]:
        """Return the constraint; the second model must also prefer the other sentence."""
        (first,) = super().margins(log_probs)
        return [first, (np.broadcast_to(self.limits[1], log_probs.shape[1]), log_probs[1])]
