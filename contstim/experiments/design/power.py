"""Power of a design: what experiments with new people and new items would show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis import SMALLEST_EFFECT, families
from contstim.experiments.design.calibration import MeasuredPeople, calibrate
from contstim.experiments.design.golan2023 import ANSWERS
from contstim.experiments.design.population import AS_MEASURED, even_orders, preferences_by_scope
from contstim.experiments.design.simulated_tests import (
    family_limits,
    measure_precision,
    significantly_better,
    units_for,
)
from contstim.files.tables import frame_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pandas import DataFrame

    from contstim.experiments.analysis.effects import Units
    from contstim.experiments.analysis.families import Detectability
    from contstim.experiments.analysis.ratings import Scope
    from contstim.experiments.design.calibration import Populations
    from contstim.experiments.design.population import Population, TrialPreferences
    from contstim.experiments.design.simulated_tests import Precision
    from contstim.files.arrays import FloatArray, IntArray
    from contstim.items.scores import ScoreTable
    from contstim.items.stimuli import Trial

_SHARES = (8, 4, 2)
ARTIFICIAL_PILOT = (
    "Participants of the pilot are artificial: these numbers say what follows from its simulation, "
    "not what people do."
)
_AT_ONCE = 500_000  # simulated answers in memory


@dataclass(frozen=True, eq=False)
class PopulationPower:
    """Power where people and items are drawn from one population; rates are shares of experiments.

    Attributes:
        name: of the population: a planted model, or `AS_MEASURED`.
        rivals: whether rivals are `DISTANT` or `CLOSE`; "" as measured.
        favourite: index of the model that predicts people best: the planted one.
        accuracy: (n_models,) expected share of choices that a model predicts on its own trials; a
            model's tie counts one half, nan where it has no trials.
        better: (n_models, n_models) how often the first model is significantly better than the
            second.
        first_by_trials: (n_trials,) how often the favourite has the highest accuracy with the first
            1, 2, … trials, model pairs taken as evenly as possible; a place shared by k counts 1/k.
            Where any model has no trial yet, nobody comes first.
    """

    name: str
    rivals: str
    favourite: int
    accuracy: FloatArray
    better: FloatArray
    first_by_trials: FloatArray

    @property
    def first(self) -> float:
        """Rate at which the favourite has the highest accuracy with all trials."""
        return float(self.first_by_trials[-1])


@dataclass(frozen=True, eq=False)
class Power:
    """Power in one scope, for each population that people and items are drawn from.

    Rates are shares of simulated experiments; their standard error is at most
    1 / (2 · sqrt(simulations)).

    Attributes:
        models: their names.
        populations: each model planted in turn, or people as measured.
        simulations: how many experiments were simulated for each population.
        units: what the tests take as random.
        groups: how many.
        participants: in each group.
    """

    models: tuple[str, ...]
    populations: tuple[PopulationPower, ...]
    simulations: int
    units: Units
    groups: int
    participants: int

    @property
    def parts(self) -> tuple[Power, ...]:
        """The same by what is assumed of rivals, where both is."""
        return tuple(
            replace(self, populations=tuple(p for p in self.populations if p.rivals == assumed))
            for assumed in dict.fromkeys(population.rivals for population in self.populations)
        )

    @property
    def mean_better(self) -> float:
        """Share of comparisons of the favourite with others that become significant for it."""
        shares = np.array([people.better[people.favourite] for people in self.populations])
        return float(shares.sum() / len(shares)) / (len(self.models) - 1)

    @property
    def mean_first_by_trials(self) -> FloatArray:
        """(n_trials,) how often the favourite comes first, on average."""
        mean: FloatArray = np.mean([people.first_by_trials for people in self.populations], axis=0)
        return mean

    @property
    def range_better(self) -> tuple[float, float]:
        """The least and the most of `mean_better`, by what is assumed of rivals."""
        rates = [part.mean_better for part in self.parts]
        return min(rates), max(rates)

    @property
    def range_first(self) -> tuple[float, float]:
        """The least and the most of how often the favourite comes first, likewise."""
        rates = [float(np.mean([p.first for p in part.populations])) for part in self.parts]
        return min(rates), max(rates)

    def trials_needed(self, rate: float) -> int | None:
        """From how many trials on the favourite comes first that often, on average; or None."""
        below = np.flatnonzero(self.mean_first_by_trials < rate)
        needed = int(below[-1]) + 2 if len(below) else 1
        return needed if needed <= len(self.mean_first_by_trials) else None


def simulate_power(
    trials: TrialPreferences,
    populations: Sequence[Population],
    *,
    groups: int | None = None,
    participants: int = 10,
    simulations: int = 1000,
    units: Units | None = None,
    seed: int = 0,
) -> Power:
    """Draw people and items of each population, and analyse what they answer.

    Every experiment has new people, and new items: each trial of a group is replaced by one of the
    design's that sets the same models against each other, drawn at random, and what people agree on
    beyond the models is drawn anew. Every experiment is analysed as `analyze` does, in one family
    of all model pairs and all models against the lower noise ceiling, after Benjamini and Hochberg:
    by signed-rank tests over the means of groups, or by crossed tests. A group in which a model has
    no trial is left out of its tests; participants who are alone in their group have no noise
    ceiling.

    Args:
        trials: of one scope.
        populations: of the same trials.
        groups: groups of participants; more than the design has see items like its own, fewer leave
            trials out. By default the design's.
        participants: in each group.
        simulations: experiments for each population.
        units: what tests take as random; by default as `analyze` has it for this scope alone.
        seed: of the simulation.

    Raises:
        InputError: no participants, groups or simulations.
    """
    counts = {"participants": participants, "simulations": simulations, "groups": groups}
    for name, number in counts.items():
        if number is not None and number < 1:
            raise InputError(f"`{name}` must be 1 or more, not {number}.")
    places = trials.places(groups)
    if units is None:
        units = units_for([family_limits(trials, len(places), participants)])
    rng = np.random.default_rng(seed)
    of_populations = tuple(
        _simulate(trials, places, population, participants, simulations, units, rng)
        for population in populations
    )
    return Power(trials.models, of_populations, simulations, units, len(places), participants)


def _simulate(
    trials: TrialPreferences,
    places: Sequence[IntArray],
    people: Population,
    participants: int,
    simulations: int,
    units: Units,
    rng: np.random.Generator,
) -> PopulationPower:
    models, evaluates = trials.models, trials.evaluates
    # A model agrees with probability p where it prefers sentence_2, 1 - p where sentence_1, and 1/2
    # where it ties: 1/2 + side * (p - 1/2) in all three cases.
    with np.errstate(invalid="ignore"):
        of_trials = (people.choice_probabilities() - 0.5) @ (trials.sides * evaluates)
        accuracy = 0.5 + of_trials / evaluates.sum(axis=0)
    planted = people.name in models
    favourite = models.index(people.name) if planted else int(np.nanargmax(accuracy))
    own, order = [evaluates[of_group] for of_group in places], np.concatenate(places)
    better, curve = np.zeros((len(models), len(models))), np.zeros(len(order))
    width = 2 * len(models) if units == "crossed" else 1
    size = max(1, _AT_ONCE // (len(order) * participants * width))
    for start in range(0, simulations, size):
        rows = trials.draw(places, min(size, simulations - start), rng)
        answers = [people.answers(of_group, participants, rng) for of_group in rows]
        sides = [trials.sides[of_group] for of_group in rows]
        better += significantly_better(answers, sides, own, units)
        # The curve: every experiment, (block, n_trials), in an order of its own, and the accuracies
        # of all models on its first 1, 2, … trials, (block, n_trials, n_models). Rounding lets
        # equal accuracies tie, whatever the order of their sums.
        orders = even_orders(trials.strata[order], len(rows[0]), rng)[..., None]
        shares = np.concatenate([given.mean(axis=1) for given in answers], axis=1) - 0.5
        agreed = shares[..., None] * np.concatenate(sides, axis=1) * evaluates[order]
        counts = np.cumsum(evaluates[order][orders[..., 0]], axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            summed = np.cumsum(np.take_along_axis(agreed, orders, axis=1), axis=1)
            accuracies = np.round(summed / counts, 12)
        best = accuracies.max(axis=2, keepdims=True)  # nan where a model has no trial yet
        winners = accuracies == best
        curve += (winners[..., favourite] / np.maximum(winners.sum(axis=2), 1)).sum(axis=0)
    rates = better / simulations, curve / simulations
    return PopulationPower(people.name, people.rivals, favourite, accuracy, *rates)


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

    def single_test(self, size: Power, effect: float) -> dict[str, float]:
        """One crossed test of a difference, by the names that its numbers have in tables."""
        precision, counts = self.precision, (size.groups, size.participants)
        return {
            "standard_error": precision.standard_error(*counts),
            "detectable_difference": precision.detectable(*counts),
            "smallest_effect": effect,
            "detects_smallest_effect": precision.power(effect, *counts),
            "shows_equivalence": precision.equivalence(effect, *counts),
        }


@dataclass(frozen=True, eq=False)
class DesignPower:
    """The power of each kind of trial of a design.

    Attributes:
        models: their names.
        measured: what people are calibrated to.
        populations: the people and items of simulated experiments; see `calibrate`.
        unreached: those who could not be had as measured.
        groups: how many groups are simulated.
        participants: in each group.
        units: what tests take as random.
        smallest_effect: the smallest difference of accuracies that matters.
        scopes: what each kind of trial shows by itself, and all together (`overall`).
    """

    models: tuple[str, ...]
    measured: MeasuredPeople
    populations: Populations
    unreached: list[tuple[Scope, str]]
    groups: int
    participants: int
    units: Units
    smallest_effect: float
    scopes: Mapping[Scope, ScopePower]

    @property
    def as_measured(self) -> bool:
        """True if people follow all models as in a pilot; else each model in turn is planted."""
        return any(
            x.name == AS_MEASURED for of_scope in self.populations.values() for x in of_scope
        )

    @property
    def cautions(self) -> tuple[str, ...]:
        """Limits of the tests, and of the pilot."""
        pilot = (ARTIFICIAL_PILOT,) * self.measured.simulated
        if self.units == "crossed":
            return (*pilot, families.crossed_instead(self.groups))
        limits = [(scope, of_scope.detectability) for scope, of_scope in self.scopes.items()]
        return (
            *pilot,
            *families.family_cautions(limits, self.units, families.FALSE_DISCOVERY_RATE),
        )

    def to_frame(self) -> DataFrame:
        """A row for each scope, population and comparison; see `power_table`."""
        from contstim.experiments.design.power_report import power_table

        return frame_of(power_table(self))


def design_power(
    trials: Iterable[Trial],
    table: ScoreTable,
    *,
    measured: MeasuredPeople | None = None,
    groups: int | None = None,
    participants: int = ANSWERS,
    simulations: int = 1000,
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
        raise InputError(f"`smallest_effect` must be between 0 and 1, not {smallest_effect:g}.")
    measured = measured or MeasuredPeople()
    preferences = preferences_by_scope(trials, table)
    every, unreached = calibrate(preferences, measured)
    groups = preferences.every.designed if groups is None else groups
    # A kind of trials compares the models that it has trials of.
    kinds = {scope: preferences.of_scope(scope).with_trials() for scope in preferences.evaluates}
    kinds = {scope: kind for scope, kind in kinds.items() if len(kind.models) > 1}
    if not kinds:
        raise InputError("No kind of trials evaluates two models, so that none can be compared.")
    populations = {
        scope: [x for x in every[scope] if x.name in (AS_MEASURED, *kind.models)]
        for scope, kind in kinds.items()
    }
    # Groups, and participants in each: as planned, and half and twice as many of either.
    sizes = [(groups, participants)]
    sizes += [(groups, n) for n in (participants // 2, 2 * participants) if n]
    sizes += [(n, participants) for n in (groups // 2, 2 * groups) if n]
    limits = {
        size: {scope: family_limits(kind, *size) for scope, kind in kinds.items()} for size in sizes
    }
    units = {size: units_for(of_scopes.values()) for size, of_scopes in limits.items()}
    done, total = count(), sum(len(sizes) + len(_fewer_trials(kind)) for kind in kinds.values())
    # Averaged over all comparisons and populations, other sizes need fewer simulations.
    fewer = max(1, simulations // (4 * min(4, max(map(len, populations.values())))))

    def simulated(
        kind: TrialPreferences, people: Sequence[Population], size: tuple[int, int], n: int
    ) -> Power:
        progress(next(done), total)
        sized = {"groups": size[0], "participants": size[1], "simulations": n}
        return simulate_power(kind, people, **sized, units=units[size], seed=seed)

    def of_scope(scope: Scope, kind: TrialPreferences) -> ScopePower:
        people, smaller = populations[scope], {}
        numbers = (simulations, *[fewer] * (len(sizes) - 1))
        planned, *others = (simulated(kind, people, *x) for x in zip(sizes, numbers, strict=True))
        for per_group in _fewer_trials(kind):
            rows = kind.thinned(per_group, seed=seed)
            some = [each.of_trials(rows) for each in people]
            smaller[per_group] = simulated(kind.of_trials(rows), some, sizes[0], fewer).range_better
        precision = measure_precision(kind, people, participants=participants, seed=seed)
        return ScopePower(planned, tuple(others), smaller, limits[sizes[0]][scope], precision)

    scopes = {scope: of_scope(scope, kind) for scope, kind in kinds.items()}
    of_design = (groups, participants, units[sizes[0]], smallest_effect, scopes)
    return DesignPower(table.models, measured, every, unreached, *of_design)


def _fewer_trials(trials: TrialPreferences) -> list[int]:
    """Trials of each group in smaller experiments."""
    return sorted({trials.least // share for share in _SHARES} - {0})
