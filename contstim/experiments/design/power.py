"""Power of a design: expected results of experiments with new people and new items."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis import SMALLEST_EFFECT, families
from contstim.experiments.design.calibration import MeasuredPeople, Populations, calibrate
from contstim.experiments.design.population import (
    ANSWERS,
    AS_MEASURED,
    even_orders,
    preferences_by_scope,
)
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
    from contstim.experiments.design.population import Population, TrialPreferences
    from contstim.experiments.design.simulated_tests import Precision
    from contstim.files.arrays import FloatArray
    from contstim.items.scores import ScoreTable
    from contstim.items.stimuli import Trial

_DIVISORS = (8, 4, 2)  # smaller experiments have an eighth, a quarter or a half of the trials
ARTIFICIAL_PILOT = (
    "The participants of the pilot are artificial: these numbers follow from the simulation, "
    "not from human data."
)
_MAX_ANSWERS = 500_000  # maximum number of simulated answers in memory


@dataclass(frozen=True, eq=False)
class PopulationPower:
    """Power for people and items from one population.

    Rates are shares of simulated experiments. A planted model is the model that people are assumed
    to follow most; its rivals are the other models.

    Attributes:
        rivals: `DISTANT` or `CLOSE` for a planted model (see `population`); otherwise empty.
        favourite: index of the planted model; without a planted model, index of the model with the
            highest expected accuracy.
        accuracy: (n_models,), expected share of choices that a model predicts, on the trials that
            evaluate it. A tie (two sentences with equal scores of the model) counts one half. The
            value is nan for a model without trials.
        better: (n_models, n_models), rate at which the row's model is significantly better than the
            column's.
        first_by_trials: (n_trials,), rate at which the favourite has the highest accuracy on the
            first 1, 2, … trials. Trials are in random orders that mix model pairs evenly. An
            experiment counts 1/k if the favourite is one of k models with the highest accuracy. It
            counts 0 as long as its first trials do not evaluate every model.
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
    """Power in one scope (set of trials), for each population.

    Rates are shares of simulated experiments; their standard error is at most 1 / (2 ·
    sqrt(simulations)).

    Attributes:
        populations: results for each planted model (a model that simulated people follow), or for
            people who follow each model as much as the people of a pilot study.
        units: random factors of the tests: `groups`, or `crossed` for participants and items.
    """

    models: tuple[str, ...]
    populations: tuple[PopulationPower, ...]
    simulations: int
    units: Units
    groups: int
    participants: int

    @property
    def parts(self) -> tuple[Power, ...]:
        """The results for distant and for close rivals; without rivals, all results as one part."""
        return tuple(
            replace(self, populations=tuple(p for p in self.populations if p.rivals == assumed))
            for assumed in dict.fromkeys(population.rivals for population in self.populations)
        )

    @property
    def mean_better(self) -> float:
        """Rate at which the favourite is significantly better, averaged over all other models."""
        shares = np.array([people.better[people.favourite] for people in self.populations])
        return float(shares.sum() / len(shares)) / (len(self.models) - 1)

    @property
    def mean_first_by_trials(self) -> FloatArray:
        """Mean of `first_by_trials` over populations, (n_trials,)."""
        return np.asarray(np.mean([people.first_by_trials for people in self.populations], axis=0))

    @property
    def range_better(self) -> tuple[float, float]:
        """Minimum and maximum of `mean_better` over `parts`."""
        rates = [part.mean_better for part in self.parts]
        return min(rates), max(rates)

    @property
    def range_first(self) -> tuple[float, float]:
        """Minimum and maximum over `parts`, of the mean of `first` over the part's populations."""
        rates = [float(np.mean([p.first for p in part.populations])) for part in self.parts]
        return min(rates), max(rates)

    def trials_needed(self, rate: float) -> int | None:
        """Return the smallest n such that every number of trials from n on gives at least `rate`.

        The values of `mean_first_by_trials` are compared with `rate`. None means that all trials
        together do not reach `rate`.
        """
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
    """Draw people and items of each population, and analyse the people's answers.

    Every experiment has new people and new items. Each trial of a group is replaced by a random
    trial of the design with the same condition and models. Item effects, which the models do not
    predict, are drawn again. Every experiment is analysed as in `analyze`. The tests of all pairs
    of models, and of all models against the lower noise ceiling, are one family. The p-values of a
    family are corrected by the method of Benjamini and Hochberg. Tests are signed-rank tests over
    group means, or crossed tests. If no trial of a group evaluates a model, the model's tests leave
    out the group. Participants who are alone in their group have no noise ceiling.

    By default, `groups` is the design's number of groups. Additional groups see new items of the
    same kinds as the design's items. With fewer groups, some of the design's trials are left out.
    By default, `units` are those that `analyze` selects for this scope.

    Raises:
        InputError: if there are no participants, groups or simulations.
    """
    counts = {"participants": participants, "simulations": simulations, "groups": groups}
    for name, number in counts.items():
        if number is not None and number < 1:
            raise InputError(f"`{name}` must be at least 1, got {number}.")
    rows_by_group = trials.rows_by_group(groups)
    if units is None:
        units = units_for([family_limits(trials, len(rows_by_group), participants)])
    rng = np.random.default_rng(seed)
    models, evaluates = trials.models, trials.evaluates
    masks = [evaluates[group_rows] for group_rows in rows_by_group]
    order = np.concatenate(rows_by_group)
    width = 2 * len(models) if units == "crossed" else 1
    size = max(1, _MAX_ANSWERS // (len(order) * participants * width))

    def simulated(people: Population) -> PopulationPower:
        # A person prefers sentence_2 with probability p. A model that prefers sentence_2 (side 1)
        # agrees with probability p. A model that prefers sentence_1 (side -1) agrees with
        # probability 1 - p. A tie (side 0) counts 1/2. All are 1/2 + side * (p - 1/2).
        with np.errstate(invalid="ignore"):
            trial_sums = (people.choice_probabilities() - 0.5) @ (trials.sides * evaluates)
            accuracy = 0.5 + trial_sums / evaluates.sum(axis=0)
        planted = people.name in models
        favourite = models.index(people.name) if planted else int(np.nanargmax(accuracy))
        better, curve = np.zeros((len(models), len(models))), np.zeros(len(order))
        for start in range(0, simulations, size):
            rows = trials.draw(rows_by_group, min(size, simulations - start), rng)
            answers = [people.answers(group_rows, participants, rng) for group_rows in rows]
            sides = [trials.sides[group_rows] for group_rows in rows]
            better += significantly_better(answers, sides, masks, units)
            # For `first_by_trials`: random orders of trials, (n_experiments, n_trials), and
            # accuracies on the first 1, 2, … trials, (n_experiments, n_trials, n_models).
            # Accuracies are rounded, because equal sums may differ in the last bit.
            orders = even_orders(trials.strata[order], len(rows[0]), rng)[..., None]
            means = [group_answers.mean(axis=1) for group_answers in answers]
            shares = np.concatenate(means, axis=1) - 0.5
            agreed = shares[..., None] * np.concatenate(sides, axis=1) * evaluates[order]
            counts = np.cumsum(evaluates[order][orders[..., 0]], axis=1)
            with np.errstate(invalid="ignore", divide="ignore"):
                sums = np.cumsum(np.take_along_axis(agreed, orders, axis=1), axis=1)
                accuracies = np.round(sums / counts, 12)
            best = accuracies.max(axis=2, keepdims=True)  # nan as long as a model has no trial
            winners = accuracies == best
            curve += (winners[..., favourite] / np.maximum(winners.sum(axis=2), 1)).sum(axis=0)
        rates = better / simulations, curve / simulations
        return PopulationPower(people.name, people.rivals, favourite, accuracy, *rates)

    results = tuple(map(simulated, populations))
    return Power(models, results, simulations, units, len(rows_by_group), participants)


@dataclass(frozen=True, eq=False)
class ScopePower:
    """The power of one kind of trial, or of all kinds together.

    Attributes:
        planned: power with the design's numbers of groups and participants.
        sizes: power with half and twice the number of people in a group, and with half and twice
            the number of groups. Each group has different items.
        smaller: trials per group in a smaller experiment → `Power.range_better`.
    """

    planned: Power
    sizes: tuple[Power, ...]
    smaller: Mapping[int, tuple[float, float]]
    detectability: Detectability
    precision: Precision

    def single_test(self, size: Power, effect: float) -> dict[str, float]:
        """Return results of one crossed test (of people and items) for this size, by column."""
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
        populations: people and items of simulated experiments; see `calibrate`.
        unreached: scope and name of each population for which no simulation has both the measured
            noise ceiling and the measured accuracy. The nearest possible values are used instead.
        scopes: power of each kind of trial, and of all kinds together (`overall`).
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
        """Whether people follow all models as in a pilot; otherwise they follow a planted model."""
        return any(
            x.name == AS_MEASURED for of_scope in self.populations.values() for x in of_scope
        )

    @property
    def cautions(self) -> tuple[str, ...]:
        """Warnings about a pilot with artificial participants, and about limits of the tests."""
        limits = [(scope, of_scope.detectability) for scope, of_scope in self.scopes.items()]
        rate = families.FALSE_DISCOVERY_RATE
        cautions = [*families.family_cautions(limits, self.units, rate)]
        if self.units == "crossed":
            cautions = [families.crossed_instead(self.groups)]
        return (*[ARTIFICIAL_PILOT] * self.measured.simulated, *cautions)

    def to_frame(self) -> DataFrame:
        """Return a row for each scope, population and comparison; see `power_table`."""
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

    By default, people are calibrated to experiment 1 of the 2023 study. `smallest_effect` is the
    smallest difference of accuracies that matters. `groups`, `participants`, `simulations` and
    `seed` are those of `simulate_power`, which is called for each kind of trials and each size of
    the experiment. Before each call, `progress` receives the numbers of completed and of all calls.

    Raises:
        InputError: if a sentence or model has no scores; if no kind of trials evaluates two models;
            if a ceiling is out of range; or if a number is too small or too large.
    """
    if len(table.models) < 2:
        raise InputError(
            f"Power needs scores of at least 2 models, got scores of {', '.join(table.models)}. "
            "Score the trials under all models of the comparison."
        )
    if not 0 < smallest_effect < 1:
        raise InputError(f"`smallest_effect` must be between 0 and 1, got {smallest_effect:g}.")
    measured = measured or MeasuredPeople()
    preferences = preferences_by_scope(trials, table)
    all_populations, unreached = calibrate(preferences, measured)
    groups = preferences.n_groups if groups is None else groups
    kinds = {scope: preferences.of_scope(scope).with_trials() for scope in preferences.scopes}
    kinds = {scope: kind for scope, kind in kinds.items() if len(kind.models) > 1}
    if not kinds:
        raise InputError(
            "No kind of trials evaluates two models, so no models can be compared. Use a design "
            "with trials for at least two models."
        )
    populations = {
        scope: [x for x in all_populations[scope] if x.name in (AS_MEASURED, *kind.models)]
        for scope, kind in kinds.items()
    }
    # (number of groups, participants in each group). The planned size comes first. Sizes with half
    # or twice the participants, then with half or twice the groups, follow.
    sizes = [(groups, participants)]
    sizes += [(groups, n) for n in (participants // 2, 2 * participants) if n]
    sizes += [(n, participants) for n in (groups // 2, 2 * groups) if n]
    limits = {
        size: {scope: family_limits(kind, *size) for scope, kind in kinds.items()} for size in sizes
    }
    units = {size: units_for(of_scopes.values()) for size, of_scopes in limits.items()}
    done, total = count(), sum(len(sizes) + len(_smaller_sizes(kind)) for kind in kinds.values())
    # Other sizes need fewer simulations, because their results are averaged over all comparisons
    # and populations
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
        planned, *other_sizes = (
            simulated(kind, people, *x) for x in zip(sizes, numbers, strict=True)
        )
        for per_group in _smaller_sizes(kind):
            rows = kind.thinned_rows(per_group, seed=seed)
            scoped_people = [population.of_trials(rows) for population in people]
            smaller[per_group] = simulated(
                kind.of_trials(rows), scoped_people, sizes[0], fewer
            ).range_better
        precision = measure_precision(kind, people, participants=participants, seed=seed)
        return ScopePower(planned, tuple(other_sizes), smaller, limits[sizes[0]][scope], precision)

    scopes = {scope: of_scope(scope, kind) for scope, kind in kinds.items()}
    of_design = (groups, participants, units[sizes[0]], smallest_effect, scopes)
    return DesignPower(table.models, measured, all_populations, unreached, *of_design)


def _smaller_sizes(trials: TrialPreferences) -> list[int]:
    return sorted({trials.min_trials // share for share in _DIVISORS} - {0})
