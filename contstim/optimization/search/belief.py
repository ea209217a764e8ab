"""What is believed of each candidate's log-probabilities, and what that promises."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.optimization.search.objectives import Objective

_SAMPLES = 16  # pairs of opposite draws from which an expected improvement is computed


class Belief:
    """Means and standard deviations of candidates' log-probabilities, (n_models, n_words), nats."""

    def __init__(self, n_models: int, n_words: int) -> None:
        self.mean = np.zeros((n_models, n_words))
        self.spread = np.zeros((n_models, n_words))

    def expected_improvement(
        self, objective: Objective, loss: float, words: IntArray
    ) -> FloatArray:
        """By how much each of some words is expected to lower the loss, (n_words,).

        The expectation, over independent normal errors of what is believed, of the improvement on
        the loss where the constraint holds (Gardner et al. 2014, constrained expected improvement).
        """
        mean, spread = self.mean[:, words], self.spread[:, words]
        if not spread.any():
            return _improvement(objective, loss, mean)
        draws = _normal_draws(len(mean))
        signs = np.where(objective.accepting, 1.0, -1.0)[:, None]
        best = mean + signs * np.abs(draws).max() * spread  # no draw is better, as both only help
        hopeful = np.flatnonzero(_improvement(objective, loss, best) > 0)
        mean, spread = mean[:, hopeful], spread[:, hopeful]
        total = np.zeros(len(hopeful))
        for errors in draws:
            total += _improvement(objective, loss, mean + errors[:, None] * spread)
        promise = np.zeros(len(words))
        promise[hopeful] = total / len(draws)
        return promise


def _improvement(objective: Objective, loss: float, log_probs: FloatArray) -> FloatArray:
    better: BoolArray = objective.feasible(log_probs)
    return np.where(better, np.maximum(loss - objective.loss(log_probs), 0.0), 0.0)


@lru_cache(maxsize=8)
def _normal_draws(n_models: int) -> FloatArray:
    """(2 * _SAMPLES, n_models), in opposite pairs, the same for all candidates."""
    half = np.random.default_rng(0).standard_normal((_SAMPLES, n_models))
    draws: FloatArray = np.concatenate([half, -half])
    return draws
