"""Cumulative links: the log-probability of an ordered rating, and its derivatives.

A rating of level y (0, 1, …) says that a hidden value, eta plus noise, fell between two thresholds:

    P(y) = F(upper - eta) - F(lower - eta),     lower, upper = thresholds[y], thresholds[y + 1]

F is the noise's distribution, standard normal (probit) or standard logistic (logit); the outermost
thresholds are minus and plus infinity. Both are symmetric and make log P concave in eta.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from contstim.arrays import FloatArray, IntArray

Link: TypeAlias = Literal["probit", "logit"]


@dataclass(frozen=True, eq=False)
class CellDerivatives:
    """log P of each rating and its derivatives, all of the shape of the ratings.

    Attributes:
        log_prob: log P.
        eta: the first derivative by eta.
        eta_2: the second.
        eta_3: the third.
        upper: by the upper threshold.
        lower: by the lower threshold.
        upper_eta: by the upper threshold and eta.
        lower_eta: by the lower threshold and eta.
        upper_eta_2: by the upper threshold, and twice by eta.
        lower_eta_2: by the lower threshold, and twice by eta.
    """

    log_prob: FloatArray
    eta: FloatArray
    eta_2: FloatArray
    eta_3: FloatArray
    upper: FloatArray
    lower: FloatArray
    upper_eta: FloatArray
    lower_eta: FloatArray
    upper_eta_2: FloatArray
    lower_eta_2: FloatArray


def cell_derivatives(
    link: Link, levels: IntArray, eta: FloatArray, thresholds: FloatArray
) -> CellDerivatives:
    """All that the Laplace approximation needs to know of every rating.

    Args:
        link: the distribution of the noise.
        levels: of the ratings, 0 to n_levels - 1.
        eta: where the hidden values are centred, of the same shape.
        thresholds: (n_levels + 1,) ascending, from -inf to inf.
    """
    upper, lower = thresholds[levels + 1] - eta, thresholds[levels] - eta
    log_prob = _log_difference(link, upper, lower)
    # Each a ratio of a derivative of F to P: a, a1, a2 = F', F'', F''' at the upper end, b, … at
    # the lower. The density is divided in logs, since both may be too small for a number.
    a, a1, a2 = _ratios(link, upper, log_prob)
    b, b1, b2 = _ratios(link, lower, log_prob)
    # Derivatives of log P by its ends: h by the upper, l by the lower.
    hh, ll, hl = a1 - a * a, -b1 - b * b, a * b
    hhh = a2 - 3 * a * a1 + 2 * a**3
    hhl = b * (a1 - 2 * a * a)
    hll = a * (b1 + 2 * b * b)
    lll = -b2 - 3 * b * b1 - 2 * b**3
    # eta stands in both ends with a minus
    return CellDerivatives(
        log_prob,
        eta=b - a,
        eta_2=hh + 2 * hl + ll,
        eta_3=-(hhh + 3 * hhl + 3 * hll + lll),
        upper=a,
        lower=-b,
        upper_eta=-(hh + hl),
        lower_eta=-(ll + hl),
        upper_eta_2=hhh + 2 * hhl + hll,
        lower_eta_2=lll + 2 * hll + hhl,
    )


def log_probs(link: Link, levels: IntArray, eta: FloatArray, thresholds: FloatArray) -> FloatArray:
    """Log P alone; see `cell_derivatives`, whose arguments it has."""
    return _log_difference(link, thresholds[levels + 1] - eta, thresholds[levels] - eta)


def _log_difference(link: Link, upper: FloatArray, lower: FloatArray) -> FloatArray:
    """log(F(upper) - F(lower)) without cancellation."""
    # In the upper tail both are nearly 1. The mirror image, F(-lower) - F(-upper), is the same.
    mirrored = lower > 0
    low, high = np.where(mirrored, -upper, lower), np.where(mirrored, -lower, upper)
    log_low, log_high = _log_cdf(link, low), _log_cdf(link, high)
    difference: FloatArray = log_high + np.log1p(-np.exp(log_low - log_high))
    return difference


def _log_cdf(link: Link, values: FloatArray) -> FloatArray:
    from scipy.special import log_expit, log_ndtr

    logs: FloatArray = log_ndtr(values) if link == "probit" else log_expit(values)
    return logs


def _ratios(
    link: Link, ends: FloatArray, log_prob: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """F', F'' and F''' over P; all 0 at an infinite end."""
    finite = np.where(np.isfinite(ends), ends, 0.0)
    if link == "probit":
        density = -0.5 * finite**2 - 0.5 * np.log(2 * np.pi)
        first, second = -finite, finite**2 - 1
    else:
        from scipy.special import expit, log_expit

        density, share = log_expit(finite) + log_expit(-finite), expit(finite)
        first, second = 1 - 2 * share, 1 - 6 * share * (1 - share)
    ratio = np.exp(np.where(np.isfinite(ends), density - log_prob, -np.inf))
    return ratio, ratio * first, ratio * second
