"""Comparison of models with one another and with the noise ceiling, and how sure we are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis import SMALLEST_EFFECT
from contstim.experiments.analysis.crossed import Side, jackknife
from contstim.experiments.analysis.families import (
    CEILING,
    CORRECTIONS,
    FALSE_DISCOVERY_RATE,
    Detectability,
    adjusted,
    decision_alpha,
    detectability,
    false_discovery,
    family_wise,
    limits_over_groups,
)
from contstim.experiments.analysis.intervals import bootstrap, uncertainty_of
from contstim.experiments.analysis.measures import evaluate, known_mean
from contstim.experiments.analysis.ratings import scope_mask, scopes_of
from contstim.experiments.analysis.signed_ranks import (
    SignedRankTest,
    rank_biserial_interval,
    signed_rank_interval,
    signed_rank_test,
    smallest_p_value,
)
from contstim.stimuli import Condition
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.arrays import BoolArray, FloatArray
    from contstim.experiments.analysis.families import Correction, ModelContrast
    from contstim.experiments.analysis.intervals import Interval, IntervalMethod, Uncertainty
    from contstim.experiments.analysis.measures import Measure, ParticipantScores
    from contstim.experiments.analysis.ratings import Ratings, Scope

Units = Literal["groups", "participants", "crossed"]
"""What tests take as random: groups, participants alone, or people and items, crossed."""

TESTS: dict[Units, str] = {
    "groups": "signed-rank test over groups",
    "participants": "signed-rank test over participants",
    "crossed": "t-test, people and items crossed",
}
_SAME_SIGN = 1e-12  # the smallest difference that is told from 0
_VERDICTS = {  # of differences that are significant, and shown to be smaller than matters
    (True, True): "both",
    (True, False): "different",
    (False, True): "equivalent",
    (False, False): "",
}
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
                f"smallest_effect must be between 0 and 1, not {self.smallest_effect:g}."
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

    @property
    def equivalent(self) -> bool:
        """True if the two are shown to differ by less than matters."""
        return self.verdict in ("equivalent", "both")


@dataclass(frozen=True, eq=False)
class Result:
    """One measure in one scope.

    Attributes:
        scope: which trials evaluate which model.
        measure: accuracy or signed-rank cosine.
        evaluation: of every participant.
        models: those that the scope evaluates.
        comparisons: of these models; the family of the false-discovery rate.
        detectability: limits of what that family can find, whatever the data.
    """

    scope: Scope
    measure: Measure
    evaluation: ParticipantScores
    models: tuple[ModelResult, ...]
    comparisons: tuple[ContrastResult, ...]
    detectability: Detectability

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """Of all values, then of all contrasts."""
        values = tuple(model.interval for model in self.models)
        return (*values, *(contrast.interval for contrast in self.comparisons))

    def below_ceiling(self) -> frozenset[str]:
        """The models significantly below the lower noise ceiling."""
        return self._with(CEILING, lambda row: row.significant and row.difference < 0)

    def at_ceiling(self) -> frozenset[str]:
        """The models shown to differ from their lower noise ceiling by less than matters."""
        return self._with(CEILING, lambda row: row.equivalent)

    def equivalent_to(self, model: str) -> frozenset[str]:
        """The models that are shown to differ from this one by less than matters."""
        return self._with(model, lambda row: row.equivalent)

    def beaten_by(self, model: str) -> frozenset[str]:
        """The models that are significantly worse than this one."""
        return self._with(
            model, lambda row: row.significant and (row.difference > 0) == (row.first == model)
        )

    def _with(self, side: str, holds: Callable[[ContrastResult], bool]) -> frozenset[str]:
        """Other sides of the contrasts of a model, or of the ceiling, of which something holds."""
        others = [
            row.first if row.second == side else row.second
            for row in self.comparisons
            if side in (row.first, row.second) and holds(row)
        ]
        return frozenset(others) - {CEILING}


_Test: TypeAlias = "tuple[FloatArray, FloatArray, Uncertainty, Interval | None, SignedRankTest]"
"""A contrast before its p-value is adjusted: values of units, (n_units,), on both sides, their
difference's uncertainty, percentiles where asked for, and the test."""


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
    names, units = ratings.models, sampling.units
    masks = [
        scope_mask(g.trials, scope, names, catch=sampling.catch_trials) for g in ratings.groups
    ]
    evaluation = evaluate(ratings, measure, masks)
    measured = _uncertain(ratings, measure, masks, sampling)
    values, lower, upper = (
        units_of(evaluation, kind, units)
        for kind in (evaluation.values, evaluation.lower, evaluation.upper)
    )
    counts = np.sum([mask.sum(axis=1) for mask in masks], axis=0)  # (n_models,) trials
    models = []
    for column in np.flatnonzero(counts).tolist():
        uncertainty, percentiles = measured(Side(column))
        interval = percentiles or uncertainty.interval(sampling.level)
        value, below, above = (known_mean(kind[:, column]) for kind in (values, lower, upper))
        models.append(
            ModelResult(names[column], value, interval, below, above, int(counts[column]))
        )
    targeted = [result.model for result in models]
    family = [c for c in contrasts if c.first in targeted and c.second in (*targeted, CEILING)]
    tests: list[_Test] = []
    for contrast in family:
        first, ceiling = names.index(contrast.first), contrast.second == CEILING
        # The ceiling that a model is compared with is that on its own trials: its own column.
        second = None if ceiling else names.index(contrast.second)
        others = lower[:, first] if second is None else values[:, second]
        both = ~np.isnan(values[:, first] - others)
        pair, known = (values[both, first], others[both]), measured(Side(first, second, ceiling))
        test = _crossed(*pair, known[0]) if units == "crossed" else signed_rank_test(*pair)
        tests.append((*pair, *known, test))
    limits = _limits([test for *_, test in tests], sampling)
    comparisons = _adjusted(tests, family, f"{measure.name} in {scope}", sampling, limits)
    return Result(scope, measure, evaluation, tuple(models), comparisons, limits)


