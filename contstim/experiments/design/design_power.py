"""The power of a whole design: what each kind of trial shows, with more and with fewer of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.defaults import SMALLEST_EFFECT
from contstim.experiments.analysis.inference import (
    FALSE_DISCOVERY_RATE,
    family_cautions,
)
from contstim.experiments.design.calibration import CalibratedPeople, MeasuredPeople, calibrate
from contstim.experiments.design.discoveries import crossed_instead, family_reach, suited_units
from contstim.experiments.design.population import AS_MEASURED
from contstim.experiments.design.power import (
    Power,
    measure_precision,
    simulate_power,
    thin,
    thinned,
)
from contstim.experiments.design.simulated import preferences_by_scope, with_trials
from contstim.tables import frame_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pandas import DataFrame

    from contstim.experiments.analysis.effects import Units
    from contstim.experiments.analysis.inference import Reach
    from contstim.experiments.analysis.scopes import Scope
    from contstim.experiments.design.population import Population
    from contstim.experiments.design.precision import Precision
    from contstim.experiments.design.simulated import TrialPreferences
    from contstim.scores import ScoreTable
    from contstim.stimuli import Trial

_SHARES = (8, 4, 2)
ARTIFICIAL_PILOT = (
    "Participants of the pilot are artificial: these numbers say what follows from its simulation, "
    "not what people do."
)
_COLUMNS = (
    *("scope", "people", "rivals", "model", "other", "expected_accuracy", "expected_other"),
    *("significantly_better", "first"),
)
_SIZE_COLUMNS = (
    *("scope", "groups", "participants_per_group", "participants", "test"),
    *("significantly_better_low", "significantly_better_high", "first_low", "first_high"),
    *("standard_error", "detectable_difference"),
    *("smallest_effect", "detects_smallest_effect", "shows_equivalence"),
)


@dataclass(frozen=True, eq=False)
class DesignPower:
    """The power of each kind of trial of a design.

    Attributes:
        models: their names.
        measured: what people are calibrated to.
        calibration: the people and items of simulated experiments.
        groups: how many groups are simulated.
        participants: in each group.
        alpha: false discovery rate.
        units: what tests take as random.
        smallest_effect: the smallest difference of accuracies that matters.
        scopes: what each kind of trial shows by itself, and all together (`overall`).
        smaller: scope → trials a group that it would have in a smaller experiment → how often the
            favourite is significantly better, averaged over all comparisons: least and most.
        sizes: scope → experiments of other sizes: half and twice the people in a group, half and
            twice the groups, with items of their own.
        reach: scope → what its family of signed-rank tests can find, whatever people answer.
        precision: scope → how exactly differences of two models are measured.
    """

    models: tuple[str, ...]
    measured: MeasuredPeople
    calibration: CalibratedPeople
    groups: int
    participants: int
    alpha: float
    units: Units
    smallest_effect: float
    scopes: Mapping[Scope, Power]
    smaller: Mapping[Scope, Mapping[int, tuple[float, float]]]
    sizes: Mapping[Scope, Sequence[Power]]
    reach: Mapping[Scope, Reach]
    precision: Mapping[Scope, Precision]

    @property
    def as_measured(self) -> bool:
        """True if people follow all models as in a pilot; else each model in turn is planted."""
        return any(AS_MEASURED in power.populations for power in self.scopes.values())

    @property
    def cautions(self) -> tuple[str, ...]:
        """Limits of the tests, and of the pilot."""
        pilot = (ARTIFICIAL_PILOT,) * self.measured.simulated
        if self.units == "crossed":
            return (*pilot, crossed_instead(self.groups))
        return (*pilot, *family_cautions(self.reach.items(), self.units, self.alpha))

    def to_frame(self) -> DataFrame:
        """A row for each scope, population and comparison; see `power_table`."""
        return frame_of(power_table(self))


def design_power(
    trials: Iterable[Trial],
    table: ScoreTable,
    *,
    measured: MeasuredPeople | None = None,
    groups: int | None = None,
    participants: int = 10,
    simulations: int = 1000,
    alpha: float = FALSE_DISCOVERY_RATE,
    smallest_effect: float = SMALLEST_EFFECT,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> DesignPower:
    """Simulate experiments with new people and new items, by kind of trial.

    Args:
        trials: a design's.
        table: scores of all the trials' sentences under the models to be compared; catch trials
            need none.
        measured: what simulated people are calibrated to, by kind of trial; by default experiment 1
            of the 2023 study.
        groups: see `simulate_power`.
        participants: see `simulate_power`.
        simulations: see `simulate_power`.
        alpha: see `simulate_power`.
        smallest_effect: the smallest difference of accuracies that matters.
        seed: see `simulate_power`.
        progress: told how many of how many simulations are done.

    Raises:
        InputError: a sentence or model has no scores, there are fewer than two models or no trials
            but catch trials, a ceiling is impossible, or a number is.
    """
    if len(table.models) < 2:
        raise InputError(
            "Power is simulated for two or more models; there are scores of "
            f"{', '.join(table.models)}. Score the trials under all models to be compared."
        )
    if not 0 < smallest_effect < 1:
        raise InputError(
            "The smallest effect of interest is a difference of accuracies between 0 and 1, not "
            f"{smallest_effect:g}."
        )
    measured = measured or MeasuredPeople()
    preferences = preferences_by_scope(trials, table)
    calibration = calibrate(preferences, measured)
    designed = 1 + int(preferences.every.groups.max())
    groups = designed if groups is None else groups
    # A kind of trials compares the models that it has trials of.
    of_scopes = {scope: preferences.of_scope(scope) for scope in preferences.evaluates}
    kinds = {scope: with_trials(trials_) for scope, trials_ in of_scopes.items()}
    kinds = {scope: kind for scope, kind in kinds.items() if len(kind.models) > 1}
    if not kinds:
        raise InputError("No kind of trials evaluates two models, so that none can be compared.")
    populations_of = {
        scope: [
            people
            for people in calibration.populations[scope]
            if people.name in (AS_MEASURED, *kind.models)
        ]
        for scope, kind in kinds.items()
    }
    # Each kind of trial as planned; with fewer trials a group; with other numbers of groups and of
    # people. Averaged over all comparisons and populations, these need fewer simulations.
    n_populations = max(map(len, populations_of.values()))
    fewer = max(1, simulations // (4 * min(4, n_populations)))
    plans = [
        _Plan(scope, None, groups_, people, simulations if as_planned else fewer)
        for scope in kinds
        for groups_, people in _sizes(groups, participants)
        for as_planned in [(groups_, people) == (groups, participants)]
    ]
    plans += [
        _Plan(scope, trials_, groups, participants, fewer)
        for scope, kind in kinds.items()
        for trials_ in _fewer_trials(kind)
    ]
    reaches: dict[tuple[int, int], dict[Scope, Reach]] = {}
    results: dict[_Plan, Power] = {}
    for done, plan in enumerate(plans):
        if progress is not None:
            progress(done, len(plans))
        kind = kinds[plan.scope]
        populations: Sequence[Population] = populations_of[plan.scope]
        size = plan.groups, plan.participants
        if size not in reaches:
            reaches[size] = {s: family_reach(k, *size, alpha) for s, k in kinds.items()}
        if plan.trials is not None:
            kind, populations = _thinned(kind, populations, plan.trials, seed)
        results[plan] = simulate_power(
            kind,
            populations,
            groups=plan.groups,
            participants=plan.participants,
            simulations=plan.simulations,
            alpha=alpha,
            units=suited_units(reaches[size].values()),
            seed=seed,
        )
    planned = {
        plan.scope: power
        for plan, power in results.items()
        if (plan.trials, plan.groups, plan.participants) == (None, groups, participants)
    }
    return DesignPower(
        table.models,
        measured,
        calibration,
        groups,
        participants,
        alpha,
        suited_units(reaches[groups, participants].values()),
        smallest_effect,
        planned,
        {
            scope: {
                plan.trials: power.range_better
                for plan, power in results.items()
                if plan.scope is scope and plan.trials is not None
            }
            for scope in kinds
        },
        {
            scope: [
                power
                for plan, power in results.items()
                if plan.scope is scope and plan.trials is None and power is not planned[scope]
            ]
            for scope in kinds
        },
        reaches[groups, participants],
        {
            scope: measure_precision(
                kind, populations_of[scope], participants=participants, seed=seed
            )
            for scope, kind in kinds.items()
        },
    )


@dataclass(frozen=True)
class _Plan:
    """An experiment to simulate; `trials` of a group, None: all."""

    scope: Scope
    trials: int | None
    groups: int
    participants: int
    simulations: int


def _sizes(groups: int, participants: int) -> list[tuple[int, int]]:
    """Groups and participants in each: as planned, and half and twice as many of either."""
    people = [n for n in (participants // 2, 2 * participants) if n]
    more = [n for n in (groups // 2, 2 * groups) if n]
    return [
        (groups, participants),
        *((groups, n) for n in people),
        *((n, participants) for n in more),
    ]


def _fewer_trials(comparisons: TrialPreferences) -> list[int]:
    least = int(np.bincount(comparisons.groups).min())
    return sorted({least // share for share in _SHARES} - {0})


def _thinned(
    kind: TrialPreferences, populations: Sequence[Population], trials: int, seed: int
) -> tuple[TrialPreferences, list[Population]]:
    rows = thinned(kind, trials, seed=seed)
    return thin(kind, trials, seed=seed), [people.of_trials(rows) for people in populations]


def power_table(power: DesignPower) -> dict[str, list[Any]]:
    """A row for each scope, population, and model that is compared with another.

    `people` is the planted model, whose comparisons alone are listed, with distant and with close
    `rivals`, or `AS_MEASURED`.
    `significantly_better` is how often the test is significant in favour of `model`; `first` how
    often that is the model with the highest accuracy, empty where it is not expected to be.
    """
    rows = [
        (
            str(scope),
            people,
            result.rivals[p],
            model,
            other,
            float(result.accuracy[p, i]),
            float(result.accuracy[p, j]),
            float(result.better[p, i, j]),
            float(result.first[p]) if i == result.favourites[p] else "",
        )
        for scope, result in power.scopes.items()
        for p, people in enumerate(result.populations)
        for i, model in enumerate(result.models)
        if people in (model, AS_MEASURED)
        for j, other in enumerate(result.models)
        if i != j
    ]
    return {name: [row[place] for row in rows] for place, name in enumerate(_COLUMNS)}


def size_table(power: DesignPower) -> dict[str, list[Any]]:
    """A row for each scope and size of the experiment, as planned first.

    Rates have a low and a high end: with a planted model, by what is assumed of its rivals.
    `significantly_better` is an average over comparisons of the favourite with another model. What
    follows `first` is of one crossed test at .05 of two models that differ by as much, or do not.
    """
    rows = [
        (
            str(scope),
            size.groups,
            size.participants,
            size.groups * size.participants,
            size.units,
            *size.range_better,
            *size.range_first,
            *("" if np.isnan(x) else x for x in single_test(power, scope, size)),
        )
        for scope, planned in power.scopes.items()
        for size in (planned, *power.sizes[scope])
    ]
    return {name: [row[place] for row in rows] for place, name in enumerate(_SIZE_COLUMNS)}


def single_test(power: DesignPower, scope: Scope, size: Power) -> tuple[float, ...]:
    """Standard error, detectable difference, the effect, and how often it, or none, is shown."""
    precision, counts = power.precision[scope], (size.groups, size.participants)
    return (
        precision.standard_error(*counts),
        precision.detectable(*counts),
        power.smallest_effect,
        precision.power(power.smallest_effect, *counts),
        precision.equivalence(power.smallest_effect, *counts),
    )
