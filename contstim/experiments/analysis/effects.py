"""Comparison of models with one another and with the noise ceiling, and how sure we are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.bootstrap import bootstrap
from contstim.experiments.analysis.crossed import group_moves, item_numbers
from contstim.experiments.analysis.defaults import SMALLEST_EFFECT
from contstim.experiments.analysis.evaluation import evaluate
from contstim.experiments.analysis.inference import (
    CEILING,
    CORRECTIONS,
    FALSE_DISCOVERY_RATE,
    Reach,
    decision_alpha,
    false_discovery,
    family_wise,
    rank_biserial_interval,
    reach,
    signed_rank_interval,
    signed_rank_test,
    smallest_p_value,
)
from contstim.experiments.analysis.intervals import Estimator, Side
from contstim.experiments.analysis.scopes import scope_mask, scopes_of
from contstim.stimuli import Condition
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import FloatArray
    from contstim.experiments.analysis.evaluation import Measure, ParticipantScores
    from contstim.experiments.analysis.inference import Correction, ModelContrast
    from contstim.experiments.analysis.intervals import Interval, IntervalMethod, Uncertainty
    from contstim.experiments.analysis.ratings import Ratings
    from contstim.experiments.analysis.scopes import Scope

Units = Literal["groups", "participants", "crossed"]
"""What tests take as random: groups, participants alone, or people and items, crossed."""

TESTS: dict[Units, str] = {
    "groups": "signed-rank test over groups",
    "participants": "signed-rank test over participants",
    "crossed": "t-test, people and items crossed",
}
_SAME_SIGN = 1e-12  # the smallest difference that is told from 0
_HOLDS_FOR: dict[Units, str] = {"groups": "items like these", "participants": "these items"}


@dataclass(frozen=True)
class Sampling:
    """Unit of observation, and method of measuring uncertainty.

    Attributes:
        units: tests compare means of groups, or participants, or take people and items as crossed
            random factors; None leaves it to the design (`suited_units`).
        samples: bootstrap resamples of percentile intervals; 0 leaves these empty.
        seed: decides the resamples.
        level: of the intervals.
        false_discovery_rate: up to which adjusted p-values are significant; with Holm's correction
            the family-wise error rate.
        intervals: Student's t with the corrected two-factor variance, or percentiles.
        correction: for the family of contrasts.
        smallest_effect: differences below it do not matter: contrasts are also tested for being
            smaller than that.
        catch_trials: whether catch trials count in the overall result, as published in 2023. People
            who fail them are left out, so that those who stay agree on them; a model that people
            follow everywhere else then falls short of the noise ceiling.
    """

    units: Units | None = None
    samples: int = 1000
    seed: int = 0
    level: float = 0.95
    false_discovery_rate: float = FALSE_DISCOVERY_RATE
    intervals: IntervalMethod = "corrected"
    correction: Correction = "bh"
    smallest_effect: float = SMALLEST_EFFECT
    catch_trials: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.smallest_effect < 1:
            raise InputError(
                "The smallest effect of interest is a difference between 0 and 1, not "
                f"{self.smallest_effect:g}."
            )


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
    items like these, tests of participants for these items, crossed tests for what the interval
    speaks of.

    Attributes:
        first: a model.
        second: another, or `CEILING`.
        value_first: mean over units.
        value_second: likewise.
        difference: the effect, in units of the measure; `interval` is its own.
        interval: of the difference, at 1 - `alpha`; it leaves out 0 where the contrast is
            significant, and only there, since it inverts the test. Percentiles do not, and are at
            the level asked for.
        n_units: groups or participants that the test compares; of a crossed test, participants.
        statistic: the smaller sum of ranks, or Student's t.
        rank_biserial: the effect size of a signed-rank test, -1 to 1; nan for a crossed test.
        p_value: two-sided.
        q_value: adjusted by Benjamini and Hochberg.
        significant: by the correction asked for.
        testable: see above.
        holds_for: whom and what the test speaks of.
        p_holm: adjusted by Holm.
        standardised: the difference in standard deviations of the difference on single answers,
            to which people, items and all else contribute (after Westfall, Kenny & Judd 2014).
        low_standardised: end of its interval: that of the difference, in the same unit.
        high_standardised: likewise.
        test: what was computed.
        family: the contrasts that `q_value` and `p_holm` are adjusted for.
        correction: the one by which `significant` is decided.
        low_rank_biserial: end of its interval; see `rank_biserial_interval`.
        high_rank_biserial: likewise.
        smallest_effect: differences below it do not matter.
        equivalence_p: of two one-sided tests that the difference is smaller than that; see
            `equivalence_p_value`.
        equivalence_adjusted: by the correction asked for, over the same family.
        alpha: the p-value below which it is significant; see `decision_alpha`.
        verdict: different, equivalent, both (a difference that does not matter), or undecided;
            untestable where nothing can be significant, and equivalence is not shown either.
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
    p_holm: float
    standardised: float
    low_standardised: float
    high_standardised: float
    test: str
    family: str
    correction: str
    low_rank_biserial: float
    high_rank_biserial: float
    smallest_effect: float
    equivalence_p: float
    equivalence_adjusted: float
    alpha: float
    verdict: str


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

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """Of all values, then of all contrasts."""
        values = tuple(model.interval for model in self.models)
        return (*values, *(contrast.interval for contrast in self.comparisons))

    def below_ceiling(self) -> frozenset[str]:
        """The models significantly below the lower noise ceiling."""
        return frozenset(
            test.first
            for test in self.comparisons
            if test.second == CEILING and test.significant and test.difference < 0
        )

    def equivalent_to(self, model: str) -> frozenset[str]:
        """The models that are shown to differ from this one by less than matters."""
        tests = [test for test in self.comparisons if test.verdict in ("equivalent", "both")]
        return frozenset(
            [test.second for test in tests if test.first == model and test.second != CEILING]
            + [test.first for test in tests if test.second == model]
        )

    def at_ceiling(self) -> frozenset[str]:
        """The models shown to differ from their lower noise ceiling by less than matters."""
        return frozenset(
            test.first
            for test in self.comparisons
            if test.second == CEILING and test.verdict in ("equivalent", "both")
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
    masks = [
        scope_mask(group.trials, scope, ratings.models, catch=sampling.catch_trials)
        for group in ratings.groups
    ]
    evaluation = evaluate(ratings, measure, masks)
    # A mean over participants weighs groups by their sizes; one over groups, all alike.
    sizes = np.array([float(len(group.participants)) for group in ratings.groups])
    shares = sizes if sampling.units == "participants" else np.ones(len(sizes))
    resampled = None
    if sampling.intervals == "percentile":
        resampled = bootstrap(
            ratings, measure, masks, shares, samples=sampling.samples, seed=sampling.seed
        )
    moves = group_moves(ratings, measure, masks)
    estimator = Estimator(moves, shares, measure.lowest, resampled)
    values, lower, upper = (
        units_of(evaluation, kind, sampling.units)
        for kind in (evaluation.values, evaluation.lower, evaluation.upper)
    )
    counts = np.sum([mask.sum(axis=1) for mask in masks], axis=0)  # (n_models,) trials
    models = tuple(
        ModelResult(
            ratings.models[column],
            _mean(values[:, column]),
            estimator.of(Side(column)).interval(sampling.level),
            _mean(lower[:, column]),
            _mean(upper[:, column]),
            int(counts[column]),
        )
        for column in np.flatnonzero(counts).tolist()
    )
    targeted = [result.model for result in models]
    family = [c for c in contrasts if c.first in targeted and c.second in (*targeted, CEILING)]
    make = _crossed_test if sampling.units == "crossed" else _signed_rank
    tests = []
    for contrast in family:
        first = ratings.models.index(contrast.first)
        # The ceiling that a model is compared with is that on its own trials: its own column.
        ceiling = contrast.second == CEILING
        second = first if ceiling else ratings.models.index(contrast.second)
        others = (lower if ceiling else values)[:, second]
        both = ~np.isnan(values[:, first] - others)
        side = Side(first, ceiling=True) if ceiling else Side(first, second)
        tests.append(make(values[both, first], others[both], estimator.of(side)))
    limits = _family_reach(tests, sampling)
    comparisons = _adjusted(tests, family, f"{measure.name} in {scope}", sampling, limits)
    return Result(scope, measure, evaluation, models, comparisons, limits)


def units_of(evaluation: ParticipantScores, values: FloatArray, units: Units | None) -> FloatArray:
    """The observations that tests compare, (n_units, n_models).

    Crossed tests compare single answers; what is averaged, and drawn, are the means of groups, or
    of participants in a single group.
    """
    alone = units == "crossed" and len(evaluation.group_numbers) == 1
    return values if alone or units == "participants" else evaluation.of_groups(values)


def suited_units(ratings: Ratings, contrasts: Sequence[ModelContrast], sampling: Sampling) -> Units:
    """Groups, where tests of groups can find something and speak of items in general.

    They cannot where groups are too few for any contrast of a scope to be significant, whatever the
    data, or where groups share items; there people and items are crossed.
    """
    rated = [
        {
            number
            for number, trial in zip(numbers.tolist(), group.trials, strict=True)
            if trial.condition is not Condition.CATCH
        }
        for numbers, group in zip(item_numbers(ratings), ratings.groups, strict=True)
    ]
    seen = Counter(number for numbers in rated for number in numbers)
    if max(seen.values(), default=0) > 1:
        return "crossed"
    several = np.array([len(group.participants) > 1 for group in ratings.groups])
    for scope in scopes_of(ratings):
        # (n_groups, n_models): which groups have trials of which model
        masks = [scope_mask(group.trials, scope, ratings.models) for group in ratings.groups]
        has = dict(zip(ratings.models, np.array([m.any(axis=1) for m in masks]).T, strict=True))
        units = [
            int((has[c.first] & (several if c.second == CEILING else has[c.second])).sum())
            for c in contrasts
        ]
        limits = reach(units, sampling.false_discovery_rate, sampling.correction)
        if limits.tests and limits.needed is None:
            return "crossed"
    return "groups"


class _Test(NamedTuple):
    """A contrast's test before its p-value is adjusted; values of units, (n_units,)."""

    first: FloatArray
    second: FloatArray
    uncertainty: Uncertainty
    n_units: int
    statistic: float
    rank_biserial: float
    p_value: float