def _uncertain(
    ratings: Ratings, measure: Measure, masks: Sequence[BoolArray], sampling: Sampling
) -> Callable[[Side], tuple[Uncertainty, Interval | None]]:
    """Function from a value or difference to its uncertainty, and percentiles where asked for."""
    # A mean over participants weighs groups by their sizes; one over groups, all alike.
    sizes = np.array([float(len(group.participants)) for group in ratings.groups])
    shares = sizes if sampling.units == "participants" else np.ones(len(sizes))
    groups, resampled = jackknife(ratings, measure, masks), None
    if sampling.intervals == "percentile":
        draws = {"samples": sampling.samples, "seed": sampling.seed}
        resampled = bootstrap(ratings, measure, masks, shares, **draws)

    def measured(side: Side) -> tuple[Uncertainty, Interval | None]:
        uncertainty = uncertainty_of(groups, shares, measure.lowest, side)
        return uncertainty, resampled.interval(side, sampling.level) if resampled else None

    return measured


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
    seen = Counter(
        pair
        for group in ratings.groups
        for pair in {
            frozenset((trial.sentence_1.text, trial.sentence_2.text))
            for trial in group.trials
            if trial.condition is not Condition.CATCH
        }
    )
    if max(seen.values(), default=0) > 1:
        return "crossed"
    several = np.array([len(group.participants) > 1 for group in ratings.groups])
    for scope in scopes_of(ratings):
        masks = [scope_mask(group.trials, scope, ratings.models) for group in ratings.groups]
        has = np.array([mask.any(axis=1) for mask in masks])
        rate, correction = sampling.false_discovery_rate, sampling.correction
        if limits_over_groups(has, several, ratings.models, contrasts, rate, correction).hopeless:
            return "crossed"
    return "groups"


def _crossed(first: FloatArray, second: FloatArray, uncertainty: Uncertainty) -> SignedRankTest:
    """Student's t in the place of a sum of ranks; of participants, without the latter's effect."""
    variance = float(uncertainty.components.variance)
    statistic = known_mean(first - second) / np.sqrt(variance) if variance > 0 else np.nan
    people, p_value = uncertainty.components.people, float(uncertainty.p_values())
    return SignedRankTest(people, float(statistic), np.nan, p_value)


