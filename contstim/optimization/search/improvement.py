"""By how much words are expected to improve a sentence, and which words promise most.

An example. Under the accept model a word's log-probability is expected half a nat above the floor,
under the reject model 3 nats below the loss, both with a spread of 2 nats. The word keeps the
constraint with a chance of .6 and then lowers the loss by 3.06 nats on average: its expected
improvement is 1.8 nats.

Expected improvements are means over 32 draws of errors, for each of some 20,000 words at a
position. To find the few words that promise most, words are sorted into classes whose means are
close by. An improvement can only grow with an accept model's mean, and only shrink with a reject
model's. So the best means of a class bound the improvements of all its words, and only the words of
the classes with the highest bounds are looked at one by one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from contstim.arrays import FloatArray, IntArray
    from contstim.optimization.search.objectives import Objective

_SAMPLES = 16  # pairs of opposite draws from which an expected improvement is computed
_CLASSES = 1024  # of words whose means are close by, at most
_FEW = 2 * _CLASSES  # words, of which classes would save little


def most_improving(
    objective: Objective,
    loss: float,
    mean: FloatArray,
    spread: FloatArray,
    limit: int,
    min_expected_improvement: float,
) -> IntArray:
    """Columns of the words with the largest expected improvement on a loss, best first.

    Args:
        objective: what to minimise and to keep.
        loss: to improve on.
        mean: of each word's log-probabilities, (n_models, n_words), nats.
        spread: their standard deviations, (n_models, n_words), nats.
        limit: how many words, at most.
        min_expected_improvement: nats, which all of them exceed.
    """
    # First where every model errs in a word's favour by the largest error that is drawn
    signs = np.where(objective.accepting, 1.0, -1.0)[:, None]
    largest = np.abs(_normal_draws(len(mean))).max()
    most = _improvement(objective, loss, mean + signs * largest * spread)
    candidates = np.flatnonzero(most > min_expected_improvement)
    mean, spread = mean.take(candidates, axis=1), spread.take(candidates, axis=1)

    expected = np.full(len(candidates), -np.inf)  # improvements that have been computed
    if len(candidates) > max(limit, _FEW):
        bound = _upper_bounds(objective, loss, mean, spread)
        # The candidates of the highest bounds first. The least improvement among the `limit` best
        # of them is one that all others have to reach.
        high = bound >= np.partition(bound, -limit)[-limit]
        expected[high] = expected_improvement(objective, loss, mean[:, high], spread[:, high])
        least = np.partition(expected, -limit)[-limit]
        others = ~high & (bound >= least)
    else:
        others = np.ones(len(candidates), np.bool_)
    expected[others] = expected_improvement(objective, loss, mean[:, others], spread[:, others])
    # `order` counts places among the candidates
    order = np.argsort(-expected, kind="stable")[:limit]
    chosen: IntArray = candidates[order[expected[order] > min_expected_improvement]]
    return chosen


def expected_improvement(
    objective: Objective, loss: float, mean: FloatArray, spread: FloatArray
) -> FloatArray:
    """By how much words are expected to lower the loss while they keep the constraint, (n_words,).

    The expectation is over independent normal errors of the means (Gardner et al. 2014, constrained
    expected improvement).

    Args:
        objective: what to minimise and to keep.
        loss: to improve on.
        mean: of each word's log-probabilities, (n_models, n_words), nats.
        spread: their standard deviations, (n_models, n_words), nats.
    """
    expected = _improvement(objective, loss, mean)
    uncertain = np.flatnonzero(spread.any(axis=0))  # the means of other words are exact
    mean, spread = mean[:, uncertain], spread[:, uncertain]
    draws = _normal_draws(len(mean))  # (n_draws, n_models)
    total = np.zeros(len(uncertain))
    for errors in draws:  # (n_models,), the same for all words, so that luck favours none of them
        total += _improvement(objective, loss, mean + errors[:, None] * spread)
    expected[uncertain] = total / len(draws)
    return expected


def _upper_bounds(
    objective: Objective, loss: float, mean: FloatArray, spread: FloatArray
) -> FloatArray:
    """What the expected improvements of words cannot exceed, (n_words,); inf where not computed.

    Words whose spreads are the usual ones are sorted into classes. An improvement with the class's
    best means is no smaller than that with a word's own, draw by draw, in floating-point numbers
    too: sums, differences and comparisons keep the order of what they are made of.
    """
    bound = np.full(mean.shape[1], np.inf)
    usual = np.median(spread, axis=1, keepdims=True)  # (n_models, 1)
    words = np.flatnonzero((spread == usual).all(axis=0))
    n_intervals = int(_CLASSES ** (1 / len(mean)))
    class_of = np.zeros(len(words), np.int64)
    of_words = mean.take(words, axis=1)
    for means in of_words:
        # Intervals of equal width, the first and the last without an end
        finite = np.sort(means[np.isfinite(means)])
        if not len(finite):
            return bound
        low, high = finite[len(finite) // 50], finite[-1 - len(finite) // 50]
        scale = (n_intervals - 2) / (high - low) if high > low else 0.0
        with np.errstate(invalid="ignore"):  # -inf * 0, or nan: any interval will do
            interval = np.fmin(np.fmax((means - low) * scale + 1, 0), n_intervals - 1)
        class_of = class_of * n_intervals + interval.astype(np.int64)
    best = np.empty((len(mean), n_intervals ** len(mean)))
    for row, accepting in enumerate(objective.accepting):
        best[row] = -np.inf if accepting else np.inf
        better = np.fmax if accepting else np.fmin
        better.at(best[row], class_of, of_words[row])
    classes = np.flatnonzero(np.bincount(class_of))  # that have words
    of_classes = np.zeros(best.shape[1])
    of_classes[classes] = expected_improvement(
        objective, loss, best[:, classes], np.broadcast_to(usual, (len(mean), len(classes)))
    )
    bound[words] = of_classes[class_of]
    return bound


def _improvement(objective: Objective, loss: float, log_probs: FloatArray) -> FloatArray:
    feasible = objective.feasible(log_probs)
    return np.where(feasible, np.maximum(loss - objective.loss(log_probs), 0.0), 0.0)


@lru_cache(maxsize=8)
def _normal_draws(n_models: int) -> FloatArray:
    """(2 * _SAMPLES, n_models), in opposite pairs, the same for all words."""
    half = np.random.default_rng(0).standard_normal((_SAMPLES, n_models))
    draws: FloatArray = np.concatenate([half, -half])
    return draws
