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
    """Subject of an interval: a model's value, less what it is compared with.

    Attributes:
        first: place of the model.
        second: place of the model that is subtracted, if any.
        ceiling: whether the model's lower noise ceiling is subtracted.
    """

    first: int
    second: int | None = None
    ceiling: bool = False


class Uncertainty(NamedTuple):
    """Uncertainty of a value or difference: intervals at any level, and the test that they invert.

    Attributes:
        estimate: the value or difference.
        scatter: of people and items.
        span: how far apart results of two items can lie, in the unit of the measure.
        ends: the lowest and the highest that it can be.
        is_value: and no difference.
        resampled: (3, n_groups, n_samples), whose percentiles take the place of Student's t.
        bootstrap: what these were drawn by.
    """

    estimate: float
    scatter: Scatter
    span: float
    ends: tuple[float, float]
    is_value: bool
    resampled: FloatArray | None
    bootstrap: Bootstrap | None

    def interval(self, level: float) -> Interval:
        """The interval at a level such as 0.95."""
        scatter = self.scatter
        if self.bootstrap is not None and self.resampled is not None:
            return _percentiles(self.bootstrap, self.resampled, level)
        variances = (
            (scatter.variance, scatter.freedom, scatter.independent),
            (*scatter.of_items, scatter.items_each),
            (*scatter.of_people, scatter.people),
        )
        limits = [limit for known in variances for limit in self._limits(level, *known)]
        return Interval(
            *_six(np.clip(limits, *self.ends).tolist()),
            standard_error=scatter.variance**0.5,
            degrees_of_freedom=scatter.freedom,
            population=scatter.population,
            note=scatter.note,
        )

    def p_value(self) -> float:
        """Two-sided, of no difference: the largest 1 - level whose interval holds zero."""
        p_value = 2 * self._one_sided(abs(self.estimate))
        return 1.0 if p_value > 1 else p_value

    def equivalence_p_value(self, margin: float) -> float:
        """The larger p-value of two one-sided tests: is the difference smaller than a margin?

        Schuirmann (1987). Significant at .05 where the 90 % interval lies within the margin. Where
        two models are the same on every answer nothing scatters: were they to differ by the margin,
        k items would show it with probability 1 - (1 - margin)^k at least.

        Args:
            margin: the smallest difference, of either sign, that matters.
        """
        return self._one_sided(margin - abs(self.estimate))

    def unseen(self, level: float) -> float:
        """The least distance to which an interval of a difference reaches; see `_limits`."""
        return self._unseen(level, self._answers(self.scatter.variance, self.scatter.independent))

    def _unseen(self, level: float, answers: float) -> float:
        share: float = ((1 - level) / 2) ** (1 / answers)
        return self.span * (1 - share)

    def _one_sided(self, distance: float) -> float:
        """Probability of an estimate so far to one side of the truth, or farther; see `_reach`."""
        from scipy.stats import t as student

        variance = self.scatter.variance
        if np.isnan(variance):
            return np.nan
        unseen = 1.0
        if distance > 0:
            answers = self._answers(variance, self.scatter.independent)
            unseen = (1 - distance / self.span) ** answers
        if variance == 0:
            return unseen
        scattered = float(student.sf(distance / variance**0.5, self.scatter.freedom))
        return max(scattered, unseen) if distance > 0 else scattered

    def _limits(
        self, level: float, variance: float, freedom: float, units: float
    ) -> tuple[float, float]:
        """Both ends.

        Of a value, Wilson's (1927): all shares p from which the observed one is not far, with the
        standard error that each of these would have, (p (1 - p) / n)^.5 for n independent answers.
        Of a difference, Student's t; but where answers hardly vary, what they do not show matters
        more than how they scatter. N answers that are all right come about with probability p^N, so
        that any p above (alpha / 2)^(1 / N) may be true (Clopper & Pearson 1934): no interval of a
        difference reaches less far.

        Args:
            level: such as 0.95.
            variance: of the mean.
            freedom: its degrees of freedom.
            units: how many items, or people, the mean is over.
        """
        answers = self._answers(variance, units)
        if not self.is_value:
            scattered: float = t_quantile(level, freedom) * variance**0.5
            reach = max(scattered, self._unseen(level, answers))
            return self.estimate - reach, self.estimate + reach
        lowest = self.ends[0]
        share: float = (self.estimate - lowest) / self.span
        # The scatter of the item that is added is known without error
        known = (variance + (self.span / units) ** 2) / variance if variance else np.inf
        curve = t_quantile(level, freedom * known**2) ** 2 / answers
        centre = (share + curve / 2) / (1 + curve)
        half = (curve * share * (1 - share) + curve**2 / 4) ** 0.5 / (1 + curve)
        return lowest + self.span * (centre - half), lowest + self.span * (centre + half)

    def _answers(self, variance: float, units: float) -> float:
        """Number of answers, each independent of all others, that would say as much.

        The variance of a single answer over that of the mean (Kish 1965), with one more item, or
        person, whose answers are all alike: without any scatter as many as there are.

        Args:
            variance: of the mean.
            units: how many items, or people, the mean is over.
        """
        if np.isnan(variance) or not units:
            return np.nan
        single, added = self.scatter.answer, self.span**2 / units
        if self.is_value:
            lowest, highest = self.ends
            single = (self.estimate - lowest) * (highest - self.estimate)
        return float((single + added) / (variance + added / units))


