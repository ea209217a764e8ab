"""The power of a whole design: what each kind of trial shows, with more and with fewer of all."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis import SMALLEST_EFFECT
from contstim.experiments.analysis.families import (
    FALSE_DISCOVERY_RATE,
    crossed_instead,
    family_cautions,
)
from contstim.experiments.design.calibration import MeasuredPeople, calibrate
from contstim.experiments.design.population import AS_MEASURED, preferences_by_scope
from contstim.experiments.design.power import family_limits, simulate_power, units_for
from contstim.experiments.design.precision import measure_precision
from contstim.tables import frame_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pandas import DataFrame

    from contstim.experiments.analysis.effects import Units
    from contstim.experiments.analysis.families import Detectability
    from contstim.experiments.analysis.scopes import Scope
    from contstim.experiments.design.calibration import CalibratedPeople
    from contstim.experiments.design.power import Power
    from contstim.experiments.design.precision import Precision
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
class ScopePower:
    """The power of one kind of trial.

    Attributes:
        planned: with the design's numbers.
        sizes: with half and twice the people in a group, and half and twice the groups, with items
            of their own.
        smaller: trials a group in a smaller experiment → how often the favourite is significantly
            better, averaged over all comparisons: least and most.
        detectability: limits of what its family of signed-rank tests can find.
        precision: how exactly differences of two models are measured.
    """

    planned: Power
    sizes: tuple[Power, ...]
    smaller: Mapping[int, tuple[float, float]]
    detectability: Detectability
    precision: Precision

    def single_test(self, size: Power, effect: float) -> tuple[float, ...]:
        """Standard error, detectable difference, effect, and how often it, or none, is shown."""
        precision, counts = self.precision, (size.groups, size.participants)
        return (
            precision.standard_error(*counts),
            precision.detectable(*counts),
            effect,
            precision.power(effect, *counts),
            precision.equivalence(effect, *counts),
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
    """

    models: tuple[str, ...]
    measured: MeasuredPeople
    calibration: CalibratedPeople
    groups: int
    participants: int
    alpha: float
    units: Units
    smallest_effect: float
    scopes: Mapping[Scope, ScopePower]

    @property
    def as_measured(self) -> bool:
        """True if people follow all models as in a pilot; else each model in turn is planted."""
        return any(
            population.name == AS_MEASURED
            for of_scope in self.scopes.values()
            for population in of_scope.planned.populations
        )

    @property
    def cautions(self) -> tuple[str, ...]:
        """Limits of the tests, and of the pilot."""
        pilot = (ARTIFICIAL_PILOT,) * self.measured.simulated
        if self.units == "crossed":
            return (*pilot, crossed_instead(self.groups))
        limits = [(scope, of_scope.detectability) for scope, of_scope in self.scopes.items()]
        return (*pilot, *family_cautions(limits, self.units, self.alpha))

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
    progress: Callable[[int, int], None] = lambda _done, _total: None,
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
        raise InputError(f"smallest_effect must be between 0 and 1, not {smallest_effect:g}.")
    measured = measured or MeasuredPeople()
    preferences = preferences_by_scope(trials, table)
    calibration = calibrate(preferences, measured)
    groups = preferences.every.designed if groups is None else groups
    # A kind of trials compares the models that it has trials of.
    kinds = {scope: preferences.of_scope(scope).with_trials() for scope in preferences.evaluates}
    kinds = {scope: kind for scope, kind in kinds.items() if len(kind.models) > 1}
    if not kinds:
        raise InputError("No kind of trials evaluates two models, so that none can be compared.")
    populations = {
        scope: [x for x in calibration.populations[scope] if x.name in (AS_MEASURED, *kind.models)]
        for scope, kind in kinds.items()
    }
    # Groups, and participants in each: as planned, and half and twice as many of either.
    sizes = [(groups, participants)]
    sizes += [(groups, n) for n in (participants // 2, 2 * participants) if n]
    sizes += [(n, participants) for n in (groups // 2, 2 * groups) if n]
    limits = {
        size: {scope: family_limits(kind, *size, alpha) for scope, kind in kinds.items()}
        for size in sizes
    }
    units = {size: units_for(of_scopes.values()) for size, of_scopes in limits.items()}
    # Averaged over all comparisons and populations, other sizes need fewer simulations.
    fewer = max(1, simulations // (4 * min(4, max(map(len, populations.values())))))
    thinner = {
        scope: sorted({kind.least // share for share in _SHARES} - {0})
        for scope, kind in kinds.items()
    }
    done, total = count(), len(kinds) * len(sizes) + sum(map(len, thinner.values()))

    def simulated(
        scope: Scope, size: tuple[int, int], n: int, per_group: int | None = None
    ) -> Power:
        progress(next(done), total)
        kind, people = kinds[scope], populations[scope]
        if per_group is not None:
            rows = kind.thinned(per_group, seed=seed)
            kind, people = kind.of_trials(rows), [each.of_trials(rows) for each in people]
        return simulate_power(
            kind,
            people,
            groups=size[0],
            participants=size[1],
            simulations=n,
            alpha=alpha,
            units=units[size],
            seed=seed,
        )

    scopes = {}
    for scope, kind in kinds.items():
        planned = simulated(scope, sizes[0], simulations)
        others = tuple(simulated(scope, size, fewer) for size in sizes[1:])
        smaller = {n: simulated(scope, sizes[0], fewer, n).range_better for n in thinner[scope]}
        precision = measure_precision(
            kind, populations[scope], participants=participants, seed=seed
        )
        scopes[scope] = ScopePower(planned, others, smaller, limits[sizes[0]][scope], precision)
    of_design = (groups, participants, alpha, units[sizes[0]], smallest_effect, scopes)
    return DesignPower(table.models, measured, calibration, *of_design)


def power_table(power: DesignPower) -> dict[str, list[Any]]:
    """A row for each scope, population, and model that is compared with another.

    `people` is the planted model, whose comparisons alone are listed, with distant and with close
    `rivals`, or `AS_MEASURED`.
    `significantly_better` is how often the test is significant in favour of `model`; `first` how
    often that is the model with the highest accuracy, empty where it is not expected to be.
    """
    rows = [
        (
            *(str(scope), people.name, people.rivals, model, other),
            *(float(people.accuracy[i]), float(people.accuracy[j])),
            float(people.better[i, j]),
            people.first if i == people.favourite else "",
        )
        for scope, of_scope in power.scopes.items()
        for people in of_scope.planned.populations
        for i, model in enumerate(of_scope.planned.models)
        if people.name in (model, AS_MEASURED)
        for j, other in enumerate(of_scope.planned.models)
        if i != j
    ]
    return dict(zip(_COLUMNS, map(list, zip(*rows, strict=True)), strict=True))


def size_table(power: DesignPower) -> dict[str, list[Any]]:
    """A row for each scope and size of the experiment, as planned first.

    Rates have a low and a high end: with a planted model, by what is assumed of its rivals.
    `significantly_better` is an average over comparisons of the favourite with another model. What
    follows `first` is of one crossed test at .05 of two models that differ by as much, or do not.
    """
    rows = [
        (
            *(str(scope), size.groups, size.participants, size.groups * size.participants),
            *(size.units, *size.range_better, *size.range_first),
            *("" if np.isnan(x) else x for x in of_scope.single_test(size, power.smallest_effect)),
        )
        for scope, of_scope in power.scopes.items()
        for size in (of_scope.planned, *of_scope.sizes)
    ]
    return dict(zip(_SIZE_COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
