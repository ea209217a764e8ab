"""Estimates of a cumulative mixed model: the maximum of the approximate likelihood, and its shape.

    thresholds    flexible: each its own, as many as there are levels, less one
                  symmetric: 0 in the middle, the others mirrored: -t2 -t1 0 t1 t2
                  (of choices there is the middle alone)

Which sentence of a trial is called sentence_1 is a convention. With symmetric thresholds exchanging
the sentences of any trials, which mirrors ratings and turns ratios and sides, changes nothing; with
flexible ones the thresholds hold an intercept, which depends on the convention and may take a part
of what is the model's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.mixed.laplace import (
    BlockLikelihood,
    BlockModes,
    MixedParameters,
    RatedBlock,
    block_likelihood,
)
from contstim.experiments.analysis.regression import separating

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.experiments.analysis.mixed.laplace import Link
    from contstim.files.arrays import FloatArray, IntArray
    from contstim.items.scale import Scale

_TOO_FAR = 30.0  # standard deviations of the noise, beyond which an estimate is on its way to ∞


ThresholdKind: TypeAlias = Literal["symmetric", "flexible"]


@dataclass(frozen=True, eq=False)
class ThresholdScheme:
    """Scheme by which estimated thresholds make all finite ones, and ratings levels.

    Attributes:
        names: of the estimated thresholds, such as `1|2`, or `5|6` (and, mirrored, `1|2`).
        matrix: (n_finite, n_estimated); finite thresholds are the matrix times the estimated ones.
        level_of: rating → level, 0 to n_finite.
        first_step: how many of the estimated thresholds stand before the first step that has to be
            positive: none where they ascend from zero.
    """

    names: tuple[str, ...]
    matrix: FloatArray
    level_of: dict[int, int]
    first_step: int


def threshold_scheme(kind: ThresholdKind, ratings: IntArray, scale: Scale) -> ThresholdScheme:
    """Thresholds between the ratings that somebody gave; others are left out.

    Args:
        kind: symmetric or flexible.
        ratings: all of them.
        scale: of the ratings.

    Raises:
        InputError: all ratings are equal.
    """
    used = np.unique(ratings).tolist()
    if len(used) < 2:
        raise InputError(
            f"All {ratings.size:,} ratings are {used[0]}, so that there is nothing to explain. "
            "Analyse trials on which ratings differ."
        )
    if kind == "flexible":
        names = [f"{low}|{high}" for low, high in pairwise(used)]
        levels = {rating: level for level, rating in enumerate(used)}
        return ThresholdScheme(tuple(names), np.eye(len(names)), levels, 1)
    # How sure a rating is of its sentence, in steps from the middle: 4 5 6 for sentence_2, 3 2 1
    # for sentence_1. A degree that nobody used on either side is left out on both.
    degrees = sorted({abs(rating - scale.middle) for rating in used})
    n, neither = len(degrees), int(0 in degrees)  # who prefers neither has a level of their own
    up = n - neither
    levels = {int(scale.middle + degree): up + place for place, degree in enumerate(degrees)}
    levels |= {int(scale.middle - degree): n - 1 - place for place, degree in enumerate(degrees)}
    names = [f"{scale.middle + low:g}|{scale.middle + high:g}" for low, high in pairwise(degrees)]
    mirrored = np.eye(n - 1)
    matrix = np.concatenate([-mirrored[::-1], np.zeros((1 - neither, n - 1)), mirrored])
    return ThresholdScheme(tuple(names), matrix, levels, 0)


Estimates: TypeAlias = (
    "tuple[MixedParameters, FloatArray, list[float], tuple[BlockLikelihood, ...]]"
)
"""Parameters at the maximum, whose standard deviations are positive; of these thresholds as
estimated, then slopes; their standard errors, from the second derivatives of the log-likelihood, in
which the variances take part; and the log-likelihood of each group."""


def fit_blocks(
    link: Link, scheme: ThresholdScheme, blocks: Sequence[RatedBlock], *, trials_vary: bool
) -> Estimates:
    """Maximise the likelihood of all groups.

    Predictors of about unit size are fitted best.

    Args:
        link: the distribution of the noise.
        scheme: the thresholds.
        blocks: the ratings of each group, in levels of the scheme.
        trials_vary: whether trials have a random intercept.

    Raises:
        InputError: no finite estimates fit best, or the ratings do not determine them.
    """
    require_overlap(scheme, blocks)
    n_effects = blocks[0].effects.shape[2]
    n_ratings = sum(int((block.levels >= 0).sum()) for block in blocks)
    start = _start(scheme, blocks)
    n_fixed = len(start)
    start = np.concatenate([start, np.full(n_effects, 0.3), [0.5] * trials_vary])
    modes: list[BlockModes | None] = [None] * len(blocks)

    def parameters_at(point: FloatArray) -> MixedParameters:
        estimated, slopes, rest = np.split(point, [len(scheme.names), n_fixed])
        trials = float(rest[-1]) if trials_vary else 0.0
        thresholds = np.concatenate([[-np.inf], scheme.matrix @ estimated, [np.inf]])
        return MixedParameters(thresholds, slopes, rest[:n_effects], trials)

    def likelihood(point: FloatArray, afresh: bool = False) -> _Value:
        # The last point is near by: modes are looked for from there, unless that failed.
        near, modes[:] = [*modes], [None] * len(blocks)
        at, of_blocks = parameters_at(point), zip(blocks, near, strict=True)
        results = tuple(
            block_likelihood(link, block, at, None if afresh else known)
            for block, known in of_blocks
        )
        by_all = reduce(np.add, [result.gradient for result in results])
        by_thresholds, others = np.split(by_all, [len(scheme.matrix)])
        gradient = np.concatenate([scheme.matrix.T @ by_thresholds, others])[: len(point)]
        value = sum(result.log_likelihood for result in results)
        if np.isfinite(value):
            modes[:] = [result.modes for result in results]
        return value, gradient, results

    if not len(start):  # choices without predictors and effects: both are as likely
        return parameters_at(start), start, [], likelihood(start)[2]
    point = _climb(likelihood, start, scheme, n_ratings)
    hessian = _second_derivatives(likelihood, point)
    # BFGS stops close by; a step of Newton's method from there ends in the last digits.
    point = point - np.linalg.lstsq(hessian, likelihood(point)[1], rcond=1e-10)[0]
    point[n_fixed:] = np.abs(point[n_fixed:])
    # The modes of effects whose standard deviation was negative change sign
    _value, gradient, results = likelihood(point, afresh=True)
    parameters = parameters_at(point)
    sizes = [*np.abs(parameters.slopes), *parameters.participants, parameters.trials]
    if max(sizes, default=0) > _TOO_FAR or not np.all(np.abs(gradient) < 1e-3 * n_ratings):
        raise InputError(
            "No finite estimates fit best: people agree on nearly every trial, or ratings follow "
            "the ratios nearly without exception. Add trials on which people differ."
        )
    return parameters, point[:n_fixed], _standard_errors(hessian, n_fixed), results


_Value: TypeAlias = "tuple[float, FloatArray, tuple[BlockLikelihood, ...]]"
"""Log-likelihood, gradient, and what each group says, of one vector: estimated thresholds, slopes,
standard deviations of participants' effects, and that of trials, if they vary."""


