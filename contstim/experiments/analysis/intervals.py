"""Intervals of values, of differences, and of distances to the noise ceiling.

The last functions of the module format intervals as texts. An interval that covers nearly the whole
possible range is reported as "not estimable".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contstim.experiments.analysis.crossed import blocks_of, variance_components
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.experiments.analysis.crossed import GroupJackknife, VarianceComponents
    from contstim.experiments.analysis.effects import Result
    from contstim.experiments.analysis.measures import Measure
    from contstim.files.arrays import FloatArray


@dataclass(frozen=True)
class Estimate:
    """An estimate, such as a coefficient, with its interval and its test by Student's t."""

    value: float
    standard_error: float
    low: float
    high: float
    statistic: float
    freedom: float
    p_value: float

    @classmethod
    def by_t(cls, value: float, standard_error: float, freedom: float, level: float) -> Estimate:
        """Compute the interval and test of a value.

        If the standard error is zero, p is 0 for any value except zero, and 1 for the value zero.
        """
        from scipy.stats import t as student

        reach = t_quantile(level, freedom) * standard_error
        exact = float(np.copysign(np.inf, value)) if value else 0.0
        statistic = value / standard_error if standard_error else exact
        p_value = float(2 * student.sf(abs(statistic), freedom))
        return cls(value, standard_error, value - reach, value + reach, statistic, freedom, p_value)


UNKNOWN = Estimate(*(np.nan,) * 7)  # if nothing could be estimated


