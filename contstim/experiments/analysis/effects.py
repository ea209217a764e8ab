"""Comparison of models with one another and with the noise ceiling, and how sure we are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis import SMALLEST_EFFECT
from contstim.experiments.analysis.crossed import Side, item_numbers, jackknife
from contstim.experiments.analysis.families import (
    CEILING,
    CORRECTIONS,
    FALSE_DISCOVERY_RATE,
    Detectability,
    adjusted,
    decision_alpha,
    detectability,
    limits_over_groups,
)
from contstim.experiments.analysis.intervals import uncertainty_of
from contstim.experiments.analysis.measures import evaluate, known_mean, measures_of
from contstim.experiments.analysis.ratings import TESTING, Scope, scope_mask, scopes_of
from contstim.experiments.analysis.signed_ranks import (
    RANK_TEST,
    rank_biserial_interval,
    signed_rank_interval,
    signed_rank_test,
    smallest_p_value,
)
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.experiments.analysis.families import Correction, ModelContrast
    from contstim.experiments.analysis.intervals import Interval, Uncertainty
    from contstim.experiments.analysis.measures import Measure, ParticipantScores
    from contstim.experiments.analysis.ratings import Ratings
    from contstim.experiments.analysis.tables import Row
    from contstim.files.arrays import BoolArray, FloatArray
    from contstim.items.scale import Scale
    from contstim.items.stimuli import Trial

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
    """Unit of observation, and limits by which contrasts are decided.

    Attributes:
        units: tests compare means of groups, or participants, or take people and items as crossed
            random factors; None leaves it to the design (`suited_units`).
        level: of the intervals.
        false_discovery_rate: up to which adjusted p-values are significant; with Holm's correction
            the family-wise error rate.
        correction: for the family of contrasts.
        smallest_effect: differences below it do not matter: contrasts are also tested for being
            smaller than that.
        catch_trials: whether catch trials count in the overall result, as published in 2023. People
            who fail them are left out, so that those who stay agree on them; a model that people
            follow everywhere else then falls short of the noise ceiling.
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
                f"smallest_effect must be between 0 and 1, not {self.smallest_effect:g}."
            )


@dataclass(frozen=True, eq=False)
class Result:
    """One measure in one scope.

    A row of `comparisons` is a contrast: the difference of means over units, its interval and its
    test. Units count in which both sides are known; a group of one has no ceiling.

    - `second`: another model than `first`, or `CEILING`.
    - `interval`: of the difference, at 1 - `alpha`; it leaves out 0 where the contrast is
      significant, and only there, since it inverts the test.
    - `n_units`: groups or participants that the test compares; of a crossed test, participants.
    - `statistic`: the smaller sum of ranks, or Student's t.
    - `rank_biserial`: the effect size of a signed-rank test; see `rank_biserial_interval`.
    - `q_value`, `p_holm`: adjusted over the `family` by Benjamini and Hochberg, and by Holm;
      `correction` is the one by which `significant` is decided, `alpha` the p-value below which it
      is; see `decision_alpha`.
    - `testable`: it would be significant were all tests of its family as clear as their numbers of
      units let them be; where it is not, `significant` is False whatever the data.
    - `holds_for`: whom and what the test speaks of. Tests of groups hold for items like these,
      tests of participants for these items, crossed tests for what the interval speaks of.
    - `standardised`: the difference in standard deviations of the difference on single answers, to
      which people, items and all else contribute (after Westfall, Kenny & Judd 2014).
    - `equivalence_p`: of two one-sided tests that the difference is smaller than `smallest_effect`;
      see `equivalence_p_value`. `equivalence_adjusted`: by the correction, over the same family.
    - `verdict`: different, equivalent, both (a difference that does not matter), or undecided;
      untestable where nothing can be significant, and equivalence is not shown either.

    Attributes:
        scope: which trials evaluate which model.
        measure: accuracy or signed-rank cosine.
        evaluation: of every participant.
        models: those that the scope evaluates: a row each with the mean over units, its interval,
            and the noise ceilings on the same trials.
        comparisons: of these models; the family of the false-discovery rate.
        detectability: limits of what that family can find, whatever the data.
    """

    scope: Scope
    measure: Measure
    evaluation: ParticipantScores
    models: list[Row]
    comparisons: list[Row]
    detectability: Detectability

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """Of all values, then of all contrasts."""
        return tuple(row["interval"] for row in (*self.models, *self.comparisons))

    def below_ceiling(self) -> frozenset[str]:
        """The models significantly below the lower noise ceiling."""
        return self._with(CEILING, lambda row: row["significant"] and row["difference"] < 0)

    def equivalent_to(self, side: str) -> frozenset[str]:
        """The models shown to differ by less than matters from this one, or from `CEILING`."""
        return self._with(side, lambda row: row["verdict"] in ("equivalent", "both"))

    def beaten_by(self, model: str) -> frozenset[str]:
        """The models that are significantly worse than this one."""
        return self._with(
            model,
            lambda row: row["significant"] and (row["difference"] > 0) == (row["first"] == model),
        )

    def _with(self, side: str, holds: Callable[[Row], bool]) -> frozenset[str]:
        """Other sides of the contrasts of a model, or of the ceiling, of which something holds."""
        sides = [{row["first"], row["second"]} for row in self.comparisons if holds(row)]
        return frozenset().union(*(pair for pair in sides if side in pair)) - {side, CEILING}


_Test: TypeAlias = "tuple[FloatArray, FloatArray, Uncertainty, Row]"
"""A contrast before its p-value is adjusted: values of units, (n_units,), on both sides, their
difference's uncertainty, and the test."""


def compare(
    ratings: Ratings,
    scope: Scope,
    measure: Measure,
    contrasts: Sequence[ModelContrast],
    sampling: Sampling,
    *,
    masks: Sequence[BoolArray] | None = None,
) -> Result:
    """Evaluate all models in a scope and make the contrasts that concern two of them.

    Args:
        ratings: who rated what.
        scope: which trials evaluate which model.
        measure: accuracy or signed-rank cosine.
        contrasts: those of models without trials in this scope are left out.
        sampling: units, level, correction.
        masks: for each group, which trials evaluate which model, (n_models, n_trials); by default
            as the scope has it.
    """
    names, units = ratings.models, sampling.units
    masks = masks or [
        scope_mask(g.trials, scope, names, catch=sampling.catch_trials) for g in ratings.groups
    ]
    evaluation = evaluate(ratings, measure, masks)
    # A mean over participants weighs groups by their sizes; one over groups, all alike.
    sizes = np.array([float(len(group.participants)) for group in ratings.groups])
    shares = sizes if units == "participants" else np.ones(len(sizes))
    groups = jackknife(ratings, measure, masks)
    values, lower, upper = (
        units_of(evaluation, kind, units)
        for kind in (evaluation.values, evaluation.lower, evaluation.upper)
    )
    counts = np.sum([mask.sum(axis=1) for mask in masks], axis=0)  # (n_models,) trials
    models: list[Row] = []
    for column in np.flatnonzero(counts).tolist():
        uncertainty = uncertainty_of(groups, shares, measure.lowest, Side(column))
        value, below, above = (known_mean(kind[:, column]) for kind in (values, lower, upper))
        models.append(
            {
                "model": names[column],
                "value": value,
                "interval": uncertainty.interval(sampling.level),
                "lower": below,
                "upper": above,
                "n_trials": int(counts[column]),
            }
        )
    targeted = [row["model"] for row in models]
    family = _family_of(contrasts, targeted)
    tests: list[_Test] = []
    for contrast in family:
        first, ceiling = names.index(contrast.first), contrast.second == CEILING
        # The ceiling that a model is compared with is that on its own trials: its own column.
        second = None if ceiling else names.index(contrast.second)
        others = lower[:, first] if second is None else values[:, second]
        both = ~np.isnan(values[:, first] - others)
        pair, side = (values[both, first], others[both]), Side(first, second, ceiling)
        known = uncertainty_of(groups, shares, measure.lowest, side)
        test = _crossed(*pair, known) if units == "crossed" else signed_rank_test(*pair)
        tests.append((*pair, known, test))
    limits = _limits([test for *_, test in tests], sampling)
    comparisons = _adjusted(tests, family, f"{measure.name} in {scope}", sampling, limits)
    return Result(scope, measure, evaluation, models, comparisons, limits)


def _family_of(contrasts: Iterable[ModelContrast], models: Sequence[str]) -> list[ModelContrast]:
    """The contrasts between models that have trials."""
    return [c for c in contrasts if c.first in models and c.second in (*models, CEILING)]


def planned_families(
    trials: Sequence[Trial],
    models: Sequence[str],
    contrasts: Sequence[ModelContrast],
    scale: Scale,
) -> Counter[tuple[int, int]]:
    """Sizes of the families of tests that an analysis of these trials makes.

    Returns:
        (contrasts of a family, of these between two models) → number of such families. A family is
        all contrasts of a measure on one kind of trials.
    """
    sizes: Counter[tuple[int, int]] = Counter()
    for scope in Scope:
        masks = scope_mask(trials, scope, models)
        names = [model for model, mask in zip(models, masks, strict=True) if mask.any()]
        if names:
            family = _family_of(contrasts, names)
            pairs = sum(contrast.second != CEILING for contrast in family)
            sizes[len(family), pairs] += len(measures_of(scale))
    return sizes


def averaged(
    evaluation: ParticipantScores, units: Units | None
) -> Literal["groups", "participants"]:
    """Observations that tests compare; crossed ones compare answers, and these are averaged."""
    alone = units == "crossed" and len(evaluation.group_numbers) == 1
    return "participants" if alone or units == "participants" else "groups"


def units_of(evaluation: ParticipantScores, values: FloatArray, units: Units | None) -> FloatArray:
    """Values of all that is `averaged`, (n_units, n_models)."""
    of_people = averaged(evaluation, units) == "participants"
    return values if of_people else evaluation.of_groups(values)


def suited_units(ratings: Ratings, contrasts: Sequence[ModelContrast], sampling: Sampling) -> Units:
    """Groups, where tests of groups can find something and speak of items in general.

    They cannot where groups are too few for any contrast of a scope to be significant, whatever the
    data, or where groups share items; there people and items are crossed.
    """
    seen = [
        item
        for group, items in zip(ratings.groups, item_numbers(ratings), strict=True)
        for item in np.unique(items[[trial.condition in TESTING for trial in group.trials]])
    ]
    if len(set(seen)) < len(seen):
        return "crossed"
    several = np.array([len(group.participants) > 1 for group in ratings.groups])
    for scope in scopes_of(ratings):
        masks = [scope_mask(group.trials, scope, ratings.models) for group in ratings.groups]
        has = np.array([mask.any(axis=1) for mask in masks])
        rate, correction = sampling.false_discovery_rate, sampling.correction
        if limits_over_groups(has, several, ratings.models, contrasts, rate, correction).hopeless:
            return "crossed"
    return "groups"


def _crossed(first: FloatArray, second: FloatArray, uncertainty: Uncertainty) -> Row:
    """Student's t in the place of a sum of ranks; of participants, without the latter's effect."""
    variance = float(uncertainty.components.variance)
    statistic = known_mean(first - second) / np.sqrt(variance) if variance > 0 else np.nan
    people, p_value = uncertainty.components.people, float(uncertainty.p_values())
    return dict(zip(RANK_TEST, (people, float(statistic), np.nan, p_value), strict=True))


def _limits(tests: Sequence[Row], sampling: Sampling) -> Detectability:
    units = [test["n_units"] for test in tests if np.isfinite(test["p_value"])]
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
) -> list[Row]:
    """Rows of a whole family of tests."""
    kind, rate = sampling.correction, sampling.false_discovery_rate
    p_values = np.array([test["p_value"] for *_, test in tests])
    # The same family with all units of each test on one side: the least that its adjusted p-values
    # can be. Crossed tests have no such bound.
    crossed, margin = sampling.units == "crossed", sampling.smallest_effect
    least = [0.0 if crossed else smallest_p_value(test["n_units"]) for *_, test in tests]
    equivalence = np.array([known.equivalence_p_value(margin) for _, _, known, _ in tests])
    decisions = {
        "q_value": adjusted(p_values, "bh"),
        "p_holm": adjusted(p_values, "holm"),
        "significant": adjusted(p_values, kind) < rate,
        "testable": adjusted(np.where(np.isnan(p_values), np.nan, least), kind) < rate,
        "alpha": decision_alpha(p_values, rate, kind, limits.needed),
        "equivalence_p": equivalence,
        "equivalence_adjusted": adjusted(equivalence, kind),
    }
    ceilings = sum(contrast.second == CEILING for contrast in family)
    stated = (
        f"{counted(len(family), 'contrast')} of {about}: "
        f"{counted(len(family) - ceilings, 'pair')} of models, "
        f"{counted(ceilings, 'model')} against the ceiling"
    )
    columns = zip(*(column.tolist() for column in decisions.values()), strict=True)
    return [
        _row(contrast, test, dict(zip(decisions, decided, strict=True)), stated, sampling)
        for contrast, test, decided in zip(family, tests, columns, strict=True)
    ]


def _row(
    contrast: ModelContrast, test: _Test, decided: Row, stated: str, sampling: Sampling
) -> Row:
    """One of a family, with what its correction decides; see `Result`."""
    first, second, known, ranks = test
    interval, difference = _decided(test, decided["alpha"], sampling), known_mean(first - second)
    residual, units = known.components.residual, sampling.units or "groups"
    unit = np.sqrt(residual) if residual > 0 else np.nan
    biserial = rank_biserial_interval(ranks["n_units"], ranks["rank_biserial"], sampling.level)
    alike = decided["equivalence_adjusted"] < sampling.false_discovery_rate
    untold = "undecided" if decided["testable"] else "untestable"
    return {
        **contrast._asdict(),
        "value_first": known_mean(first),
        "value_second": known_mean(second),
        "difference": difference,
        "interval": interval,
        **ranks,
        **{name: decided[name] for name in ("q_value", "significant", "testable")},
        "holds_for": _HOLDS_FOR.get(units, known.components.population),
        "p_holm": decided["p_holm"],
        "standardised": float(difference / unit),
        "low_standardised": float(interval.low / unit),
        "high_standardised": float(interval.high / unit),
        "test": TESTS[units],
        "family": stated,
        "correction": CORRECTIONS[sampling.correction],
        "low_rank_biserial": biserial[0],
        "high_rank_biserial": biserial[1],
        "smallest_effect": sampling.smallest_effect,
        **{name: decided[name] for name in ("equivalence_p", "equivalence_adjusted", "alpha")},
        "verdict": _VERDICTS[decided["significant"], alike] or untold,
    }


def _decided(test: _Test, alpha: float, sampling: Sampling) -> Interval:
    """The interval of a difference that leaves out 0 where the family's correction does.

    That of a signed-rank test reaches as far as Clopper and Pearson's limits do, at least.
    """
    first, second, known, _ = test
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