def _start(scheme: ThresholdScheme, blocks: Sequence[RatedBlock]) -> FloatArray:
    """Steps between thresholds, as the shares of the levels have them, without slopes."""
    from scipy.special import ndtri

    levels = np.concatenate([block.levels.ravel() for block in blocks])
    counts = np.bincount(levels[levels >= 0], minlength=len(scheme.matrix) + 1)
    if scheme.first_step == 0:
        counts = counts + counts[::-1]  # both sides alike
    shares = np.cumsum(counts)[:-1] / counts.sum()
    finite = ndtri(np.clip(shares, 1e-3, 1 - 1e-3))
    steps = np.diff(finite[len(finite) - len(scheme.names) :], prepend=0.0)
    steps[scheme.first_step :] = np.log(np.maximum(steps[scheme.first_step :], 1e-2))
    return np.concatenate([steps, np.zeros(blocks[0].predictors.shape[1])])


def _climb(
    likelihood: Callable[[FloatArray], _Value],
    start: FloatArray,
    scheme: ThresholdScheme,
    n_ratings: int,
) -> FloatArray:
    """The maximum, by BFGS, in steps between thresholds on a logarithmic scale."""
    from scipy.optimize import minimize

    n, first = len(scheme.names), scheme.first_step

    # Thresholds ascend whatever the vector is: the first (unless the first step is from zero),
    # then logarithms of steps.
    def place(free: FloatArray) -> tuple[FloatArray, FloatArray]:
        steps = free[:n].copy()
        steps[first:] = np.exp(np.clip(steps[first:], -30, 30))
        # change[i, j], of threshold i with entry j
        change = np.tril(np.ones((n, n))) * np.where(np.arange(n) < first, 1.0, steps)
        return np.concatenate([np.cumsum(steps), free[n:]]), change

    def objective(free: FloatArray) -> tuple[float, FloatArray]:
        point, change = place(free)
        try:
            value, gradient, _ = likelihood(point)
        except (InputError, np.linalg.LinAlgError):
            return np.inf, np.zeros_like(free)
        if not np.isfinite(value):
            return np.inf, np.zeros_like(free)
        by_free = np.concatenate([change.T @ gradient[:n], gradient[n:]])
        return -value / n_ratings, -by_free / n_ratings

    with np.errstate(all="ignore"):
        found = minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-6})
    return place(found.x)[0]


