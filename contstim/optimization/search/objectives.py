"""Loss and constraint of a search, computed from exact log-probabilities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from contstim.files.arrays import BoolArray, FloatArray
    from contstim.optimization.search.evaluator import Evaluator
    from contstim.words.sentence import Sentence


@dataclass(frozen=True)
class ScoredSentence:
    """A sentence with its log-probabilities, (n_models,), nats, and its loss.

    The log-probabilities are exact, except inside a perturbation (a random change of the sentence).
    There, they are expected values.
    """

    sentence: Sentence
    log_probs: FloatArray
    loss: float

    def in_units(self, units: FloatArray) -> Self:
        """Return a copy with scores multiplied by `units`, one for each model, (n_models,)."""
        return replace(self, log_probs=self.log_probs * units)


@dataclass(frozen=True)
class Objective:
    """Objective of a search for a sentence s that some models accept and other models reject.

    Accepting models must find s at least as likely as the natural sentence. Rejecting models should
    find s as unlikely as possible. The objective is Eq. 2 of Golan et al. (2023):

        loss        = maximum of (log p(s|m) - limit of m) over the rejecting models m
        constraint:   log p(s|m) ≥ limit of m, for all accepting models m

    Attributes:
        evaluator: evaluator for exact scores. The models of the evaluator, in this order, are the
            rows of arrays of log-probabilities, (n_models, n_sentences), nats.
        accepting: whether each model accepts. A higher log-probability under an accepting model
            never raises the loss or breaks the constraint. The same is true for a lower
            log-probability under a rejecting model.
        limits: limit of each model, nats. It is the model's log-probability of the natural
            sentence, with two exceptions. The limit of a judge (a further model, which only chooses
            among results) is -inf, since a judge counts as an accepting model and must not exclude
            sentences. If only one model rejects, its limit may be 0; the loss is then log p(s|m)
            under this model.
    """

    evaluator: Evaluator
    accepting: tuple[bool, ...]
    limits: tuple[float, ...]

    def loss(self, log_probs: FloatArray) -> FloatArray:
        """Return the loss to minimise, (n_sentences,)."""
        rows = zip(self.accepting, log_probs, self.limits, strict=True)
        # For speed, do not copy scores whose limit is 0
        above = [row - limit if limit else row for accepts, row, limit in rows if not accepts]
        return reduce(np.maximum, above)

    def margins(self, log_probs: FloatArray) -> list[tuple[FloatArray, float | FloatArray]]:
        """Return, for each accepting model, the log-probabilities and their lower limit.

        The log-probabilities of a model have shape (n_sentences,) and are in nats.
        """
        rows = zip(self.accepting, log_probs, self.limits, strict=True)
        return [(row, limit) for accepting, row, limit in rows if accepting]

    def shortfall(self, log_probs: FloatArray) -> FloatArray:
        """Return the total violation of the constraint, (n_sentences,), nats; 0 if satisfied."""
        total = np.zeros(log_probs.shape[1])
        for values, floor in self.margins(log_probs):
            misses = ~(values >= floor)  # also True for nan; False if both are -inf
            total += np.subtract(floor, values, out=np.zeros(len(total)), where=misses)
        return total

    def feasible(self, log_probs: FloatArray) -> BoolArray:
        """Return a mask of sentences that satisfy the constraint, (n_sentences,); False for nan."""
        return reduce(np.logical_and, [row >= floor for row, floor in self.margins(log_probs)])

    def slack(self, log_probs: FloatArray) -> FloatArray:
        """Return the slack of each sentence, (n_sentences,), nats.

        The slack is the sum of the log-probabilities under accepting models, minus the loss. A
        perturbation prefers sentences with high slack.
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

        Arrays are (n_models, n_sentences), nats. Unknown log-probabilities are nan. Unknown upper
        bounds are inf.
        """
        # In the best case, an unknown score is the upper bound under an accepting model, and -inf
        # under a rejecting model
        bounds = np.where(np.array(self.accepting)[:, None], upper_bounds, -np.inf)
        best = np.where(np.isnan(log_probs), bounds, log_probs)
        return np.logical_and(self.feasible(best), self.loss(best) < loss)


@dataclass(frozen=True)
class PairObjective(Objective):
    """Objective of a search for a sentence s that forms a pair with a fixed sentence t.

    The evaluator's first model m1 must prefer s, and its second model m2 must prefer t. The limits
    are log p(t|m1) and log p(t|m2).

        loss       = log p(s|m2) - log p(s|m1)
        constraint:  log p(s|m1) ≥ log p(t|m1) and log p(s|m2) ≤ log p(t|m2)
    """

    def loss(self, log_probs: FloatArray) -> FloatArray:
        """Return the loss, (n_sentences,), nats."""
        with np.errstate(invalid="ignore"):  # -inf - -inf
            difference = log_probs[1] - log_probs[0]
        return np.where(np.isnan(difference), np.inf, difference)

    def margins(self, log_probs: FloatArray) -> list[tuple[FloatArray, float | FloatArray]]:
        """Return two constraints, each as values and their lower bounds, (n_sentences,), nats.

        The second constraint is log p(t|m2) ≥ log p(s|m2).
        """
        (first,) = super().margins(log_probs)
        return [first, (np.broadcast_to(self.limits[1], log_probs.shape[1]), log_probs[1])]
