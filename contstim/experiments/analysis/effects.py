"""How models compare with one another and with the noise ceiling, and how sure we are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from contstim.experiments.analysis.bootstrap import bootstrap
from contstim.experiments.analysis.evaluation import evaluate
from contstim.experiments.analysis.inference import (
    CEILING,
    FALSE_DISCOVERY_RATE,
    false_discovery,
    reach,
    signed_rank_test,
    smallest_p_value,
)
from contstim.experiments.analysis.scopes import scope_mask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import FloatArray
    from contstim.experiments.analysis.bootstrap import Bootstrap
    from contstim.experiments.analysis.evaluation import Measure, ParticipantScores
    from contstim.experiments.analysis.inference import ModelContrast, Reach
    from contstim.experiments.analysis.ratings import Ratings
    from contstim.experiments.analysis.scopes import Scope

Units = Literal["groups", "participants"]


@dataclass(frozen=True)
class Sampling:
    """What counts as one observation, and how uncertainty is measured.

    Attributes:
        units: tests compare means of groups, or participants; None leaves it to the design.
        samples: bootstrap resamples; 0 leaves intervals empty.
        seed: decides the resamples.
        level: the share of resamples inside an interval.
        false_discovery_rate: up to which adjusted p-values are significant.
    """

    units: Units | None = None
    samples: int = 1000
    seed: int = 0
    level: float = 0.95
    false_discovery_rate: float = FALSE_DISCOVERY_RATE


@dataclass(frozen=True)
class Interval:
    """A bootstrap interval by what was resampled; nan where nothing was."""

    low: float
    high: float
    low_items: float
    high_items: float
    low_participants: float
    high_participants: float


@dataclass(frozen=True)
class ModelResult:
    """A model's mean over units, beside the noise ceilings on the same trials."""

    model: str
    value: float
    interval: Interval
    lower: float
    upper: float
    n_trials: int


@dataclass(frozen=True)
class ContrastResult:
    """A contrast: the difference of means over units, its interval and its test.

    Units count in which both sides are known; a group of one has no ceiling. A contrast is testable
    if it would be significant were all tests of its family as clear as their numbers of units let
    them be; where it is not, `significant` is False whatever the data. Tests of groups hold for
    items like these, tests of participants for these items.
    """

    first: str
    second: str
    value_first: float
    value_second: float
    difference: float
    interval: Interval
    n_units: int
    statistic: float
    rank_biserial: float
    p_value: float
    q_value: float
    significant: bool
    testable: bool
    holds_for: str


@dataclass(frozen=True, eq=False)
class Result:
    """One measure in one scope.

    Attributes:
        scope: which trials evaluate which model.
        measure: accuracy or signed-rank cosine.
        evaluation: of every participant.
        models: those that the scope evaluates.
        comparisons: of these models; the family of the false-discovery rate.
        reach: what that family can find, whatever the data.
    """

    scope: Scope
    measure: Measure
    evaluation: ParticipantScores
    models: tuple[ModelResult, ...]
    comparisons: tuple[ContrastResult, ...]
    reach: Reach

    def below_ceiling(self) -> frozenset[str]:
        """The models significantly below the lower noise ceiling."""
        return frozenset(
            test.first
            for test in self.comparisons
            if test.second == CEILING and test.significant and test.difference < 0
        )

    def beaten_by(self, model: str) -> frozenset[str]:
        """The models that are significantly worse than this one."""
        tests = [test for test in self.comparisons if test.significant and test.second != CEILING]
        return frozenset(
            [test.second for test in tests if test.first == model and test.difference > 0]
            + [test.first for test in tests if test.second == model and test.difference < 0]
        )


