"""Estimates of a cumulative mixed model, at the maximum of the approximate likelihood.

Thresholds divide the latent scale into levels. Each rating that occurs is a level. There are two
kinds of thresholds:

    flexible thresholds     one less than the number of levels, all estimated separately
    symmetric thresholds    pairs with opposite signs and 0, such as -t2 -t1 0 t1 t2. If the middle
                            rating of a slider occurs, 0 is not a threshold. If answers are choices,
                            0 is the only threshold

With symmetric thresholds, exchanging sentence_1 and sentence_2 of any trials does not change the
fit. The exchange mirrors ratings. It also changes the sign of log-probability ratios, and of the
predictor (±1) that says which sentence was on the left. Flexible thresholds include an intercept.
The intercept depends on which sentence is sentence_1, and may absorb part of a model's effect.
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
from contstim.optimization.selection.solver import linear_minimum

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.experiments.analysis.mixed.laplace import Link
    from contstim.files.arrays import FloatArray, IntArray
    from contstim.items.scale import Scale

_MAX_ESTIMATE = 30.0  # standard deviations of the noise; larger estimates are considered infinite


ThresholdKind: TypeAlias = Literal["symmetric", "flexible"]


@dataclass(frozen=True, eq=False)
class ThresholdScheme:
    """Scheme that maps estimated thresholds to all finite thresholds, and ratings to levels.

    Attributes:
        names: names of the estimated thresholds, such as `1|2`. On a scale from 1 to 6, a symmetric
            threshold `5|6` also represents the mirrored one, `1|2`.
        matrix: (n_finite, n_estimated); the finite thresholds are the matrix times the estimated
            thresholds.
        level_of: rating → level, 0 to n_finite.
        first_step: index of the first estimated threshold that has a lower limit. For symmetric
            thresholds the index is 0, because the first threshold must be above zero. For flexible
            thresholds the index is 1: the first may have any value, the second must be above the
            first.
    """

    names: tuple[str, ...]
    matrix: FloatArray
    level_of: dict[int, int]
    first_step: int


def threshold_scheme(kind: ThresholdKind, ratings: IntArray, scale: Scale) -> ThresholdScheme:
    """Return the scheme of the thresholds between ratings that occur.

    Raises:
        InputError: if all ratings are equal.
    """
    distinct = np.unique(ratings).tolist()
    if len(distinct) < 2:
        raise InputError(
            f"All {ratings.size:,} ratings are {distinct[0]}, so there is no variance to "
            "explain. Analyse trials on which ratings differ."
        )
    if kind == "flexible":
        names = [f"{low}|{high}" for low, high in pairwise(distinct)]
        levels = {rating: level for level, rating in enumerate(distinct)}
        return ThresholdScheme(tuple(names), np.eye(len(names)), levels, 1)
    # The degree of a rating is its distance from the middle. For example, on a scale from 1 to 6,
    # the ratings 3 (for sentence_1) and 4 (for sentence_2) have the same degree. A degree that
    # occurs on neither side is left out.
    degrees = sorted({abs(rating - scale.middle) for rating in distinct})
    n, neither = len(degrees), int(0 in degrees)  # ratings in the middle have a separate level
    up = n - neither
    levels = {int(scale.middle + degree): up + index for index, degree in enumerate(degrees)}
    levels |= {int(scale.middle - degree): n - 1 - index for index, degree in enumerate(degrees)}
    names = [f"{scale.middle + low:g}|{scale.middle + high:g}" for low, high in pairwise(degrees)]
    mirrored = np.eye(n - 1)
    matrix = np.concatenate([-mirrored[::-1], np.zeros((1 - neither, n - 1)), mirrored])
    return ThresholdScheme(tuple(names), matrix, levels, 0)


Estimates: TypeAlias = (
    "tuple[MixedParameters, FloatArray, list[float], tuple[BlockLikelihood, ...]]"
)
"""Result of a fit.

