"""Tests of whether differences between models, or of models to people, are more than chance.

Wilcoxon's signed-rank test (1945; zeros are ranked along and split between both signs) over groups
or participants with its effect size, the matched-pairs rank-biserial correlation (Kerby 2014), and
corrections for a whole family of contrasts: the false-discovery rate of Benjamini and Hochberg
(1995), or Holm's (1979) family-wise error rate for a few that were planned.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np

from contstim.errors import InputError
from contstim.tables import parsed, read_table, text
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import ArrayLike

    from contstim.arrays import FloatArray
    from contstim.experiments.analysis.scopes import Scope

CEILING = "ceiling"  # what a model is compared with: the lower noise ceiling on its own trials
FALSE_DISCOVERY_RATE = 0.05  # up to which adjusted p-values are significant, unless told otherwise
THESE_ITEMS = (
    "Tests compare participants, who saw the same trials: what they call significant holds for "
    "these very items, not for others like them. With items drawn at random and models that do not "
    "differ, such tests call many pairs of models different. To speak of items in general, compare "
    "groups that saw different trials, or take people and items as random (--units crossed)."
)
SINGLE_TESTS = "single tests, not adjusted"  # the family of tests that belong to none
_DIGITS = 12  # equal differences of means differ in the last bits; ranks must see them tied
_ROUNDING = 1e-9  # of p-values that are equal by another formula
_ENUMERATED = 13  # pairs up to which all patterns of signs are counted
_UNTIED = 50  # pairs up to which the distribution without ties is counted
_SHIFTS = 6.0  # means in standard deviations, beyond which all differences have one sign


Correction = Literal["bh", "holm"]
"""For the family of contrasts: Benjamini and Hochberg's false-discovery rate, or Holm's."""

CORRECTIONS: dict[Correction, str] = {
    "bh": "false-discovery rate (Benjamini and Hochberg)",
    "holm": "family-wise error rate (Holm)",
}


@dataclass(frozen=True)
class ModelContrast:
    """A model and what it is compared with: another model, or `CEILING`."""

    first: str
    second: str


@dataclass(frozen=True)
class SignedRankTest:
    """Wilcoxon's signed-rank test of paired values.

    Attributes:
        n: pairs, those without a difference included.
        statistic: the smaller sum of ranks.
        p_value: two-sided; nan where there is no pair.
        rank_biserial: the effect size, -1 (always lower) to 1 (always higher).
    """

    n: int
    statistic: float
    p_value: float
    rank_biserial: float


@dataclass(frozen=True)
class Reach:
    """Limits of what a family of signed-rank tests can find, whatever the data.

    Attributes:
        tests: in the family.
        fewest_units: of any of its tests.
        most_units: likewise.
        smallest: the smallest p-value that any of its tests can have.
        needed: how many tests must be as clear as they can be (all units on one side) for any to be
            significant; None where even that is not enough.
        correction: for the family.
    """

    tests: int
    fewest_units: int
    most_units: int
    smallest: float
    needed: int | None
    correction: Correction = "bh"

    def cannot(self, units: str) -> str:
        """`cannot be tested with 4 groups`, where nothing can be significant; else empty."""
        if self.needed is not None or not self.tests:
            return ""
        return f"cannot be tested with {self._counted(units)}"

    def unless(self) -> str:
        """Condition for anything to be significant, where that takes several tests; else empty."""
        if self.needed in (None, 1):
            return ""
        return f"unless {self.needed} of the {self.tests} tests come out as clearly as they can"

    def caution(self, units: str, rate: float) -> str:
        """Limits of the family, as sentences; empty where a single test can be significant.

        Args:
            units: what the tests compare, in the plural.
            rate: the false-discovery rate.
        """
        if not self.tests or self.needed == 1:
            return ""
        least = f"the smallest p-value that Wilcoxon's signed-rank test has is {self.smallest:.3g}"
        head = f"With {self._counted(units)} "
        kind = CORRECTIONS[self.correction].partition(" (")[0]
        if self.needed is None:
            # Holm lets the clearest of m tests pass below rate / m, and others only after it.
            limit = rate / (self.tests if self.correction == "holm" else 1)
            enough = next((n for n in range(1, 1_000) if smallest_p_value(n) < limit), "infinite")
            return (
                f"{head}nothing can be significant, whatever the data: {least}. Tests at a "
                f"{kind} of {rate:g} need {enough} {units} or more; tests that take people and "
                "items as random (--units crossed) need no groups."
            )
        return (
            f"{head}nothing can be significant {self.unless()}, with all {units} on one side: "
            f"{least}, and {self.tests} tests share a {kind} of {rate:g}. More "
            f"{units} or fewer contrasts ask for less."
        )

    def _counted(self, units: str) -> str:
        if self.fewest_units != self.most_units:
            return f"{self.fewest_units} to {self.most_units} {units}"
        return counted(self.most_units, units.removesuffix("s"), units)


def family_cautions(
    families: Iterable[tuple[Scope, Reach]], units: str, rate: float
) -> Iterator[str]:
    """Limits of the families of tests of some scopes: a sentence for each limit.

    Args:
        families: scope and reach.
        units: what the tests compare, in the plural.
        rate: the false-discovery rate.
    """
    limits: dict[str, list[str]] = {}
    for scope, family in families:
        limits.setdefault(family.caution(units, rate), []).append(str(scope))
    for limit, scopes in limits.items():
        if limit:
            where = "" if len(limits) == 1 else f"{', '.join(dict.fromkeys(scopes))}: "
            yield where + limit


def smallest_p_value(units: int) -> float:
    """The smallest two-sided p-value of the signed-rank test: all differences have one sign."""
    return min(1.0, 2 * 0.5**units)


def reach(units: ArrayLike, rate: float, correction: Correction = "bh") -> Reach:
    """Limits of what a family of signed-rank tests can find after a correction.

    Args:
        units: (n_tests,) how many pairs each test compares; tests without any are not part.
        rate: adjusted p-values below it are significant.
        correction: for the family.
    """
    sizes = np.asarray(units, np.int64)
    sizes = np.sort(sizes[sizes > 0])[::-1]  # most units first: they can have the smallest p-value
    if not len(sizes):
        return Reach(0, 0, 0, 1.0, None, correction)
    smallest = np.array([smallest_p_value(n) for n in sizes.tolist()])
    # Benjamini and Hochberg: the k smallest of m p-values are significant if the k-th is below
    # rate * k / m. Here each is as small as it can be; `needed` is the first such k. Holm's first
    # step is that of k = 1, without which there is no other.
    ranks = np.arange(1, len(sizes) + 1) if correction == "bh" else np.ones(1, np.int64)
    smallest = smallest[: len(ranks)]
    enough = np.flatnonzero(smallest * len(sizes) / ranks < rate)
    needed = int(ranks[enough[0]]) if len(enough) else None
    return Reach(len(sizes), int(sizes[-1]), int(sizes[0]), float(smallest[0]), needed, correction)


def every_contrast(models: Sequence[str]) -> tuple[ModelContrast, ...]:
    """All pairs of models and every model against the ceiling: 36 + 9 for the nine of 2023."""
    pairs = [ModelContrast(first, second) for first, second in combinations(models, 2)]
    return (*pairs, *(ModelContrast(model, CEILING) for model in models))


def read_contrasts(path: Path | str, models: Sequence[str]) -> tuple[ModelContrast, ...]:
    """The contrasts that a design states: a table with the columns first and second.

    Each row names two models, or a model and `ceiling`.

    Raises:
        InputError: the file cannot be read, is empty, lacks a column, names a model that was not
            scored, or states a contrast twice.
    """
    table = read_table(path)
    if not {"first", "second"} <= table.keys() or not table["first"]:
        raise InputError(f"{path} states no contrasts; expected rows under first and second.")
    first, second = (parsed(path, name, table[name], text, "name") for name in ("first", "second"))
    stated = [ModelContrast(*row) for row in zip(first, second, strict=True)]
    for contrast in stated:
        is_scored = contrast.first in models and contrast.second in (*models, CEILING)
        if not is_scored or contrast.first == contrast.second:
            raise InputError(
                f"{path} compares {contrast.first!r} with {contrast.second!r}; first is a model, "
                f"second another one or {CEILING!r}. There are {', '.join(models)}."
            )
    if len({frozenset((contrast.first, contrast.second)) for contrast in stated}) < len(stated):
        raise InputError(f"{path} states a contrast twice.")
    return tuple(stated)


def signed_rank_test(first: FloatArray, second: FloatArray) -> SignedRankTest:
    """Wilcoxon's test of pairs; ranks of zero differences are split between both signs.

    P-values are those of `signed_rank_p_values`.

    Args:
        first: (n_pairs,).
        second: (n_pairs,); pairs with a nan are left out.
    """
    differences = _rounded(first - second)
    ranks = _signed_ranks(differences[None])[0]
    n = int((~np.isnan(differences)).sum())
    if not n:
        return SignedRankTest(0, np.nan, np.nan, np.nan)
    # The positive ranks add up to (total + signed) / 2, the negative ones to (total - signed) / 2.
    signed, total = float(ranks.sum()), n * (n + 1) / 2
    p_value = float(signed_rank_p_values(differences[None])[0])
    return SignedRankTest(n, (total - abs(signed)) / 2, p_value, signed / total)


def rank_biserial_interval(n: int, rank_biserial: float, level: float) -> tuple[float, float]:
    """The interval of a rank-biserial correlation of n pairs; nan of a nan.

    A score interval, as Wilson's (1927) is of a share and Newcombe's (2006) of the Mann-Whitney
    statistic: all correlations from which the observed one lies less than a normal quantile of
    standard errors away. The standard error is the one of that correlation, not of the observed
    one, so that the interval has a width where all differences have one sign, too. Moments of the
    statistic are Lehmann's (1998, *Nonparametrics*), for normal differences.

    Args:
        n: pairs.
        rank_biserial: -1 to 1; see `SignedRankTest`.
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
    rounded: FloatArray = np.round(differences, _DIGITS)
    return rounded


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
    p_values: FloatArray = np.minimum(1.0, 2 * np.minimum(lower, upper) / 2.0 ** len(ranks))
    return p_values