def compare(
    ratings: Ratings,
    scope: Scope,
    measure: Measure,
    contrasts: Sequence[ModelContrast],
    sampling: Sampling,
) -> Result:
    """Evaluate all models in a scope and make the contrasts that concern two of them.

    Args:
        ratings: who rated what.
        scope: which trials evaluate which model.
        measure: accuracy or signed-rank cosine.
        contrasts: those of models without trials in this scope are left out.
        sampling: units, resamples, level.
    """
    masks = [scope_mask(group.trials, scope, ratings.models) for group in ratings.groups]
    evaluation = evaluate(ratings, measure, masks)
    # A mean over participants weighs groups by their sizes; one over groups, all alike.
    sizes = np.array([float(len(group.participants)) for group in ratings.groups])
    resampled = bootstrap(
        ratings,
        measure,
        masks,
        sizes if sampling.units == "participants" else np.ones(len(sizes)),
        samples=sampling.samples,
        seed=sampling.seed,
    )
    values, lower, upper = (
        units_of(evaluation, kind, sampling.units)
        for kind in (evaluation.values, evaluation.lower, evaluation.upper)
    )
    counts = np.sum([mask.sum(axis=1) for mask in masks], axis=0)  # (n_models,) trials
    models = tuple(
        ModelResult(
            ratings.models[column],
            _mean(values[:, column]),
            _interval(resampled, resampled.values[:, :, column], sampling),
            _mean(lower[:, column]),
            _mean(upper[:, column]),
            int(counts[column]),
        )
        for column in np.flatnonzero(counts).tolist()
    )
    targeted = [result.model for result in models]
    family = [c for c in contrasts if c.first in targeted and c.second in (*targeted, CEILING)]
    comparisons = _comparisons(ratings.models, values, lower, resampled, family, sampling)
    limits = reach([test.n_units for test in comparisons], sampling.false_discovery_rate)
    return Result(scope, measure, evaluation, models, comparisons, limits)


def units_of(evaluation: ParticipantScores, values: FloatArray, units: Units | None) -> FloatArray:
    """The observations that tests compare, (n_units, n_models)."""
    return values if units == "participants" else evaluation.of_groups(values)


def _comparisons(
    models: tuple[str, ...],
    values: FloatArray,
    lower: FloatArray,
    resampled: Bootstrap,
    family: Sequence[ModelContrast],
    sampling: Sampling,
) -> tuple[ContrastResult, ...]:
    """All tests of a family, from values and lower ceilings of units, (n_units, n_models)."""
    sides = []
    for contrast in family:
        first = models.index(contrast.first)
        # The ceiling that a model is compared with is that on its own trials: its own column.
        ceiling = contrast.second == CEILING
        second = first if ceiling else models.index(contrast.second)
        others, drawn = (lower, resampled.lower) if ceiling else (values, resampled.values)
        # Both sides come from one resample, so that what moves both cancels: (3, n_groups,
        # n_samples).
        moved = resampled.values[:, :, first] - drawn[:, :, second]
        both = ~np.isnan(values[:, first] - others[:, second])
        sides.append((values[both, first], others[both, second], moved))
    tests = [signed_rank_test(first, second) for first, second, _ in sides]
    adjusted = false_discovery(np.array([test.p_value for test in tests]))
    # The same family with all units of each test on one side: the least that its q-values can be.
    clearest = [smallest_p_value(test.n) if test.n else np.nan for test in tests]
    least = false_discovery(np.array(clearest))
    return tuple(
        ContrastResult(
            contrast.first,
            contrast.second,
            _mean(first),
            _mean(second),
            _mean(first - second),
            _interval(resampled, moved, sampling),
            test.n,
            test.statistic,
            test.rank_biserial,
            test.p_value,
            float(q_value),
            bool(q_value < sampling.false_discovery_rate),
            bool(least_q < sampling.false_discovery_rate),
            "these items" if sampling.units == "participants" else "items like these",
        )
        for contrast, (first, second, moved), test, q_value, least_q in zip(
            family, sides, tests, adjusted, least, strict=True
        )
    )


def _interval(resampled: Bootstrap, group_means: FloatArray, sampling: Sampling) -> Interval:
    return Interval(*map(float, resampled.interval(group_means, sampling.level).ravel()))


def _mean(values: FloatArray) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else np.nan