def _signed_rank(first: FloatArray, second: FloatArray, uncertainty: Uncertainty) -> _Test:
    test = signed_rank_test(first, second)
    return _Test(
        first, second, uncertainty, test.n, test.statistic, test.rank_biserial, test.p_value
    )


def _crossed_test(first: FloatArray, second: FloatArray, uncertainty: Uncertainty) -> _Test:
    variance = uncertainty.scatter.variance
    statistic = _mean(first - second) / np.sqrt(variance) if variance > 0 else np.nan
    people, p_value = uncertainty.scatter.people, uncertainty.p_value()
    return _Test(first, second, uncertainty, people, float(statistic), np.nan, p_value)


def _family_reach(tests: Sequence[_Test], sampling: Sampling) -> Reach:
    units = [test.n_units for test in tests if np.isfinite(test.p_value)]
    if sampling.units != "crossed":
        return reach(units, sampling.false_discovery_rate, sampling.correction)
    # However few the people, a clear enough difference has a p-value as small as may be.
    few, most = (min(units), max(units)) if units else (0, 0)
    return Reach(len(units), few, most, 0.0, 1 if units else None, sampling.correction)


def _adjusted(
    tests: Sequence[_Test],
    family: Sequence[ModelContrast],
    about: str,
    sampling: Sampling,
    limits: Reach,
) -> tuple[ContrastResult, ...]:
    """Results of a whole family of tests."""
    units, rate = sampling.units or "groups", sampling.false_discovery_rate
    p_values = np.array([test.p_value for test in tests])
    q_values, holm = false_discovery(p_values), family_wise(p_values)
    adjust = family_wise if sampling.correction == "holm" else false_discovery
    decided = holm if sampling.correction == "holm" else q_values
    # The same family with all units of each test on one side: the least that its adjusted p-values
    # can be. Crossed tests have no such bound.
    clearest = np.where(
        np.isnan(p_values),
        np.nan,
        [0.0 if units == "crossed" else smallest_p_value(test.n_units) for test in tests],
    )
    testable = adjust(clearest) < rate
    alpha = decision_alpha(p_values, rate, sampling.correction, limits.needed)
    margin = sampling.smallest_effect
    equivalence = np.array([test.uncertainty.equivalence_p_value(margin) for test in tests])
    equivalent = adjust(equivalence)
    ceilings = sum(contrast.second == CEILING for contrast in family)
    stated = (
        f"{counted(len(family), 'contrast')} of {about}: "
        f"{counted(len(family) - ceilings, 'pair')} of models, "
        f"{counted(ceilings, 'model')} against the ceiling"
    )
    results = []
    for place, (contrast, test) in enumerate(zip(family, tests, strict=True)):
        scatter, interval = test.uncertainty.scatter, _decided(test, alpha[place], sampling)
        difference = _mean(test.first - test.second)
        deviation = np.sqrt(scatter.answer) if scatter.answer > 0 else np.nan
        results.append(
            ContrastResult(
                contrast.first,
                contrast.second,
                _mean(test.first),
                _mean(test.second),
                difference,
                interval,
                test.n_units,
                test.statistic,
                test.rank_biserial,
                test.p_value,
                float(q_values[place]),
                bool(decided[place] < rate),
                bool(testable[place]),
                _HOLDS_FOR.get(units, scatter.population),
                float(holm[place]),
                float(difference / deviation),
                float(interval.low / deviation),
                float(interval.high / deviation),
                TESTS[units],
                stated,
                CORRECTIONS[sampling.correction],
                *rank_biserial_interval(test.n_units, test.rank_biserial, sampling.level),
                margin,
                float(equivalence[place]),
                float(equivalent[place]),
                float(alpha[place]),
                _verdict(
                    different=bool(decided[place] < rate),
                    equivalent=bool(equivalent[place] < rate),
                    testable=bool(testable[place]),
                ),
            )
        )
    return tuple(results)