The parameters at the maximum, with standard deviations of at least 0; the estimated thresholds and
slopes; their standard errors, from the second derivatives of the log-likelihood by all parameters;
and the log-likelihood of each group."""


def fit_blocks(
    link: Link, scheme: ThresholdScheme, blocks: Sequence[RatedBlock], *, trials_vary: bool
) -> Estimates:
    """Maximise the likelihood of all groups.

    `blocks` contain the ratings of each group, as levels of the scheme. With `trials_vary`, trials
    have random intercepts. Predictors of about unit size give the most accurate fit.

    Raises:
        InputError: if the best estimates are infinite, or the ratings do not determine estimates.
    """
    require_overlap(scheme, blocks)
    n_effects = blocks[0].effects.shape[2]
    n_ratings = sum(int((block.levels >= 0).sum()) for block in blocks)
    start = _starting_point(scheme, blocks)
    n_fixed = len(start)
    start = np.concatenate([start, np.full(n_effects, 0.3), [0.5] * trials_vary])
    modes: list[BlockModes | None] = [None] * len(blocks)

    def parameters_at(point: FloatArray) -> MixedParameters:
        estimated, slopes, deviations = np.split(point, [len(scheme.names), n_fixed])
        trials = float(deviations[-1]) if trials_vary else 0.0
        thresholds = np.concatenate([[-np.inf], scheme.matrix @ estimated, [np.inf]])
        return MixedParameters(thresholds, slopes, deviations[:n_effects], trials)

    def likelihood(point: FloatArray, from_zero: bool = False) -> _Value:
        # Modes are the most likely effects of participants and trials. Their search starts from the
        # modes at the last point, which is close to the new point. With `from_zero`, it starts from
        # zero
        last_modes, modes[:] = [*modes], [None] * len(blocks)
        at, of_blocks = parameters_at(point), zip(blocks, last_modes, strict=True)
        results = tuple(
            block_likelihood(link, block, at, None if from_zero else start_modes)
            for block, start_modes in of_blocks
        )
        by_all = reduce(np.add, [result.gradient for result in results])
        by_thresholds, by_others = np.split(by_all, [len(scheme.matrix)])
        gradient = np.concatenate([scheme.matrix.T @ by_thresholds, by_others])[: len(point)]
        value = sum(result.log_likelihood for result in results)
        if np.isfinite(value):
            modes[:] = [result.modes for result in results]
        return value, gradient, results

    if not len(start):  # choices without predictors and effects: there is nothing to estimate
        return parameters_at(start), start, [], likelihood(start)[2]
    point = _maximise(likelihood, start, scheme, n_ratings)
    hessian = _second_derivatives(likelihood, point)
    # BFGS stops close to the maximum; one Newton step then gives full precision
    point = point - np.linalg.lstsq(hessian, likelihood(point)[1], rcond=1e-10)[0]
    point[n_fixed:] = np.abs(point[n_fixed:])
    # If a negative standard deviation has become positive, the modes of its effects must change
    # sign, too. So all modes are searched again, from zero.
    _value, gradient, results = likelihood(point, from_zero=True)
    parameters = parameters_at(point)
    sizes = [*np.abs(parameters.slopes), *parameters.participants, parameters.trials]
    if max(sizes, default=0) > _MAX_ESTIMATE or not np.all(np.abs(gradient) < 1e-3 * n_ratings):
        raise InputError(
            "The fit has no finite estimates: participants agree on nearly every trial, or "
            "the ratios predict nearly every rating. Add trials on which participants differ."
        )
    return parameters, point[:n_fixed], _standard_errors(hessian, n_fixed), results


# Log-likelihood, its gradient, and the likelihoods of groups, for one vector of parameters.
#
# The vector contains the estimated thresholds, the slopes, the standard deviations of participants'
# effects, and, if trials have random intercepts, the standard deviation of these intercepts
_Value: TypeAlias = "tuple[float, FloatArray, tuple[BlockLikelihood, ...]]"


def _starting_point(scheme: ThresholdScheme, blocks: Sequence[RatedBlock]) -> FloatArray:
    """Return a start for `_maximise`: thresholds from the shares of levels, slopes of 0."""
    from scipy.special import ndtri

    levels = np.concatenate([block.levels.ravel() for block in blocks])
    counts = np.bincount(levels[levels >= 0], minlength=len(scheme.matrix) + 1)
    if scheme.first_step == 0:
        counts = counts + counts[::-1]  # makes the thresholds symmetric
    shares = np.cumsum(counts)[:-1] / counts.sum()
    finite = ndtri(np.clip(shares, 1e-3, 1 - 1e-3))
    steps = np.diff(finite[len(finite) - len(scheme.names) :], prepend=0.0)
    steps[scheme.first_step :] = np.log(np.maximum(steps[scheme.first_step :], 1e-2))
    return np.concatenate([steps, np.zeros(blocks[0].predictors.shape[1])])


def _maximise(
    likelihood: Callable[[FloatArray], _Value],
    start: FloatArray,
    scheme: ThresholdScheme,
    n_ratings: int,
) -> FloatArray:
    """Find the maximum by BFGS.

    BFGS varies the logarithms of the steps between thresholds instead of the thresholds.
    """
    from scipy.optimize import minimize

    n, first = len(scheme.names), scheme.first_step

    # With logarithms of steps, thresholds ascend for any vector
    def to_point(free: FloatArray) -> tuple[FloatArray, FloatArray]:
        steps = free[:n].copy()
        steps[first:] = np.exp(np.clip(steps[first:], -30, 30))
        # change[i, j] is the derivative of threshold i by entry j
        change = np.tril(np.ones((n, n))) * np.where(np.arange(n) < first, 1.0, steps)
        return np.concatenate([np.cumsum(steps), free[n:]]), change

    def objective(free: FloatArray) -> tuple[float, FloatArray]:
        point, change = to_point(free)
        try:
            value, gradient, _ = likelihood(point)
        except (InputError, np.linalg.LinAlgError):
            return np.inf, np.zeros_like(free)
        if not np.isfinite(value):
            return np.inf, np.zeros_like(free)
        by_free = np.concatenate([change.T @ gradient[:n], gradient[n:]])
        return -value / n_ratings, -by_free / n_ratings

    with np.errstate(all="ignore"):
        optimum = minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-6})
    return to_point(optimum.x)[0]


def _second_derivatives(
    likelihood: Callable[[FloatArray], _Value], point: FloatArray
) -> FloatArray:
    """Return the symmetric matrix of second derivatives, by differences of the exact gradient."""
    size = 1e-4
    rows = [
        (likelihood(point + size * step)[1] - likelihood(point - size * step)[1]) / (2 * size)
        for step in np.eye(len(point))
    ]
    return (np.array(rows) + np.array(rows).T) / 2


def _standard_errors(hessian: FloatArray, n_fixed: int) -> list[float]:
    """Return standard errors of thresholds and slopes.

    The errors include the uncertainty of the standard deviations, which are estimated too.

    Raises:
        InputError: if the ratings do not determine the estimates.
    """
    # The inverse of the Schur complement `information` is the part of the inverse of -hessian that
    # belongs to thresholds and slopes. The pseudo-inverse is needed if a variance is zero, because
    # the likelihood may then be flat.
    between, varying = -hessian[:n_fixed, n_fixed:], -hessian[n_fixed:, n_fixed:]
    absorbed = between @ np.linalg.pinv(varying, rcond=1e-10, hermitian=True) @ between.T
    information = -hessian[:n_fixed, :n_fixed] - absorbed
    eigenvalues = np.linalg.eigvalsh(information)
    if n_fixed and eigenvalues.min() < 1e-9 * eigenvalues.max():
        raise InputError(
            "The ratings do not determine the estimates: predictors are collinear, or there "
            "are too few ratings. Remove predictors, or add trials."
        )
    errors: list[float] = np.sqrt(np.diag(np.linalg.inv(information))).tolist()
    return errors


def require_overlap(scheme: ThresholdScheme, blocks: Sequence[RatedBlock]) -> None:
    """Check that predictors do not separate the ratings perfectly.

    Raises:
        InputError: if predictors separate the ratings, because steeper slopes then always fit
            better.
    """
    # Predictors separate the ratings if there is a direction of slopes and thresholds along which
    # no rating becomes less likely, and some rating becomes more likely. If and only if such a
    # direction exists, the likelihood has no maximum (Albert & Anderson 1984). A linear program
    # searches for the direction (Konis 2007).
    # A rating becomes more likely if the linear predictor lies further below the rating's upper
    # threshold and further above its lower threshold. Of all ratings of a trial, the lowest has the
    # strictest upper limit, and the highest has the strictest lower limit.
    n_finite = len(scheme.matrix)
    lowest = np.concatenate(
        [np.where(b.levels < 0, n_finite, b.levels).min(axis=0) for b in blocks]
    )
    highest = np.concatenate([block.levels.max(axis=0) for block in blocks])
    values = np.concatenate([block.predictors for block in blocks])  # (n_trials, n_predictors)
    n_slopes = values.shape[1]
    if not n_slopes:
        return  # thresholds alone do not separate ratings
    below, above = lowest < n_finite, highest > 0
    # A rating becomes less likely if the product of its row and the direction is positive
    limits = [
        np.hstack([values[below], -scheme.matrix[lowest[below]]]),
        np.hstack([-values[above], scheme.matrix[highest[above] - 1]]),
        np.hstack([np.zeros((n_finite - 1, n_slopes)), -np.diff(scheme.matrix, axis=0)]),
    ]
    rows = np.unique(np.concatenate(limits), axis=0)
    # The linear program has values from 0 to 1, the direction has values from -1 to 1
    direction = 2 * linear_minimum(rows.sum(axis=0), rows, rows.sum(axis=1) / 2) - 1
    if (rows @ direction).sum() < -1e-9 and np.abs(direction[:n_slopes]).max() > 1e-9:
        raise InputError(
            "Some ratios agree with all ratings without exception (separation), so the fit "
            "has no finite coefficient. Add trials or participants, or remove models."
        )