def _limits(tests: Sequence[SignedRankTest], sampling: Sampling) -> Detectability:
    units = [test.n for test in tests if np.isfinite(test.p_value)]
    if sampling.units != "crossed":
        return detectability(units, sampling.false_discovery_rate, sampling.correction)
    # However few the people, a clear enough difference has a p-value as small as may be.
    few, most = (min(units), max(units)) if units else (0, 0)
    return Detectability(len(units), few, most, 0.0, 1 if units else None, sampling.correction)


def _adjusted(
    tests: Sequence[_Test],
    family: Sequence[ModelContrast],
    about: str,
    sampling: Sampling,
    limits: Detectability,
) -> tuple[ContrastResult, ...]:
    """Results of a whole family of tests."""
    kind, rate = sampling.correction, sampling.false_discovery_rate
    p_values = np.array([test.p_value for *_, test in tests])
    # The same family with all units of each test on one side: the least that its adjusted p-values
    # can be. Crossed tests have no such bound.
    crossed, margin = sampling.units == "crossed", sampling.smallest_effect
    least = [0.0 if crossed else smallest_p_value(test.n) for *_, test in tests]
    equivalence = np.array([known.equivalence_p_value(margin) for _, _, known, *_ in tests])
    decisions = (
        false_discovery(p_values),
        family_wise(p_values),
        adjusted(p_values, kind) < rate,
        adjusted(np.where(np.isnan(p_values), np.nan, least), kind) < rate,
        decision_alpha(p_values, rate, kind, limits.needed),
        equivalence,
        adjusted(equivalence, kind),
    )
    ceilings = sum(contrast.second == CEILING for contrast in family)
    stated = (
        f"{counted(len(family), 'contrast')} of {about}: "
        f"{counted(len(family) - ceilings, 'pair')} of models, "
        f"{counted(ceilings, 'model')} against the ceiling"
    )
    columns = zip(*(column.tolist() for column in decisions), strict=True)
    return tuple(
        _result(contrast, test, decided, stated, sampling)
        for contrast, test, decided in zip(family, tests, columns, strict=True)
    )


def _result(
    contrast: ModelContrast, test: _Test, decided: Sequence[Any], stated: str, sampling: Sampling
) -> ContrastResult:
    """One of a family, with what its correction decides; see `_adjusted`."""
    q_value, holm, different, testable, alpha, p_alike, q_alike = decided
    first, second, known, _, ranks = test
    interval, difference = _decided(test, alpha, sampling), known_mean(first - second)
    residual, units = known.components.residual, sampling.units or "groups"
    unit = np.sqrt(residual) if residual > 0 else np.nan
    low, high = float(interval.low / unit), float(interval.high / unit)
    untold = "undecided" if testable else "untestable"
    return ContrastResult(
        *contrast,
        *(known_mean(first), known_mean(second), difference),
        interval,
        ranks.n,
        *(ranks.statistic, ranks.rank_biserial, ranks.p_value),
        *(q_value, different, testable),
        _HOLDS_FOR.get(units, known.components.population),
        holm,
        *(float(difference / unit), low, high),
        *(TESTS[units], stated, CORRECTIONS[sampling.correction]),
        *rank_biserial_interval(ranks.n, ranks.rank_biserial, sampling.level),
        *(sampling.smallest_effect, p_alike, q_alike, alpha),
        _VERDICTS[different, q_alike < sampling.false_discovery_rate] or untold,
    )


def _decided(test: _Test, alpha: float, sampling: Sampling) -> Interval:
    """The interval of a difference that leaves out 0 where the family's correction does.

    That of a signed-rank test reaches as far as Clopper and Pearson's limits do, at least.
    """
    first, second, known, percentiles, _ = test
    if percentiles is not None:
        return percentiles
    interval = known.interval(1 - alpha)
    if sampling.units == "crossed":
        return interval
    low, high = signed_rank_interval(first - second, alpha)
    # Where units differ alike, ranks say nothing of what other items may show. The sign of a
    # difference that the test decides on stays.
    estimate, unseen = float(known.estimate), known.unseen(1 - alpha)
    least, most = _SAME_SIGN if low > 0 else -np.inf, -_SAME_SIGN if high < 0 else np.inf
    low, high = np.fmin(low, estimate - unseen), np.fmax(high, estimate + unseen)
    low, high = np.clip((max(low, least), min(high, most)), *known.ends).tolist()
    return replace(interval, low=low, high=high)
