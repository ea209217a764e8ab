"""Wilcoxon's signed-rank test (1945): p-values, the effect size, and intervals.

Zeros are ranked along and split between both signs. The effect size is the matched-pairs
rank-biserial correlation (Kerby 2014).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contstim.experiments.analysis.tables import Row
    from contstim.files.arrays import FloatArray

_DIGITS = 12  # equal differences of means differ in the last bits; ranks must see them tied
_ENUMERATED = 13  # pairs up to which all patterns of signs are counted
_UNTIED = 50  # pairs up to which the distribution without ties is counted
_SHIFTS = 6.0  # means in standard deviations, beyond which all differences have one sign


RANK_TEST = ("n_units", "statistic", "rank_biserial", "p_value")


def smallest_p_value(units: int) -> float:
    """The smallest two-sided p-value of the signed-rank test: all differences have one sign."""
    return min(1.0, 2 * 0.5**units)


def signed_rank_test(first: FloatArray, second: FloatArray) -> Row:
    """Wilcoxon's test of pairs; ranks of zero differences are split between both signs.

    P-values are those of `signed_rank_p_values`.

    Args:
        first: (n_pairs,).
        second: (n_pairs,); pairs with a nan are left out.

    Returns:
        `n_units` pairs, those without a difference included; the `statistic`, which is the smaller
        sum of ranks; `rank_biserial`, the effect size from -1 (always lower) to 1 (always higher);
        and the two-sided `p_value`, nan where there is no pair.
    """
    differences = _rounded(first - second)[None]
    n = int((~np.isnan(differences)).sum())
    found = (np.nan, np.nan, np.nan)
    if n:
        # The positive ranks add up to (total + signed) / 2, the negative to (total - signed) / 2.
        signed, total = float(_signed_ranks(differences).sum()), n * (n + 1) / 2
        p_value = float(signed_rank_p_values(differences)[0])
        found = ((total - abs(signed)) / 2, signed / total, p_value)
    return dict(zip(RANK_TEST, (n, *found), strict=True))


def rank_biserial_interval(n: int, rank_biserial: float, level: float) -> tuple[float, float]:
    """The interval of a rank-biserial correlation of n pairs; nan of a nan.

    A score interval, as Wilson's (1927) is of a share and Newcombe's (2006) of the Mann-Whitney
    statistic: all correlations from which the observed one lies less than a normal quantile of
    standard errors away. The standard error is the one of that correlation, not of the observed
    one, so that the interval has a width where all differences have one sign, too. Moments of the
    statistic are Lehmann's (1998, *Nonparametrics*), for normal differences.

    Args:
        n: pairs.
        rank_biserial: -1 to 1; see `signed_rank_test`.
        level: of the interval, such as 0.95.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr, owens_t
    from scipy.stats import norm

    if np.isnan(rank_biserial):
        return np.nan, np.nan
    most, quantile = n * (n + 1) / 2, float(norm.ppf((1 + level) / 2))

    # The sum of positive ranks counts the pairs i <= j of differences with D_i + D_j > 0. With
    # means of `shift` standard deviations, `alone` is the chance for i = j, `pair` for i < j, and
    # `shared` that of two such pairs that have one difference in common.
    def moments(shift: float) -> tuple[float, float]:
        alone, pair = ndtr(shift), ndtr(np.sqrt(2) * shift)
        shared = pair - 2 * owens_t(np.sqrt(2) * shift, 1 / np.sqrt(3))
        mean = n * alone + n * (n - 1) / 2 * pair
        variance = n * alone * (1 - alone) + n * (n - 1) * (n - 2) * (shared - pair**2)
        variance += n * (n - 1) / 2 * (2 * (alone - pair) ** 2 + 3 * pair * (1 - pair))
        return float(mean), float(variance)

    def end(side: int) -> float:
        if side * rank_biserial >= 1:
            return rank_biserial  # no correlation lies beyond

        def beyond(shift: float) -> float:
            mean, variance = moments(shift)
            observed = (1 + rank_biserial) / 2 * most
            return side * (observed - mean) + quantile * float(np.sqrt(max(0.0, variance)))

        shift = float(brentq(beyond, -_SHIFTS, _SHIFTS))
        return 2 * moments(shift)[0] / most - 1

    return end(-1), end(1)


def signed_rank_interval(differences: FloatArray, alpha: float) -> tuple[float, float]:
    """All shifts that Wilcoxon's test does not find at `alpha` (Hodges & Lehmann 1963).

    Its ends are Walsh averages, means of two differences or one. It leaves out 0 where the p-value
    of `signed_rank_p_values` is below `alpha`, and only there: how ranks tie is taken from the
    differences as they are, unless zeros alone keep them from being significant. Infinite where no
    data of so many pairs could be significant.

    Args:
        differences: (n_pairs,); nan ones are left out.
        alpha: 1 less the level, such as 0.05.
    """
    from scipy.stats import norm, rankdata

    differences = _rounded(differences[~np.isnan(differences)])
    n = len(differences)
    if not n:
        return np.nan, np.nan
    # Sums of negative ranks, doubled so that they are whole; zeros count half on either side.
    ranks = rankdata(np.abs(differences))
    doubled = np.rint(2 * ranks).astype(np.int64)
    is_zero = differences == 0
    if n > _ENUMERATED and (n > _UNTIED or is_zero.any() or len(np.unique(ranks)) < n):
        error = np.sqrt((ranks**2).sum()) / 2
        critical = int(np.ceil(n * (n + 1) / 2 - 2 * float(norm.isf(alpha / 2)) * error)) - 1
    else:
        critical = _largest_significant(doubled[~is_zero].tolist(), alpha)
        critical += int(doubled[is_zero].sum() // 2) if critical >= 0 else 0
    # Zeros are split between both signs, so that many of them make no data significant; other
    # shifts leave no zeros.
    holds_zero = critical < 0 and bool(is_zero.any())
    if holds_zero:
        critical = _largest_significant(range(2, 2 * n + 1, 2), alpha)
    if critical < 0:
        return -np.inf, np.inf
    # The doubled sum of negative ranks is that of Walsh averages below 0, once for those equal to
    # 0; so with any shift in the place of 0.
    one, other = np.triu_indices(n)
    walsh = np.sort(_rounded((differences[one] + differences[other]) / 2))
    low, high = (_first_beyond(side, critical) for side in (walsh, -walsh[::-1]))
    return (min(low, 0.0), max(-high, 0.0)) if holds_zero else (low, -high)


def _largest_significant(doubled: Iterable[int], alpha: float) -> int:
    """The largest doubled sum of the ranks of one sign that is significant; -1 if none is."""
    p_values = _sign_p_values(doubled)
    below = np.flatnonzero(p_values[: (len(p_values) + 1) // 2] < alpha)
    return int(below[-1]) if len(below) else -1


def _first_beyond(walsh: FloatArray, critical: int) -> float:
    """The lower end: above it the doubled sum of negative ranks exceeds its critical value."""
    end = float(walsh[critical // 2])
    at_end = 2 * int((walsh < end).sum()) + int((walsh == end).sum())
    # An end that is significant itself does not belong to the interval
    return end if at_end > critical else end + 10.0**-_DIGITS


def signed_rank_p_values(differences: FloatArray) -> FloatArray:
    """Two-sided p-values of many of Wilcoxon's tests at once, (n_tests,); nan where is no pair.

    They are exact up to 13 pairs; beyond, scipy's: exact up to 50 pairs where nothing is tied, else
    by normal approximation.

    Args:
        differences: (n_tests, n_pairs); nan ones are left out.
    """
    from scipy.stats import wilcoxon

    differences = _rounded(differences)
    pairs = (~np.isnan(differences)).sum(axis=1)
    p_values = np.full(len(differences), np.nan)
    few = (pairs > 0) & (pairs <= _ENUMERATED)
    if few.any():
        p_values[few] = _exact_p_values(differences[few])
    # Tests of as many pairs, without their nan, are one array for scipy: (tests, n).
    for n in np.unique(pairs[pairs > _ENUMERATED]).tolist():
        rows = differences[pairs == n]
        rows = rows[~np.isnan(rows)].reshape(-1, n)
        sizes = np.sort(np.abs(rows), axis=1)
        tied = (sizes[:, 0] == 0) | (np.diff(sizes, axis=1) == 0).any(axis=1) | (n > _UNTIED)
        for some, method in ((tied, "asymptotic"), (~tied, "exact")):
            if some.any():
                tests = wilcoxon(rows[some], axis=1, zero_method="zsplit", method=method)
                p_values[np.flatnonzero(pairs == n)[some]] = tests.pvalue
    return p_values


def _rounded(differences: FloatArray) -> FloatArray:
    return np.round(differences, _DIGITS)


def _signed_ranks(differences: FloatArray) -> FloatArray:
    """Ranks of sizes, zeros ranked along, with their signs; 0 for what is zero or nan."""
    from scipy.stats import rankdata

    ranks = rankdata(np.abs(differences), axis=1, nan_policy="omit")
    return np.where(np.isnan(differences), 0.0, np.sign(differences) * ranks)


def _exact_p_values(differences: FloatArray) -> FloatArray:
    """Over all signs of the ranks; tests whose ranks tie alike share one distribution.

    Args:
        differences: (n_tests, n_pairs), rounded, with 1 to 13 that are not nan.
    """
    # Average ranks are halves at worst, so that twice the ranks, (n_tests, 13 at most), are whole.
    doubled = np.rint(2 * _signed_ranks(differences)).astype(np.int64)
    used = np.argsort(-np.abs(doubled), axis=1)[:, :_ENUMERATED]  # the others are zero
    doubled = np.take_along_axis(doubled, used, axis=1)
    # Twice the sizes, in descending order, as digits of one number: equal for tests that tie alike.
    digits = (2 * _ENUMERATED + 1) ** np.arange(doubled.shape[1])
    _, first, pattern = np.unique(np.abs(doubled) @ digits, return_index=True, return_inverse=True)
    positive = np.where(doubled > 0, doubled, 0).sum(axis=1)
    tables = np.stack([_null_p_values(tuple(ranks)) for ranks in np.abs(doubled[first]).tolist()])
    p_values: FloatArray = tables[pattern, positive]
    return p_values


@cache
def _null_p_values(doubled: tuple[int, ...]) -> FloatArray:
    """`_sign_p_values` up to the largest sum that 13 pairs can have, nan beyond their own.

    Args:
        doubled: twice the average ranks, 0 for no pair. There are fewer than 2^14 ways to tie.
    """
    p_values = _sign_p_values(doubled)
    table = np.full(_ENUMERATED * (_ENUMERATED + 1) + 1, np.nan)
    table[: len(p_values)] = p_values
    return table


def _sign_p_values(doubled: Iterable[int]) -> FloatArray:
    """Two-sided p-values by the doubled sum of positive ranks, from 0 to the largest.

    Args:
        doubled: twice the average ranks, 0 for no pair.
    """
    # Counted rank by rank, each negative or positive: in how many of the 2^k assignments of signs
    # each sum comes out.
    ways, ranks = np.ones(1), [rank for rank in doubled if rank]
    for rank in ranks:
        ways = np.pad(ways, (0, rank)) + np.pad(ways, (rank, 0))
    lower, upper = np.cumsum(ways), np.cumsum(ways[::-1])[::-1]
    return np.minimum(1.0, 2 * np.minimum(lower, upper) / 2.0 ** len(ranks))
