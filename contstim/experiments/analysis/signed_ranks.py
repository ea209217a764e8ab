"""Wilcoxon's signed-rank test (1945): p-values, the effect size, and intervals.

The test ranks the absolute differences of pairs, and sums the ranks of each sign. Differences of
zero are ranked too, and half of their rank is added to each sum. The effect size is the
matched-pairs rank-biserial correlation (Kerby 2014).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contstim.experiments.analysis.tables import Row
    from contstim.files.arrays import FloatArray

# Number of decimals to which differences are rounded before ranking. Because of rounding errors,
# computed differences may differ in the last bits although the exact differences are equal
_DIGITS = 12
_MAX_ENUMERATED = 13  # maximum number of pairs for which all patterns of signs are counted
# Maximum number of pairs without ties whose p-value is exact; above it, p-values are approximate
_MAX_EXACT = 50
# Maximum mean of the differences that `rank_biserial_interval` considers, in standard deviations.
# With this mean, practically all differences have the same sign
_MAX_SHIFT = 6.0


def smallest_p_value(units: int) -> float:
    """Return the smallest possible two-sided p-value for `units` pairs.

    It results if all differences have the same sign.
    """
    return min(1.0, 2 * 0.5**units)


def signed_rank_test(first: FloatArray, second: FloatArray) -> Row:
    """Run Wilcoxon's test on pairs of values. Pairs with a nan are left out.

    Returns:
        `n_units`: number of pairs, including pairs of equal values. `statistic`: the smaller one of
        the two sums of ranks. `rank_biserial`: effect size from -1 (first values are always lower)
        to 1 (first values are always higher). `p_value`: see `signed_rank_p_values`. Without pairs,
        all values except `n_units` are nan.
    """
    differences = np.round(first - second, _DIGITS)[None]
    n = int((~np.isnan(differences)).sum())
    # The positive ranks sum to (total + signed) / 2, the negative ones to (total - signed) / 2
    signed, total = float(_signed_ranks(differences).sum()), n * (n + 1) / 2
    return {
        "n_units": n,
        "statistic": (total - abs(signed)) / 2 if n else np.nan,
        "rank_biserial": signed / total if n else np.nan,
        "p_value": float(signed_rank_p_values(differences)[0]),
    }


def rank_biserial_interval(n: int, rank_biserial: float, level: float) -> tuple[float, float]:
    """Return the interval of a rank-biserial correlation of n pairs.

    If the correlation is nan, both ends are nan.

    This is a score interval, like Wilson's (1927) for a share and Newcombe's (2006) for the
    Mann-Whitney statistic. It contains each correlation r whose distance to the observed
    correlation is at most a normal quantile times the standard error under r. The standard error
    under the observed correlation is not used: it is 0 if all differences have the same sign. For
    normal differences, Lehmann (1998, *Nonparametrics*) gives the mean and variance of the sum of
    positive ranks, which determines the correlation.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr, owens_t
    from scipy.stats import norm

    if np.isnan(rank_biserial):
        return np.nan, np.nan
    max_sum, quantile = n * (n + 1) / 2, float(norm.ppf((1 + level) / 2))

    # The sum of positive ranks is the number of index pairs i <= j with D_i + D_j > 0, where D are
    # the differences. If the mean of D is `shift` standard deviations, this inequality has the
    # probability `single` for i = j, and the probability `pair` for i < j. `shared` is the
    # probability that D_i + D_j > 0 and D_i + D_k > 0, for three different indices.
    def moments(shift: float) -> tuple[float, float]:
        single, pair = ndtr(shift), ndtr(np.sqrt(2) * shift)
        shared = pair - 2 * owens_t(np.sqrt(2) * shift, 1 / np.sqrt(3))
        mean = n * single + n * (n - 1) / 2 * pair
        variance = n * single * (1 - single) + n * (n - 1) * (n - 2) * (shared - pair**2)
        variance += n * (n - 1) / 2 * (2 * (single - pair) ** 2 + 3 * pair * (1 - pair))
        return float(mean), float(variance)

    def end(side: int) -> float:
        if side * rank_biserial >= 1:
            return rank_biserial  # no correlation is more extreme

        def beyond(shift: float) -> float:
            mean, variance = moments(shift)
            observed = (1 + rank_biserial) / 2 * max_sum
            return side * (observed - mean) + quantile * float(np.sqrt(max(0.0, variance)))

        shift = float(brentq(beyond, -_MAX_SHIFT, _MAX_SHIFT))
        return 2 * moments(shift)[0] / max_sum - 1

    return end(-1), end(1)