def false_discovery(p_values: FloatArray) -> FloatArray:
    """P-values adjusted by Benjamini and Hochberg over the whole family; nan is not part of it."""
    from scipy.stats import false_discovery_control

    # A test that could not be made is not part of the family: it costs the others nothing.
    adjusted = np.full(p_values.shape, np.nan)
    tested = ~np.isnan(p_values)
    if tested.any():
        adjusted[tested] = false_discovery_control(p_values[tested], method="bh")
    return adjusted


def decision_alpha(
    p_values: FloatArray, rate: float, correction: Correction, needed: int | None
) -> FloatArray:
    """The p-value below which each contrast of a family is significant, after its correction.

    Intervals at 1 less this level leave out 0 where a contrast is significant, and only there. With
    k of m significant they are those of Benjamini and Yekutieli (2005), rate * k / m, which limit
    the share of intervals that miss among those of significant contrasts. Holm's last step was
    taken at rate / (m - k + 1). Where none is significant, k is the fewest that can be; a contrast
    that is clearer than that, alone where several had to be, has its own p-value.

    Args:
        p_values: (n_tests,) of the family; nan is not part of it.
        rate: the error rate.
        correction: for the family.
        needed: how many must be clear for any to be significant; see `Reach`.
    """
    adjusted = family_wise(p_values) if correction == "holm" else false_discovery(p_values)
    significant = adjusted < rate
    found, m = int(significant.sum()), max(1, int((~np.isnan(p_values)).sum()))
    if correction == "holm":
        alpha = rate / (m - max(1, found) + 1)
    else:
        alpha = rate * (found or needed or 1) / m
    # fmin and fmax take alpha where there is no p-value
    return np.where(
        significant,
        np.fmax(alpha, (1 + _ROUNDING) * p_values),
        np.fmin(alpha, (1 - _ROUNDING) * p_values),
    )


def family_wise(p_values: FloatArray) -> FloatArray:
    """P-values adjusted by Holm (1979) over the whole family; nan is not part of it."""
    adjusted = np.full(p_values.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p_values))
    order = tested[np.argsort(p_values[tested])]
    # The smallest of m counts m times, the next m - 1 times, and none less than the one before.
    steps = np.arange(len(order), 0, -1) * p_values[order]
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted
