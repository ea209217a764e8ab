"""Comparison of models with one another and with the noise ceiling, with tests and intervals.

A scope is a set of trials on which models are compared. A contrast is a comparison of two models,
or of a model with the noise ceiling.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis import SMALLEST_EFFECT
from contstim.experiments.analysis.crossed import item_numbers, jackknife
from contstim.experiments.analysis.families import (
    CEILING,
    CORRECTIONS,
    FALSE_DISCOVERY_RATE,
    Detectability,
    adjust,
    decision_alpha,
    detectability,
    limits_over_groups,
)
from contstim.experiments.analysis.intervals import Interval, Uncertainty, uncertainty_of
from contstim.experiments.analysis.measures import evaluate, known_mean, measures_of
from contstim.experiments.analysis.ratings import TESTING, Ratings, Scope, scope_mask, scopes_of
from contstim.experiments.analysis.signed_ranks import (
    rank_biserial_interval,
    signed_rank_interval,
    signed_rank_test,
    smallest_p_value,
)
from contstim.files.tables import cells_by_name
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.experiments.analysis.families import Correction, ModelContrast
    from contstim.experiments.analysis.measures import Measure, ParticipantScores
    from contstim.experiments.analysis.tables import Row
    from contstim.files.arrays import BoolArray, FloatArray
    from contstim.items.scale import Scale
    from contstim.items.stimuli import Trial

Units = Literal["groups", "participants", "crossed"]
"""Random factors of the tests: groups, participants, or participants and items (crossed)."""

TESTS: dict[Units, str] = {
    "groups": "signed-rank test over groups",
    "participants": "signed-rank test over participants",
    "crossed": "t-test, people and items crossed",
}
_SMALLEST_DIFFERENCE = 1e-12  # smallest difference that is distinguished from 0
# (is significant, is shown to be negligible) → verdict
_VERDICTS = {(True, True): "both", (True, False): "different", (False, True): "equivalent"}
_HOLDS_FOR: dict[Units, str] = {"groups": "items like these", "participants": "these items"}


@dataclass(frozen=True)
class Sampling:
    """Units of the tests, and limits for decisions on contrasts.

    Attributes:
        units: random factors of the tests; if None, `suited_units` selects the factors.
        level: confidence level of intervals of values.
        false_discovery_rate: threshold for adjusted p-values. With Holm's correction, this
            threshold is the family-wise error rate.
        smallest_effect: margin of equivalence tests; smaller differences are negligible.
        catch_trials: whether catch trials count in the overall result, as published in 2023.
            Participants who fail catch trials are excluded, so the others agree on catch trials. A
            model that does not predict catch trials is then below the noise ceiling, even if it
            predicts all other trials as well as people do.
    """

    units: Units | None = None
    level: float = 0.95
    false_discovery_rate: float = FALSE_DISCOVERY_RATE
    correction: Correction = "bh"
    smallest_effect: float = SMALLEST_EFFECT
    catch_trials: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.smallest_effect < 1:
            raise InputError(
                f"smallest_effect must be between 0 and 1, got {self.smallest_effect:g}."
            )


@dataclass(frozen=True)
class ModelMean:
    """Mean of a model over units, with its interval, and the noise ceilings on the same trials."""

    model: str
    value: float
    interval: Interval
    lower: float
    upper: float
    n_trials: int


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A contrast: a difference of means over units, with interval and test.

    Units are groups or participants. A unit counts only if it has values of both sides of the
    contrast. A group of one participant has no ceiling.

    Attributes:
        second: another model, or `CEILING`.
        difference: first minus second.
        interval: interval of the difference, at the level 1 - `alpha`. The interval inverts the
            test, that is, it excludes 0 if and only if the contrast is significant.
        n_units: number of groups or participants that the test compares; participants for a crossed
            test.
        statistic: for a signed-rank test, the smaller one of the sum of positive ranks and the sum
            of negative ranks; for a crossed test, Student's t.
        rank_biserial: effect size of a signed-rank test, nan for crossed tests; see
            `rank_biserial_interval`.
        p_value: two-sided, before correction.
        q_value: p-value adjusted over the `family` by Benjamini and Hochberg.
        significant: decision after `correction`.
        testable: whether any data could make the contrast significant. To find out, every test of
            the family is assumed to have its smallest possible p-value.
        holds_for: population to which the test generalises: "items like these" for groups, "these
            items" for participants. For crossed tests, it is the population for which the interval
            is valid.
        standardised: difference, divided by the standard deviation of a single answer's difference.
            The variance of a single answer is the sum of the variances of people, items and
            residuals (after Westfall, Kenny & Judd 2014).
        correction: correction that decides `significant`.
        equivalence_p: p-value of two one-sided tests that the absolute difference is below
            `smallest_effect`; see `equivalence_p_value`.
        alpha: limit of `correction` for the p-value; see `decision_alpha`.
        verdict: different, equivalent, both (a significant but negligible difference), or
            undecided; untestable if the contrast is not testable and equivalence is not shown.
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
    """Results of one measure in one scope, which is a kind of trials.

    The comparisons are one family: their p-values are corrected together.
    """

    scope: Scope
    measure: Measure
    evaluation: ParticipantScores
    models: Sequence[ModelMean]
    comparisons: Sequence[Comparison]
    detectability: Detectability

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """Intervals of all values, then of all contrasts."""
        return (*(row.interval for row in self.models), *(row.interval for row in self.comparisons))

    def below_ceiling(self) -> frozenset[str]:
        """Return the models significantly below the lower noise ceiling."""
        return self._models_where(CEILING, lambda row: row.significant and row.difference < 0)

    def equivalent_to(self, side: str) -> frozenset[str]:
        """Return the models that are shown to differ negligibly from a model or `CEILING`."""
        return self._models_where(side, lambda row: row.verdict in ("equivalent", "both"))

    def beaten_by(self, model: str) -> frozenset[str]:
        """Return the models that are significantly worse than this one."""
        return self._models_where(
            model, lambda row: row.significant and (row.difference > 0) == (row.first == model)
        )

    def _models_where(self, side: str, holds: Callable[[Comparison], bool]) -> frozenset[str]:
        sides = [{row.first, row.second} for row in self.comparisons if holds(row)]
        return frozenset().union(*(pair for pair in sides if side in pair)) - {side, CEILING}


# A contrast before correction: values of units on both sides, (n_units,), the uncertainty of the
# difference, and the result of the test (see `signed_rank_test`)
_Test: TypeAlias = "tuple[FloatArray, FloatArray, Uncertainty, Row]"


def compare(
    ratings: Ratings,
    scope: Scope,
    measure: Measure,
    contrasts: Sequence[ModelContrast],
    sampling: Sampling,
    *,
    masks: Sequence[BoolArray] | None = None,
) -> Result:
    """Evaluate all models in a scope and test the contrasts between them.

    Contrasts of models without trials in this scope are left out. `masks` is an argument of
    `evaluate`; by default, the masks select the trials of the scope.
    """
    names, units = ratings.models, sampling.units
    masks = masks or [
        scope_mask(g.trials, scope, names, catch=sampling.catch_trials) for g in ratings.groups
    ]
    evaluation = evaluate(ratings, measure, masks)
    # A mean over participants weights groups by size; a mean over groups weights them equally.
    sizes = np.array([float(len(group.participants)) for group in ratings.groups])
    shares = sizes if units == "participants" else np.ones(len(sizes))
    groups = jackknife(ratings, measure, masks)
    values, lower, upper = (
        units_of(evaluation, kind, units)
        for kind in (evaluation.values, evaluation.lower, evaluation.upper)
    )
    counts = np.sum([mask.sum(axis=1) for mask in masks], axis=0)  # (n_models,) trials
    models: list[ModelMean] = []
    for column in np.flatnonzero(counts).tolist():
        uncertainty = uncertainty_of(groups, shares, measure.lowest, column)
        value, below, above = (known_mean(kind[:, column]) for kind in (values, lower, upper))
        interval, n_trials = uncertainty.interval(sampling.level), int(counts[column])
        models.append(ModelMean(names[column], value, interval, below, above, n_trials))
    family = _family_of(contrasts, [row.model for row in models])
    results = np.hstack([values, lower])  # (n_units, 2 n_models), as in `GroupJackknife`
    tests: list[_Test] = []
    for contrast in family:
        first = names.index(contrast[0])
        # The ceiling on a model's own trials is in the model's column of `lower`
        second = len(names) + first if contrast[1] == CEILING else names.index(contrast[1])
        is_known = ~np.isnan(results[:, first] - results[:, second])
        pair = (results[is_known, first], results[is_known, second])
        uncertainty = uncertainty_of(groups, shares, measure.lowest, first, second)
        test = _crossed_test(*pair, uncertainty) if units == "crossed" else signed_rank_test(*pair)
        tests.append((*pair, uncertainty, test))
    n_units = [test["n_units"] for *_, test in tests if np.isfinite(test["p_value"])]
    limits = detectability(n_units, sampling.false_discovery_rate, sampling.correction)
    if units == "crossed":
        # The p-value of a crossed test has no lower bound
        limits = replace(limits, smallest=0.0, needed=1 if n_units else None)
    comparisons = _comparison_rows(tests, family, f"{measure.name} in {scope}", sampling, limits)
    return Result(scope, measure, evaluation, models, comparisons, limits)


def _family_of(contrasts: Iterable[ModelContrast], models: Sequence[str]) -> list[ModelContrast]:
    return [(a, b) for a, b in contrasts if a in models and b in (*models, CEILING)]


def planned_families(
    trials: Sequence[Trial], models: Sequence[str], contrasts: Sequence[ModelContrast], scale: Scale
) -> Counter[tuple[int, int]]:
    """Count the families of tests that an analysis of these trials makes, by size.

    Returns:
        (number of contrasts in a family, number of its contrasts between two models) → number of
        families with these two numbers. A family is all contrasts of a measure in one scope.
    """
    sizes: Counter[tuple[int, int]] = Counter()
    for scope in Scope:
        masks = scope_mask(trials, scope, models)
        names = [model for model, mask in zip(models, masks, strict=True) if mask.any()]
        if names:
            family = _family_of(contrasts, names)
            pairs = sum(second != CEILING for _, second in family)
            sizes[len(family), pairs] += len(measures_of(scale))
    return sizes


def unit_kind(
    evaluation: ParticipantScores, units: Units | None
) -> Literal["groups", "participants"]:
    """Return the units whose means are reported; for crossed tests, groups if there are several."""
    alone = units == "crossed" and len(np.unique(evaluation.groups)) == 1
    return "participants" if alone or units == "participants" else "groups"


def units_of(evaluation: ParticipantScores, values: FloatArray, units: Units | None) -> FloatArray:
    """Return the values of all units, (n_units, n_models); see `unit_kind`."""
    of_people = unit_kind(evaluation, units) == "participants"
    return values if of_people else evaluation.of_groups(values)


def suited_units(ratings: Ratings, contrasts: Sequence[ModelContrast], sampling: Sampling) -> Units:
    """Return `groups` if tests over groups can detect effects and generalise to new items.

    Otherwise, return `crossed`: if a scope has too few groups for any contrast to be significant,
    or if two groups saw the same item.
    """
    item_list = [
        item
        for group, items in zip(ratings.groups, item_numbers(ratings), strict=True)
        for item in np.unique(items[[trial.condition in TESTING for trial in group.trials]])
    ]
    if len(set(item_list)) < len(item_list):
        return "crossed"
    several = np.array([len(group.participants) > 1 for group in ratings.groups])
    for scope in scopes_of(ratings):
        masks = [scope_mask(group.trials, scope, ratings.models) for group in ratings.groups]
        has = np.array([mask.any(axis=1) for mask in masks])
        rate, correction = sampling.false_discovery_rate, sampling.correction
        if limits_over_groups(has, several, ratings.models, contrasts, rate, correction).hopeless:
            return "crossed"
    return "groups"


def _crossed_test(first: FloatArray, second: FloatArray, uncertainty: Uncertainty) -> Row:
    """Return the result of a t-test in the form of `signed_rank_test`.

    `statistic` is Student's t, and `rank_biserial` is nan. Units are participants.
    """
    variance = float(uncertainty.components.variance)
    statistic = known_mean(first - second) / np.sqrt(variance) if variance > 0 else np.nan
    sizes = {"n_units": uncertainty.components.people, "statistic": float(statistic)}
    return {**sizes, "rank_biserial": np.nan, "p_value": float(uncertainty.p_values())}


def _comparison_rows(
    tests: Sequence[_Test],
    family: Sequence[ModelContrast],
    about: str,
    sampling: Sampling,
    limits: Detectability,
) -> list[Comparison]:
    kind, rate = sampling.correction, sampling.false_discovery_rate
    p_values = np.array([test["p_value"] for *_, test in tests])
    # Smallest possible p-values, for `testable`. Crossed tests have no such bound.
    crossed, margin = sampling.units == "crossed", sampling.smallest_effect
    least = [0.0 if crossed else smallest_p_value(test["n_units"]) for *_, test in tests]
    equivalence = np.array(
        [uncertainty.equivalence_p_value(margin) for _, _, uncertainty, _ in tests]
    )
    decisions = {
        "q_value": adjust(p_values, "bh"),
        "p_holm": adjust(p_values, "holm"),
        "significant": adjust(p_values, kind) < rate,
        "testable": adjust(np.where(np.isnan(p_values), np.nan, least), kind) < rate,
        "alpha": decision_alpha(p_values, rate, kind, limits.needed),
        "equivalence_p": equivalence,
        "equivalence_adjusted": adjust(equivalence, kind),
    }
    ceilings = sum(second == CEILING for _, second in family)
    family_text = (
        f"{quantity(len(family), 'contrast')} of {about}: "
        f"{quantity(len(family) - ceilings, 'pair')} of models, "
        f"{quantity(ceilings, 'model')} against the ceiling"
    )
    decided_rows = cells_by_name({name: column.tolist() for name, column in decisions.items()})
    units = sampling.units or "groups"
    rows = []
    for contrast, test, decided in zip(family, tests, decided_rows, strict=True):
        first, second, uncertainty, result = test
        interval = _test_interval(test, decided["alpha"], sampling)
        difference, residual = known_mean(first - second), uncertainty.components.residual
        unit = np.sqrt(residual) if residual > 0 else np.nan
        biserial = rank_biserial_interval(
            result["n_units"], result["rank_biserial"], sampling.level
        )
        is_equivalent = decided["equivalence_adjusted"] < rate
        default = "undecided" if decided["testable"] else "untestable"
        comparison = Comparison(
            first=contrast[0],
            second=contrast[1],
            value_first=known_mean(first),
            value_second=known_mean(second),
            difference=difference,
            interval=interval,
            **result,
            holds_for=_HOLDS_FOR.get(units, uncertainty.components.population),
            standardised=float(difference / unit),
            low_standardised=float(interval.low / unit),
            high_standardised=float(interval.high / unit),
            test=TESTS[units],
            family=family_text,
            correction=CORRECTIONS[kind],
            low_rank_biserial=biserial[0],
            high_rank_biserial=biserial[1],
            smallest_effect=margin,
            verdict=_VERDICTS.get((decided["significant"], is_equivalent), default),
            **decided,
        )
        rows.append(comparison)
    return rows


def _test_interval(test: _Test, alpha: float, sampling: Sampling) -> Interval:
    """Return the interval of a difference that excludes 0 if and only if the test is significant.

    The interval of a signed-rank test extends from the estimate by at least
    `Uncertainty.least_reach` to each side. It ends earlier if it would otherwise include 0 for a
    significant difference, or exceed the largest possible difference.
    """
    first, second, uncertainty, _ = test
    interval = uncertainty.interval(1 - alpha)
    if sampling.units == "crossed":
        return interval
    low, high = signed_rank_interval(first - second, alpha)
    # If the values of units hardly differ, their ranks do not show how much the values of new items
    # may differ. The interval therefore has a minimum width, but still excludes 0 if the difference
    # is significant.
    estimate, reach = float(uncertainty.estimate), uncertainty.least_reach(1 - alpha)
    least = _SMALLEST_DIFFERENCE if low > 0 else -np.inf
    upper_limit = -_SMALLEST_DIFFERENCE if high < 0 else np.inf
    low, high = np.fmin(low, estimate - reach), np.fmax(high, estimate + reach)
    low, high = np.clip((max(low, least), min(high, upper_limit)), *uncertainty.ends).tolist()
    return replace(interval, low=low, high=high)
