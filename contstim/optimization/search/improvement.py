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
    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.optimization.search.objectives import Objective

_SAMPLES = 16  # pairs of opposite draws from which an expected improvement is computed
_CLASSES = 1024  # of words whose means are close by, at most
_FEW = 2 * _CLASSES  # words, of which classes would save little
_AT_ONCE = 4096  # improvements, which stay in a processor's cache


def most_improving(
    objective: Objective,
    loss: float,
    mean: FloatArray,
    spread: FloatArray,
    among: BoolArray,
    limit: int,
    min_expected_improvement: float,
) -> IntArray:
    """Columns of the words with the largest expected improvement on a loss, best first.

    Args:
        objective: what to minimise and to keep.
        loss: to improve on.
        mean: of each word's log-probabilities, (n_models, n_words), nats.
        spread: their standard deviations, (n_models, n_words), nats.
        among: which words to choose from, (n_words,).
        limit: how many words, at most.
        min_expected_improvement: nats, which all of them exceed.
    """
    candidates = np.flatnonzero(among)
    if len(candidates) > _FEW:
        # Those that improve where every model errs in their favour by the largest error drawn
        signs = np.where(objective.accepting, 1.0, -1.0)[:, None]
        favourable = signs * np.abs(_normal_draws(len(mean))).max() * spread
        favourable += mean
        most = _improvement(objective, loss, favourable)
        candidates = np.flatnonzero(among & (most > min_expected_improvement))
    mean, spread = mean.take(candidates, axis=1), spread.take(candidates, axis=1)
    some = np.arange(len(candidates))  # columns of `mean` that may be the best
    if len(candidates) > max(limit, _FEW):
        some, expected = _of_highest_classes(objective, loss, mean, spread, limit)
    else:
        expected = expected_improvement(objective, loss, mean, spread)
    order = np.lexsort((some, -expected))[:limit]  # of equal ones, the first word first
    chosen: IntArray = candidates[some[order[expected[order] > min_expected_improvement]]]
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
    if not len(uncertain):
        return expected
    # (n_models, 1, n_uncertain), beside which errors are (n_models, n_draws, 1): the same for all
    # words, so that luck favours none of them
    mean, spread = mean[:, None, uncertain], spread[:, None, uncertain]
    draws = _normal_draws(len(mean))
    total = np.zeros(len(uncertain))
    at_once = max(1, _AT_ONCE // len(uncertain))
    for start in range(0, len(draws), at_once):
        errors = draws[start : start + at_once].T[:, :, None]
        log_probs = (mean + errors * spread).reshape(len(mean), -1)
        for improvement in _improvement(objective, loss, log_probs).reshape(-1, len(uncertain)):
            total += improvement
    expected[uncertain] = total / len(draws)
    return expected


def _of_highest_classes(
    objective: Objective, loss: float, mean: FloatArray, spread: FloatArray, limit: int
) -> tuple[IntArray, FloatArray]:
    """Columns of words, all of the `limit` best among them, and their expected improvements."""

    def expected(words: IntArray) -> FloatArray:
        of_words = mean.take(words, axis=1), spread.take(words, axis=1)
        return expected_improvement(objective, loss, *of_words)

    class_of, bound = _classes(objective, loss, mean, spread)
    # The classes of the highest bounds, with `limit` words or more. The least improvement among
    # the `limit` best of these is one that all other words have to reach.
    order = np.argsort(-bound)
    n_words = np.cumsum(np.bincount(class_of, minlength=len(bound))[order])
    is_high = bound >= bound[order[np.searchsorted(n_words, limit)]]
    high = np.flatnonzero(is_high[class_of])
    of_high = expected(high)
    least = np.partition(of_high, -limit)[-limit]
    others = np.flatnonzero((~is_high & (bound >= least))[class_of])
    return np.concatenate([high, others]), np.concatenate([of_high, expected(others)])


def _classes(
    objective: Objective, loss: float, mean: FloatArray, spread: FloatArray
) -> tuple[IntArray, FloatArray]:
    """The class of each word, and what the expected improvements in each class cannot exceed.

    Words whose spreads are the usual ones are sorted into classes; the last class, whose bound is
    inf, is that of all others. An improvement with the class's best means is no smaller than that
    with a word's own, draw by draw, in floating-point numbers too: sums, differences and
    comparisons keep the order of what they are made of.
    """
    n_intervals = int(_CLASSES ** (1 / len(mean)))
    n_classes = n_intervals ** len(mean)
    class_of = np.zeros(mean.shape[1], np.int64)
    for means in mean:
        # Intervals of equal width, the first and the last without an end, from a thousand words
        some = means[:: len(means) // _CLASSES]
        finite = np.sort(some[np.isfinite(some)])
        if not len(finite):
            return np.zeros(len(class_of), np.int64), np.array([np.inf])
        low, high = finite[len(finite) // 50], finite[-1 - len(finite) // 50]
        scale = (n_intervals - 2) / (high - low) if high > low else 0.0
        with np.errstate(invalid="ignore"):  # -inf * 0, or nan: any interval will do
            interval = (means - low) * scale
        interval += 1
        interval = np.fmin(np.fmax(interval, 0, out=interval), n_intervals - 1, out=interval)
        class_of *= n_intervals
        class_of += interval.astype(np.int64)
    best = np.empty((len(mean), n_classes))
    for row, accepting in enumerate(objective.accepting):
        best[row] = -np.inf if accepting else np.inf
        better = np.fmax if accepting else np.fmin
        better.at(best[row], class_of, mean[row])
    classes = np.flatnonzero(np.bincount(class_of))  # that have words
    usual = np.median(spread, axis=1, keepdims=True)  # (n_models, 1)
    bound = np.full(n_classes + 1, np.inf)
    bound[classes] = expected_improvement(
        objective, loss, best[:, classes], np.broadcast_to(usual, (len(mean), len(classes)))
    )
    class_of[(spread != usual).any(axis=0)] = n_classes
    return class_of, bound


def _improvement(objective: Objective, loss: float, log_probs: FloatArray) -> FloatArray:
    improvement: FloatArray = np.maximum(loss - objective.loss(log_probs), 0.0)
    improvement[~objective.feasible(log_probs)] = 0.0
    return improvement


@lru_cache(maxsize=8)
def _normal_draws(n_models: int) -> FloatArray:
    """(2 * _SAMPLES, n_models), in opposite pairs, the same for all words."""
    half = np.random.default_rng(0).standard_normal((_SAMPLES, n_models))
    draws: FloatArray = np.concatenate([half, -half])
    return draws