def _second_derivatives(
    likelihood: Callable[[FloatArray], _Value], point: FloatArray
) -> FloatArray:
    """Central differences of the exact gradient, symmetric."""
    size = 1e-4
    rows = [
        (likelihood(point + size * step)[1] - likelihood(point - size * step)[1]) / (2 * size)
        for step in np.eye(len(point))
    ]
    return (np.array(rows) + np.array(rows).T) / 2


def _standard_errors(hessian: FloatArray, n_fixed: int) -> list[float]:
    """Standard errors of thresholds and slopes; variances take part with their own uncertainty.

    Raises:
        InputError: the ratings do not determine the estimates.
    """
    # The inverse of the Schur complement is the corner of the whole inverse. A variance of zero may
    # leave directions in which nothing changes.
    between, varying = -hessian[:n_fixed, n_fixed:], -hessian[n_fixed:, n_fixed:]
    absorbed = between @ np.linalg.pinv(varying, rcond=1e-10, hermitian=True) @ between.T
    information = -hessian[:n_fixed, :n_fixed] - absorbed
    eigenvalues = np.linalg.eigvalsh(information)
    if n_fixed and eigenvalues.min() < 1e-9 * eigenvalues.max():
        raise InputError(
            "The ratings do not determine the estimates: predictors follow from one another, or "
            "there are too few ratings. Leave predictors out, or add trials."
        )
    errors: list[float] = np.sqrt(np.diag(np.linalg.inv(information))).tolist()
    return errors


def require_overlap(scheme: ThresholdScheme, blocks: Sequence[RatedBlock]) -> None:
    """Make sure that predictors do not put the ratings in order without exception.

    Raises:
        InputError: they do (perfect separation): the steeper the slope, the better it fits.
    """
    # Along a direction of slopes and thresholds no rating becomes less likely, and some more: every
    # rating's hidden value stays below its upper and above its lower threshold as all of them move
    # that way. A trial's lowest rating says most of the upper thresholds, its highest of the lower
    # ones.
    n_finite = len(scheme.matrix)
    lowest = np.concatenate(
        [np.where(b.levels < 0, n_finite, b.levels).min(axis=0) for b in blocks]
    )
    highest = np.concatenate([block.levels.max(axis=0) for block in blocks])
    values = np.concatenate([block.predictors for block in blocks])  # (n_trials, n_predictors)
    n_slopes = values.shape[1]
    if not n_slopes:
        return  # thresholds alone separate nothing
    below, above = lowest < n_finite, highest > 0
    rows = np.concatenate(
        [
            np.hstack([values[below], -scheme.matrix[lowest[below]]]),
            np.hstack([-values[above], scheme.matrix[highest[above] - 1]]),
            np.hstack([np.zeros((n_finite - 1, n_slopes)), -np.diff(scheme.matrix, axis=0)]),
        ]
    )
    if np.abs(separating(rows)[:n_slopes]).max() > 1e-9:
        raise InputError(
            "The ratios put all ratings in order without exception (perfect separation), so that "
            "no finite coefficient fits best. Add trials or people, or leave models out."
        )