def _decided(test: _Test, alpha: float, sampling: Sampling) -> Interval:
    """The interval of a difference that leaves out 0 where the family's correction does.

    That of a signed-rank test reaches as far as Clopper and Pearson's limits do, at least.
    """
    if sampling.intervals == "percentile":
        return test.uncertainty.interval(sampling.level)
    interval = test.uncertainty.interval(1 - alpha)
    if sampling.units == "crossed":
        return interval
    low, high = signed_rank_interval(test.first - test.second, alpha)
    # Where units differ alike, ranks say nothing of what other items may show. The sign of a
    # difference that the test decides on stays.
    estimate, unseen = test.uncertainty.estimate, test.uncertainty.unseen(1 - alpha)
    least, most = _SAME_SIGN if low > 0 else -np.inf, -_SAME_SIGN if high < 0 else np.inf
    low, high = np.fmin(low, estimate - unseen), np.fmax(high, estimate + unseen)
    low, high = np.clip((max(low, least), min(high, most)), *test.uncertainty.ends).tolist()
    return replace(interval, low=low, high=high)


def _verdict(*, different: bool, equivalent: bool, testable: bool) -> str:
    if different:
        return "both" if equivalent else "different"
    if equivalent:
        return "equivalent"
    return "undecided" if testable else "untestable"


def _mean(values: FloatArray) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else np.nan
