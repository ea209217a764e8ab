"""Which differences between models, and between models and people, are more than chance.

Wilcoxon's signed-rank test over groups or participants, with the false-discovery rate of Benjamini
and Hochberg over a whole family of contrasts.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contstim.arrays import FloatArray

CEILING = "ceiling"  # what a model is compared with: the lower noise ceiling on its own trials
_DIGITS = 12  # equal differences of means differ in the last bits; ranks must see them tied
_ENUMERATED = 13  # pairs up to which all patterns of signs are tried


@dataclass(frozen=True)
class Contrast:
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


def every_contrast(models: Sequence[str]) -> tuple[Contrast, ...]:
    """All pairs of models and every model against the ceiling: 36 + 9 for the nine of 2023."""
    pairs = [Contrast(first, second) for first, second in combinations(models, 2)]
    return (*pairs, *(Contrast(model, CEILING) for model in models))


def read_contrasts(path: Path | str, models: Sequence[str]) -> tuple[Contrast, ...]:
    """The contrasts that a design states: a table with the columns first and second.

    Each row names two models, or a model and `ceiling`.

    Raises:
        InputError: the file cannot be read, is empty, lacks a column, names a model that was not
            scored, or states a contrast twice.
    """
    table = read_table(path)
    if not {"first", "second"} <= table.keys() or not table["first"]:
        raise InputError(f"{path} states no contrasts; expected rows under first and second.")
    stated = [Contrast(*map(str, row)) for row in zip(table["first"], table["second"], strict=True)]
    for one in stated:
        known = one.first in models and one.second in (*models, CEILING)
        if not known or one.first == one.second:
            raise InputError(
                f"{path} compares {one.first!r} with {one.second!r}; first is a model, second "
                f"another one or {CEILING!r}. There are {', '.join(models)}."
            )
    if len({frozenset((one.first, one.second)) for one in stated}) < len(stated):
        raise InputError(f"{path} states a contrast twice.")
    return tuple(stated)


def signed_rank_test(first: FloatArray, second: FloatArray) -> SignedRankTest:
    """Wilcoxon's test of pairs; ranks of zero differences are split between both signs.

    P-values are exact up to 13 pairs; beyond, scipy's: exact up to 50 pairs where nothing is tied,
    else by normal approximation.

    Args:
        first: (n_pairs,).
        second: (n_pairs,); pairs with a nan are left out.
    """
    from scipy.stats import rankdata, wilcoxon

    differences = np.round(first - second, _DIGITS)
    differences = differences[~np.isnan(differences)]
    n = len(differences)
    if not n:
        return SignedRankTest(0, np.nan, np.nan, np.nan)
    ranks = rankdata(np.abs(differences))
    signed = float(np.sign(differences) @ ranks)
    total = n * (n + 1) / 2
    if n <= _ENUMERATED:
        p_value = _exact_p_value(signed, ranks[differences != 0])
    else:
        p_value = float(wilcoxon(differences, zero_method="zsplit").pvalue)
    return SignedRankTest(n, (total - abs(signed)) / 2, p_value, signed / total)


def _exact_p_value(signed: float, ranks: FloatArray) -> float:
    """Two-sided, over all signs of the ranks: scipy's permutation test, but in no time."""
    patterns = 2 * (np.arange(2 ** len(ranks))[:, None] >> np.arange(len(ranks)) & 1) - 1
    sums = patterns @ ranks
    return float(min(1.0, 2 * min((sums <= signed).mean(), (sums >= signed).mean())))


def false_discovery(p_values: FloatArray) -> FloatArray:
    """P-values adjusted by Benjamini and Hochberg over the whole family; nan ones are no part."""
    from scipy.stats import false_discovery_control

    adjusted = np.full(p_values.shape, np.nan)
    tested = ~np.isnan(p_values)
    if tested.any():
        adjusted[tested] = false_discovery_control(p_values[tested], method="bh")
    return adjusted