def signed_rank_interval(differences: FloatArray, alpha: float) -> tuple[float, float]:
    """Return the interval of shifts that Wilcoxon's test does not reject (Hodges & Lehmann 1963).

    A shift is a value that is subtracted from all differences before the test. A shift is rejected
    if its p-value is below `alpha`. The ends of the interval are Walsh averages, that is, single
    differences or means of two differences.

    Every shift is tested with the critical value of the unshifted differences, which depends on
    their ties and zeros. So the interval excludes 0 if and only if the p-value of
    `signed_rank_p_values` is below `alpha`. There is an exception. If so
    many differences are zero that no p-value can be below `alpha`, the critical value is that of
    differences without ties and zeros. With too few pairs, no shift can be rejected, and the
    interval is infinite.

    Differences of nan are left out.
    """
    from scipy.stats import norm, rankdata

    differences = np.round(differences[~np.isnan(differences)], _DIGITS)
    n = len(differences)
    if not n:
        return np.nan, np.nan
    # Sums of negative ranks are doubled, so that they are integers. A zero adds half of its rank.
    ranks = rankdata(np.abs(differences))
    doubled = np.rint(2 * ranks).astype(np.int64)
    is_zero = differences == 0
    if n > _MAX_ENUMERATED and (n > _MAX_EXACT or is_zero.any() or len(np.unique(ranks)) < n):
        error = np.sqrt((ranks**2).sum()) / 2
        critical = int(np.ceil(n * (n + 1) / 2 - 2 * float(norm.isf(alpha / 2)) * error)) - 1
    else:
        critical = _largest_significant(doubled[~is_zero].tolist(), alpha)
        critical += int(doubled[is_zero].sum() // 2) if critical >= 0 else 0
    # Half of the rank of a zero is added to each sum, so with many zeros a shift of 0 cannot be
    # rejected. Any other shift leaves no zeros and may be rejected.
    contains_zero = critical < 0 and bool(is_zero.any())
    if contains_zero:
        critical = _largest_significant(range(2, 2 * n + 1, 2), alpha)
    if critical < 0:
        return -np.inf, np.inf
    # For any shift, the doubled sum of negative ranks is twice the number of Walsh averages below
    # the shift, plus the number of Walsh averages equal to the shift
    rows, columns = np.triu_indices(n)
    walsh = np.sort(np.round((differences[rows] + differences[columns]) / 2, _DIGITS))
    low, high = (_lower_end(side, critical) for side in (walsh, -walsh[::-1]))
    return (min(low, 0.0), max(-high, 0.0)) if contains_zero else (low, -high)


def _largest_significant(doubled: Iterable[int], alpha: float) -> int:
    """Return the largest doubled sum of ranks whose p-value is below alpha; -1 if there is none.

    Wilcoxon's statistic is the smaller one of two sums of ranks: the sum over the positive
    differences, and the sum over the negative ones. The result is the doubled critical value of
    this statistic. `doubled` are the doubled ranks.
    """
    p_values = _sign_p_values(doubled)
    below = np.flatnonzero(p_values[: (len(p_values) + 1) // 2] < alpha)
    return int(below[-1]) if len(below) else -1


def _lower_end(walsh: FloatArray, critical: int) -> float:
    """Return the lower end of an interval of shifts, from sorted Walsh averages.

    For shifts above this end, the doubled sum of negative ranks exceeds `critical`.
    """
    end = float(walsh[critical // 2])
    at_end = 2 * int((walsh < end).sum()) + int((walsh == end).sum())
    # If the test rejects the end itself, the interval begins just above it
    return end if at_end > critical else end + 10.0**-_DIGITS


def signed_rank_p_values(differences: FloatArray) -> FloatArray:
    """Return two-sided p-values of many Wilcoxon tests, (n_tests,); nan without pairs.

    P-values are exact for up to 13 pairs. For more pairs, scipy computes the p-values. These are
    exact for up to 50 pairs without ties; otherwise, they are normal approximations.

    Args:
        differences: (n_tests, n_pairs); nan is left out.
    """
    from scipy.stats import wilcoxon

    differences = np.round(differences, _DIGITS)
    pairs = (~np.isnan(differences)).sum(axis=1)
    p_values = np.full(len(differences), np.nan)
    few = (pairs > 0) & (pairs <= _MAX_ENUMERATED)
    if few.any():
        p_values[few] = _exact_p_values(differences[few])
    # After nan are removed, tests with the same number of pairs form one array, (n_tests, n)
    for n in np.unique(pairs[pairs > _MAX_ENUMERATED]).tolist():
        rows = differences[pairs == n]
        rows = rows[~np.isnan(rows)].reshape(-1, n)
        sizes = np.sort(np.abs(rows), axis=1)
        tied = (sizes[:, 0] == 0) | (np.diff(sizes, axis=1) == 0).any(axis=1) | (n > _MAX_EXACT)
        for selected, method in ((tied, "asymptotic"), (~tied, "exact")):
            if selected.any():
                tests = wilcoxon(rows[selected], axis=1, zero_method="zsplit", method=method)
                p_values[np.flatnonzero(pairs == n)[selected]] = tests.pvalue
    return p_values


def _signed_ranks(differences: FloatArray) -> FloatArray:
    """Return signed ranks, (n_tests, n_pairs); 0 for nan and for differences of zero.

    Differences of zero take part in the ranking and take the lowest ranks. So the ranks of all
    other differences begin above them.
    """
    from scipy.stats import rankdata

    ranks = rankdata(np.abs(differences), axis=1, nan_policy="omit")
    return np.where(np.isnan(differences), 0.0, np.sign(differences) * ranks)


def _exact_p_values(differences: FloatArray) -> FloatArray:
    """Return exact p-values, from all possible assignments of signs to ranks.

    Tests with the same absolute ranks share one distribution, which is computed once.

    Args:
        differences: (n_tests, n_pairs), rounded; each test has 1 to 13 values that are not nan.
    """
    # Average ranks are multiples of one half, so doubled ranks are integers
    doubled = np.rint(2 * _signed_ranks(differences)).astype(np.int64)
    sums = np.where(doubled > 0, doubled, 0).sum(axis=1)
    ranks, pattern = np.unique(np.sort(np.abs(doubled)), axis=0, return_inverse=True)
    p_values = np.empty(len(differences))
    for index, doubled_ranks in enumerate(ranks.tolist()):
        has_pattern = pattern == index
        p_values[has_pattern] = _sign_p_values(doubled_ranks)[sums[has_pattern]]
    return p_values


def _sign_p_values(doubled: Iterable[int]) -> FloatArray:
    """Return the two-sided p-value of each doubled sum of positive ranks.

    The index of a p-value is the doubled sum, from 0 to the largest possible sum.

    Args:
        doubled: doubled average ranks; 0 for a difference of zero or a missing pair.
    """
    # Count, rank by rank, how many of the 2^k assignments of signs give each sum
    ways, ranks = np.ones(1), [rank for rank in doubled if rank]
    for rank in ranks:
        ways = np.pad(ways, (0, rank)) + np.pad(ways, (rank, 0))
    lower, upper = np.cumsum(ways), np.cumsum(ways[::-1])[::-1]
    return np.minimum(1.0, 2 * np.minimum(lower, upper) / 2.0 ** len(ranks))
