"""Intervals of values, of their differences, and of their distances to the noise ceiling."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from contstim.experiments.analysis.crossed import BOTH, blocks_of, scatter_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import FloatArray
    from contstim.experiments.analysis.bootstrap import Bootstrap
    from contstim.experiments.analysis.crossed import GroupMoves, Scatter

IntervalMethod = Literal["corrected", "percentile"]
"""Student's t with the corrected two-factor variance, or percentiles of a bootstrap."""


@dataclass(frozen=True)
class Interval:
    """An interval by what is drawn anew; nan where that cannot be known, or nothing was resampled.

    Attributes:
        low: people and items are drawn anew, or what `population` says.
        high: likewise.
        low_items: items alone: for these people.
        high_items: likewise.
        low_participants: people alone: on these items.
        high_participants: likewise.
        standard_error: of `low` and `high`; nan for percentiles.
        degrees_of_freedom: likewise.
        population: whom and what `low` and `high` speak of.
        note: what had to be done, or why that is less than people and items; mostly empty.
    """

    low: float
    high: float
    low_items: float
    high_items: float
    low_participants: float
    high_participants: float
    standard_error: float
    degrees_of_freedom: float
    population: str
    note: str


@dataclass(frozen=True)
class Side:
    """What an interval is about: a model's value, less what it is compared with.

    Attributes:
        first: place of the model.
        second: place of the model that is subtracted, if any.
        ceiling: whether the model's lower noise ceiling is subtracted.
    """

    first: int
    second: int | None = None
    ceiling: bool = False


class Uncertainty(NamedTuple):
    """An interval, and the scatter of people and items that a test needs."""

    interval: Interval
    scatter: Scatter


class Estimator:
    """Intervals of everything that one measure says in one scope.

    Args:
        moves: how far results move without each trial; see `crossed.group_moves`.
        shares: (n_groups,), how much each group counts in a mean.
        level: of the intervals, such as 0.95.
        resampled: percentiles of these resamples take the place of Student's t.
        lowest: of the measure, whose highest value is 1: limits go no further, nor those of a
            difference further than from one end to the other.
    """

    def __init__(
        self,
        moves: Sequence[GroupMoves],
        shares: FloatArray,
        level: float,
        resampled: Bootstrap | None = None,
        lowest: float = -np.inf,
    ) -> None:
        self._moves, self._shares, self._level = moves, shares, level
        self._resampled, self._lowest = resampled, lowest

    def of(self, side: Side) -> Uncertainty:
        """The interval of a value or difference."""
        blocks = blocks_of(self._moves, self._shares, side.first, side.second, ceiling=side.ceiling)
        scatter = scatter_of(blocks)
        if not blocks:
            note = "no group has a ceiling: each holds one participant"
            scatter = replace(
                scatter, note=note if side.ceiling else "no group rated trials of both models"
            )
        if self._resampled is not None:
            return Uncertainty(_percentiles(self._resampled, side, self._level), scatter)
        estimate = sum(float(block.weights @ block.values) for block in blocks)
        variances = ((scatter.variance, scatter.freedom), scatter.of_items, scatter.of_people)
        is_value = side.second is None and not side.ceiling
        lowest, highest = self._lowest, 1.0
        if not is_value:
            lowest, highest = self._lowest - 1.0, 1.0 - self._lowest
        limits = [
            estimate + sign * t_quantile(self._level, freedom) * variance**0.5
            for variance, freedom in variances
            for sign in (-1, 1)
        ]
        return Uncertainty(
            Interval(
                *_six(np.clip(limits, lowest, highest).tolist()),
                standard_error=scatter.variance**0.5,
                degrees_of_freedom=scatter.freedom,
                population=scatter.population,
                note=scatter.note,
            ),
            scatter,
        )


def t_quantile(level: float, freedom: float) -> float:
    """How many standard errors an interval reaches to each side, by Student's t."""
    from scipy.stats import t as student

    return float(student.ppf((1 + level) / 2, freedom))


def equivalence_p_value(
    difference: float, variance: float, freedom: float, margin: float, items: int
) -> float:
    """The larger p-value of two one-sided t-tests: is a difference smaller than a margin?

    Schuirmann (1987). Significant at .05 where the 90 % interval lies within the margin. Where the
    two are the same on every answer nothing scatters: were they to differ by the margin, k items
    would show it with probability 1 - (1 - margin)^k at least.

    Args:
        difference: estimated.
        variance: of the difference; nan, and so is the p-value, where it cannot be known.
        freedom: its degrees of freedom.
        margin: the smallest difference, of either sign, that matters.
        items: how many the difference is a mean over.
    """
    from scipy.stats import t as student

    inside = margin - abs(difference)
    if variance == 0:
        return float((1 - margin) ** items) if inside > 0 else 1.0
    return float(student.sf(inside / variance**0.5, freedom))


def standardised(interval: Interval, deviation: float) -> Interval:
    """An interval in standard deviations; nan where answers do not vary."""
    unit = deviation if deviation > 0 else np.nan
    return replace(interval, low=interval.low / unit, high=interval.high / unit)


def _percentiles(resampled: Bootstrap, side: Side, level: float) -> Interval:
    # Both sides come from one resample, so that what moves both cancels: (3, n_groups, n_samples).
    moved = resampled.values[:, :, side.first]
    if side.ceiling:
        moved = moved - resampled.lower[:, :, side.first]
    elif side.second is not None:
        moved = moved - resampled.values[:, :, side.second]
    limits = resampled.interval(moved, level).ravel().tolist()
    return Interval(
        *_six(limits),
        standard_error=np.nan,
        degrees_of_freedom=np.nan,
        population=BOTH,
        note="percentiles of resamples, which have no standard error",
    )


def _six(limits: Sequence[float]) -> tuple[float, float, float, float, float, float]:
    low, high, low_items, high_items, low_people, high_people = limits
    return low, high, low_items, high_items, low_people, high_people
