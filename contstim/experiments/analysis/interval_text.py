"""Texts for intervals in reports; an interval over nearly the whole range is not estimable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contstim.wording import quantity

if TYPE_CHECKING:
    from contstim.experiments.analysis.effects import Result
    from contstim.experiments.analysis.intervals import Interval
    from contstim.experiments.analysis.measures import Measure

_UNINFORMATIVE = 0.95  # minimum share of the possible range that makes an interval uninformative


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
    """Format both limits of an interval.

    Args:
        interval: interval of a value or difference.
        ends: lowest and highest possible value or difference.
    """
    if is_uninformative(interval, ends):
        return "not estimable"
    return f"{number_text(interval.low)} … {number_text(interval.high)}"


def not_estimable(result: Result) -> str:
    """Return the reason why intervals of a result are not estimable; empty if all are."""
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
    return f"Not estimable from {sample}, the interval rules hardly any value out."


def sample_text(result: Result) -> str:
    """Describe the numbers of participants, groups and trials of a result."""
    groups = result.evaluation.groups
    n_groups, trials = len(np.unique(groups)), max(row.n_trials for row in result.models)
    return (
        f"{quantity(len(groups), 'participant')} in {quantity(n_groups, 'group')} and "
        f"{quantity(trials, 'trial')}"
    )