class Estimator:
    """Uncertainty of all values and differences of one measure in one scope.

    Args:
        moves: how far results move without each trial; see `crossed.group_moves`.
        shares: (n_groups,), how much each group counts in a mean.
        lowest: of the measure, whose highest value is 1: limits go no further, nor those of a
            difference further than from one end to the other.
        resampled: percentiles of these resamples take the place of Student's t.
    """

    def __init__(
        self,
        moves: Sequence[GroupMoves],
        shares: FloatArray,
        lowest: float,
        resampled: Bootstrap | None = None,
    ) -> None:
        self._moves, self._shares = moves, shares
        self._resampled, self._lowest = resampled, lowest

    def of(self, side: Side) -> Uncertainty:
        """Uncertainty of a value or difference."""
        blocks = blocks_of(self._moves, self._shares, side.first, side.second, ceiling=side.ceiling)
        scatter = scatter_of(blocks)
        if not blocks:
            note = "no group has a ceiling: each holds one participant"
            scatter = replace(
                scatter, note=note if side.ceiling else "no group rated trials of both models"
            )
        estimate = sum(float(block.weights @ block.values) for block in blocks)
        span, ends = 1 - self._lowest, (self._lowest, 1.0)
        is_value = side.second is None and not side.ceiling
        if not is_value:
            # Of a difference: an item on which two models that agree elsewhere part moves it by the
            # span of the measure; where one is always right and the other never, by twice that.
            ends = (-span, span)
            span += abs(estimate)
        resampled = None if self._resampled is None else _moved(self._resampled, side)
        return Uncertainty(estimate, scatter, span, ends, is_value, resampled, self._resampled)


def t_quantile(level: float, freedom: float) -> float:
    """Number of standard errors that an interval reaches to each side, by Student's t."""
    from scipy.stats import t as student

    return float(student.ppf((1 + level) / 2, freedom))


def _moved(resampled: Bootstrap, side: Side) -> FloatArray:
    """A value or difference in each resample, (3, n_groups, n_samples)."""
    # Both sides come from one resample, so that what moves both cancels.
    moved = resampled.values[:, :, side.first]
    if side.ceiling:
        return moved - resampled.lower[:, :, side.first]
    return moved if side.second is None else moved - resampled.values[:, :, side.second]


def _percentiles(resampled: Bootstrap, moved: FloatArray, level: float) -> Interval:
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