@dataclass(frozen=True)
class Interval:
    """An interval for new people, new items, or both; nan if unknown.

    Attributes:
        low: lower end for `population`; `high` is the upper end.
        low_items: lower end for new items, judged by the people of the study.
        low_participants: lower end for new people, who judge the items of the study.
        population: people and items to which `low` and `high` generalise: new people and new items
            if both variances can be estimated.
        note: adjustment of the interval, or reason why the interval generalises to fewer people or
            items; often empty.
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
    """Uncertainty of a value or difference: intervals at any level, and the corresponding test.

    Attributes:
        estimate: value or difference, (…); the axes number the experiments of a simulation.
        span: largest possible distance of one item's result from the estimate; see
            `uncertainty_of`.
        ends: lowest and highest possible estimate.
    """

    estimate: FloatArray
    components: VarianceComponents
    span: FloatArray
    ends: tuple[float, float]
    is_value: bool = False

    def interval(self, level: float) -> Interval:
        """Return the interval of one experiment at a level such as 0.95."""
        components = self.components
        return Interval(
            *self._limits(level, components.variance, components.freedom, components.independent),
            *self._limits(level, *components.of_items, components.items_each),
            *self._limits(level, *components.of_people, components.people),
            float(components.variance) ** 0.5,
            float(components.freedom),
            components.population,
            components.note,
        )

    def p_values(self) -> FloatArray:
        """Return two-sided p-values, (…).

        If p is the p-value, the level 1 - p is the lowest level at which the interval contains 0.
        """
        return np.minimum(1.0, 2 * self._one_sided(np.abs(self.estimate)))

    def equivalence_p_value(self, margin: float) -> float:
        """Return the p-value of two one-sided tests that the absolute difference is below a margin.

        The p-value is below .05 if the 90 % interval lies between -margin and margin (Schuirmann
        1987). If two models agree on every answer, the variance is zero. The p-value is then (1 -
        margin / span)^k for k items. Suppose that the true difference is the margin. Then this
        p-value is the largest possible probability that the two models agree on all k items.
        """
        return float(self._one_sided(margin - np.abs(self.estimate)))

    def least_reach(self, level: float) -> float:
        """Return the minimum half-width of the interval of a difference."""
        components = self.components
        return self._least_distance(
            level, self._effective_observations(components.variance, components.independent)
        )

    def _least_distance(self, level: float, observations: FloatArray) -> float:
        return float(self.span * (1 - ((1 - level) / 2) ** (1 / observations)))

    def _one_sided(self, distance: FloatArray) -> FloatArray:
        """Return the one-sided probability that the error is at least this distance."""
        from scipy.stats import t as student

        components = self.components
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            observations = self._effective_observations(components.variance, components.independent)
            unobserved = np.where(distance > 0, (1 - distance / self.span) ** observations, 1.0)
            student_tail = student.sf(distance / np.sqrt(components.variance), components.freedom)
        tail = np.where(distance > 0, np.maximum(student_tail, unobserved), student_tail)
        return np.where(components.variance == 0, unobserved, tail)

    def _limits(
        self, level: float, variance: FloatArray, freedom: FloatArray, units: float
    ) -> tuple[float, float]:
        """Return both ends of an interval.

        The interval of a value is Wilson's (1927). With n independent observations, the standard
        error of a share p is (p (1 - p) / n)^.5. The interval contains p if the distance from p to
        the observed share is at most Student's quantile times this standard error.

        The interval of a difference uses Student's t and has a minimum width, because rare answers
        may be missing from the sample. Suppose that all N answers are equal. If p is the
        probability of this answer, the sample occurs with probability p^N. The lower limit of p is
        (alpha / 2)^(1 / N), with alpha = 1 - level (Clopper & Pearson 1934). The interval reaches
        at least span * (1 - p) to each side, where p is this lower limit.

        `units` is the number of items, or people, in the mean.
        """
        observations = self._effective_observations(variance, units)
        if self.is_value:
            lowest = self.ends[0]
            share = (self.estimate - lowest) / self.span
            # `_effective_observations` adds an item whose variance is known. The sum of the
            # estimated and the known variance has more degrees of freedom than the estimate alone
            ratio = (variance + (self.span / units) ** 2) / variance if variance else np.inf
            curve = t_quantile(level, freedom * ratio**2) ** 2 / observations
            centre = (share + curve / 2) / (1 + curve)
            half = (curve * share * (1 - share) + curve**2 / 4) ** 0.5 / (1 + curve)
            ends = [lowest + self.span * (centre + side * half) for side in (-1, 1)]
        else:
            student_reach = t_quantile(level, freedom) * float(variance) ** 0.5
            reach = max(student_reach, self._least_distance(level, observations))
            ends = [self.estimate - reach, self.estimate + reach]
        low, high = np.clip(ends, *self.ends).tolist()
        return low, high

    def _effective_observations(self, variance: FloatArray, units: float) -> FloatArray:
        """Return the number of independent observations whose mean has the variance `variance`.

        This number is the variance of a single answer, divided by the variance of the mean (Kish
        1965). Before the division, one item (or person) is added to the sample. The result of this
        item differs from the mean by the span. So the number is finite even if the variance is
        zero.
        """
        if not units:
            return np.full_like(variance, np.nan)
        single, added = self.components.residual, self.span**2 / units
        if self.is_value:
            lowest, highest = self.ends
            single = (self.estimate - lowest) * (highest - self.estimate)
        return (single + added) / (variance + added / units)


def uncertainty_of(
    groups: Sequence[GroupJackknife],
    shares: FloatArray,
    lowest: float,
    first: int,
    second: int | None = None,
) -> Uncertainty:
    """Compute the uncertainty of a model's value, or of a difference.

    `lowest` is the lowest value of the measure, whose highest value is 1. Intervals are clipped to
    the possible values or differences. The other arguments are those of `blocks_of`.
    """
    blocks = blocks_of(groups, shares, first, second)
    reason = "no group rated trials of both models"
    if second == len(groups[0].mask) // 2 + first:
        reason = "no group has a ceiling: each has one participant"
    components = variance_components(blocks, reason)
    estimate = np.asarray(sum(block.values @ block.weights for block in blocks), np.float64)
    span = np.asarray(1 - lowest)
    if second is None:
        return Uncertainty(estimate, components, span, (lowest, 1.0), is_value=True)
    # Largest distance between the difference on one item and the mean difference. If the mean
    # difference is 0, this distance is the span of the measure. If one model is always right and
    # the other never, this distance is twice the span. Between these two cases, the distance
    # increases linearly with the absolute mean difference.
    return Uncertainty(estimate, components, span + np.abs(estimate), (lowest - 1, 1 - lowest))


def t_quantile(level: float, freedom: float | FloatArray) -> float:
    """Return the half-width of an interval with a level such as 0.95, in standard errors."""
    from scipy.stats import t as student

    return float(student.ppf((1 + level) / 2, freedom))


_UNINFORMATIVE = 0.95  # an interval that covers this share of the possible range is uninformative


def number_text(value: float) -> str:
    """Format a number with two decimals, or as a dash if it is not finite."""
    return f"{value:.2f}" if np.isfinite(value) else "–"


def value_ends(measure: Measure) -> tuple[float, float]:
    """Return the lowest and the highest possible value."""
    return measure.lowest, 1.0


def difference_ends(measure: Measure) -> tuple[float, float]:
    """Return the lowest and the highest possible difference of two values."""
    return measure.lowest - 1, 1 - measure.lowest


def is_uninformative(interval: Interval, ends: tuple[float, float]) -> bool:
    """Return whether an interval covers nearly the whole range from one end to the other."""
    low, high = ends
    return bool(interval.high - interval.low >= _UNINFORMATIVE * (high - low))


def range_text(interval: Interval, ends: tuple[float, float]) -> str:
    """Format both limits of an interval, given the lowest and the highest possible value."""
    if is_uninformative(interval, ends):
        return "not estimable"
    return f"{number_text(interval.low)} … {number_text(interval.high)}"


def not_estimable(result: Result) -> str:
    """Return why intervals of a result are not estimable; empty if all are estimable."""
    sides = ((result.models, value_ends), (result.comparisons, difference_ends))
    freedom = [
        row.interval.degrees_of_freedom
        for rows, ends in sides
        for row in rows
        if is_uninformative(row.interval, ends(result.measure))
    ]
    if not freedom:
        return ""
    sample = f"{sample_text(result)}: with {min(freedom):.1f} degrees of freedom"
    return f"Not estimable from {sample}, the interval excludes hardly any value."


def sample_text(result: Result) -> str:
    """Describe the numbers of participants, groups and trials of a result."""
    groups = result.evaluation.groups
    n_groups, trials = len(np.unique(groups)), max(row.n_trials for row in result.models)
    return (
        f"{quantity(len(groups), 'participant')} in {quantity(n_groups, 'group')} and "
        f"{quantity(trials, 'trial')}"
    )
