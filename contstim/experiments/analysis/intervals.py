"""Intervals of values, of their differences, and of their distances to the noise ceiling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contstim.experiments.analysis.crossed import blocks_of, variance_components

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contstim.experiments.analysis.crossed import GroupJackknife, Side, VarianceComponents
    from contstim.files.arrays import FloatArray


@dataclass(frozen=True)
class Estimate:
    """An estimate with its interval and its test by Student's t.

    Attributes:
        value: such as a coefficient, or a difference.
        standard_error: of it.
        low: the interval's lower end.
        high: its upper end.
        statistic: value / standard_error.
        freedom: degrees of freedom.
        p_value: two-sided.
    """

    value: float
    standard_error: float
    low: float
    high: float
    statistic: float
    freedom: float
    p_value: float

    @classmethod
    def by_t(cls, value: float, standard_error: float, freedom: float, level: float) -> Estimate:
        """The interval and test of a value; one without an error is as sure as can be.

        Args:
            value: the estimate.
            standard_error: of it.
            freedom: degrees of freedom.
            level: of the interval, such as 0.95.
        """
        from scipy.stats import t as student

        reach = t_quantile(level, freedom) * standard_error
        sure = float(np.copysign(np.inf, value)) if value else 0.0
        statistic = value / standard_error if standard_error else sure
        p_value = float(2 * student.sf(abs(statistic), freedom))
        return cls(value, standard_error, value - reach, value + reach, statistic, freedom, p_value)


UNKNOWN = Estimate(*(np.nan,) * 7)  # where nothing could be estimated


@dataclass(frozen=True)
class Interval:
    """An interval by what is drawn anew; nan where that cannot be known.

    Attributes:
        low: people and items are drawn anew, or what `population` says.
        high: likewise.
        low_items: items alone: for these people.
        high_items: likewise.
        low_participants: people alone: on these items.
        high_participants: likewise.
        standard_error: of `low` and `high`.
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


class Uncertainty(NamedTuple):
    """Uncertainty of a value or difference: intervals at any level, and the test that they invert.

    Attributes:
        estimate: the value or difference; of experiments that are simulated at once, (…) of each.
        components: of its variance.
        span: how far apart results of two items can lie, in the unit of the measure.
        ends: the lowest and the highest that it can be.
        is_value: and no difference.
    """

    estimate: FloatArray
    components: VarianceComponents
    span: FloatArray
    ends: tuple[float, float]
    is_value: bool = False

    def interval(self, level: float) -> Interval:
        """The interval of one experiment at a level such as 0.95."""
        known = self.components
        return Interval(
            *self._limits(level, known.variance, known.freedom, known.independent),
            *self._limits(level, *known.of_items, known.items_each),
            *self._limits(level, *known.of_people, known.people),
            float(known.variance) ** 0.5,
            float(known.freedom),
            known.population,
            known.note,
        )

    def p_values(self) -> FloatArray:
        """(…) two-sided, of no difference: the largest 1 - level whose interval holds zero."""
        return np.minimum(1.0, 2 * self._one_sided(np.abs(self.estimate)))

    def equivalence_p_value(self, margin: float) -> float:
        """The larger p-value of two one-sided tests: is the difference smaller than a margin?

        Schuirmann (1987). Significant at .05 where the 90 % interval lies within the margin. Where
        two models are the same on every answer nothing scatters: were they to differ by the margin,
        k items would show it with probability 1 - (1 - margin)^k at least.

        Args:
            margin: the smallest difference, of either sign, that matters.
        """
        return float(self._one_sided(margin - np.abs(self.estimate)))

    def unseen(self, level: float) -> float:
        """The least distance to which an interval of a difference reaches; see `_limits`."""
        known = self.components
        return self._unseen(level, self._answers(known.variance, known.independent))

    def _unseen(self, level: float, answers: FloatArray) -> float:
        return float(self.span * (1 - ((1 - level) / 2) ** (1 / answers)))

    def _one_sided(self, distance: FloatArray) -> FloatArray:
        """Probability of an estimate so far to one side of the truth, or farther; see `_limits`."""
        from scipy.stats import t as student

        known = self.components
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            answers = self._answers(known.variance, known.independent)
            unseen = np.where(distance > 0, (1 - distance / self.span) ** answers, 1.0)
            scattered = student.sf(distance / np.sqrt(known.variance), known.freedom)
        tail = np.where(distance > 0, np.maximum(scattered, unseen), scattered)
        return np.where(known.variance == 0, unseen, tail)

    def _limits(
        self, level: float, variance: FloatArray, freedom: FloatArray, units: float
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
        if self.is_value:
            lowest = self.ends[0]
            share = (self.estimate - lowest) / self.span
            # The scatter of the item that is added is known without error
            known = (variance + (self.span / units) ** 2) / variance if variance else np.inf
            curve = t_quantile(level, freedom * known**2) ** 2 / answers
            centre = (share + curve / 2) / (1 + curve)
            half = (curve * share * (1 - share) + curve**2 / 4) ** 0.5 / (1 + curve)
            ends = [lowest + self.span * (centre + side * half) for side in (-1, 1)]
        else:
            scattered = t_quantile(level, freedom) * float(variance) ** 0.5
            reach = max(scattered, self._unseen(level, answers))
            ends = [self.estimate - reach, self.estimate + reach]
        low, high = np.clip(ends, *self.ends).tolist()
        return low, high

    def _answers(self, variance: FloatArray, units: float) -> FloatArray:
        """Number of answers, each independent of all others, that would say as much.

        The variance of a single answer over that of the mean (Kish 1965), with one more item, or
        person, whose answers are all alike: without any scatter as many as there are.

        Args:
            variance: of the mean.
            units: how many items, or people, the mean is over.
        """
        if not units:
            return np.full_like(variance, np.nan)
        single, added = self.components.residual, self.span**2 / units
        if self.is_value:
            lowest, highest = self.ends
            single = (self.estimate - lowest) * (highest - self.estimate)
        return (single + added) / (variance + added / units)


def uncertainty_of(
    groups: Iterable[GroupJackknife], shares: FloatArray, lowest: float, side: Side
) -> Uncertainty:
    """Uncertainty of a value or difference.

    Args:
        groups: the influence of each trial; see `crossed.jackknife`.
        shares: (n_groups,), how much each group counts in a mean.
        lowest: of the measure, whose highest value is 1: limits go no further, nor those of a
            difference further than from one end to the other.
        side: what is measured.
    """
    blocks = blocks_of(groups, shares, side)
    lacking = "no group rated trials of both models"
    if side.ceiling:
        lacking = "no group has a ceiling: each holds one participant"
    components = variance_components(blocks, lacking)
    estimate = np.asarray(sum(block.values @ block.weights for block in blocks), np.float64)
    span = np.asarray(1 - lowest)
    if side.second is None and not side.ceiling:
        return Uncertainty(estimate, components, span, (lowest, 1.0), is_value=True)
    # Of a difference: an item on which two models that agree elsewhere part moves it by the span of
    # the measure; where one is always right and the other never, by twice that.
    return Uncertainty(estimate, components, span + np.abs(estimate), (lowest - 1, 1 - lowest))


def t_quantile(level: float, freedom: float | FloatArray) -> float:
    """Number of standard errors that an interval reaches to each side, by Student's t."""
    from scipy.stats import t as student

    return float(student.ppf((1 + level) / 2, freedom))
