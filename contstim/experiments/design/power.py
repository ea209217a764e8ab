"""Statistical power of a design: what experiments with new people and new items would show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.crossed import Side, jackknife_of_means
from contstim.experiments.analysis.evaluation import ACCURACY
from contstim.experiments.analysis.families import detectability, false_discovery
from contstim.experiments.analysis.intervals import uncertainty_of
from contstim.experiments.analysis.signed_ranks import signed_rank_p_values
from contstim.experiments.design.population import even_orders

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.experiments.analysis.crossed import GroupJackknife
    from contstim.experiments.analysis.effects import Units
    from contstim.experiments.analysis.families import Detectability
    from contstim.experiments.design.population import Population, TrialPreferences

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
        shares = np.array(
            [population.better[population.favourite] for population in self.populations]
        )
        return float(shares.sum() / len(shares)) / (len(self.models) - 1)

    @property
    def mean_first_by_trials(self) -> FloatArray:
        """(n_trials,) how often the favourite comes first, on average."""
        curves = [population.first_by_trials for population in self.populations]
        mean: FloatArray = np.mean(curves, axis=0)
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
    alpha: float = 0.05,
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
        alpha: false discovery rate; adjusted p-values below it are significant.
        units: what tests take as random; by default as `analyze` has it for this scope alone.
        seed: of the simulation.

    Raises:
        InputError: no participants, groups or simulations.
    """
    counts = {"participants": participants, "simulations": simulations, "groups": groups}
    for name, number in counts.items():
        if number is not None and number < 1:
            raise InputError(f"{name} must be 1 or more, not {number}.")
    places = trials.places(groups)
    if units is None:
        units = units_for([family_limits(trials, len(places), participants, alpha)])
    rng = np.random.default_rng(seed)
    of_populations = tuple(
        _simulate(trials, places, population, participants, simulations, alpha, units, rng)
        for population in populations
    )
    return Power(trials.models, of_populations, simulations, units, len(places), participants)


def _simulate(
    trials: TrialPreferences,
    places: Sequence[IntArray],
    people: Population,
    participants: int,
    simulations: int,
    alpha: float,
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
        better += significantly_better(answers, sides, own, units, alpha)
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


def significantly_better(
    answers: Sequence[BoolArray],
    sides: Sequence[FloatArray],
    own: Sequence[BoolArray],
    units: Units,
    alpha: float,
) -> FloatArray:
    """(n_models, n_models): in how many experiments the first model is better than the second.

    Args:
        answers: of each group, (n_experiments, n_people, n_trials): whether each prefers
            sentence_2.
        sides: of each group, (n_experiments, n_trials, n_models): 1 where a model prefers
            sentence_2, -1 where sentence_1, 0 for a tie.
        own: of each group, (n_trials, n_models), which trials evaluate which model.
        units: groups, or people and items crossed.
        alpha: false discovery rate.
    """
    n_models, experiments = own[0].shape[1], len(answers[0])
    # The family of `every_contrast`: all pairs of models, then each model against its ceiling
    pairs = list(combinations(range(n_models), 2))
    if units == "crossed":
        groups, shares = group_jackknives(answers, sides, own), np.ones(len(own))
        family = [Side(*pair) for pair in pairs] + [Side(m, ceiling=True) for m in range(n_models)]
        found = [uncertainty_of(groups, shares, ACCURACY.lowest, side) for side in family]
        tests = [(one.estimate, one.p_values()) for one in found]
        differences, p_values = (
            np.stack([np.broadcast_to(x, experiments) for x in kind], axis=1)
            for kind in zip(*tests, strict=True)
        )
    else:
        # (n_experiments, n_groups, 2 * n_models): of models, then of their ceilings
        means = np.stack(list(map(group_means, answers, sides, own)), axis=1)
        first, second = np.array([*pairs, *((m, n_models + m) for m in range(n_models))]).T
        apart = np.moveaxis(means[..., first] - means[..., second], 1, 2)
        differences = np.nansum(apart, axis=2)
        p_values = signed_rank_p_values(apart.reshape(-1, len(own))).reshape(differences.shape)
    significant = false_discovery(p_values) < alpha
    better = np.zeros((n_models, n_models))
    for contrast, (i, j) in enumerate(pairs):
        ahead = np.sign(differences[significant[:, contrast], contrast])
        better[i, j], better[j, i] = (ahead > 0).sum(), (ahead < 0).sum()
    return better


def group_jackknives(
    answers: Sequence[BoolArray], sides: Sequence[FloatArray], own: Sequence[BoolArray]
) -> list[GroupJackknife]:
    """Accuracies of many experiments with each trial left out; see `significantly_better`."""
    groups, items = [], 0
    for given, of_models, mask in zip(answers, sides, own, strict=True):
        chosen, with_others = _with_others(given)
        agreements = (1 + chosen[:, :, None] * of_models.swapaxes(1, 2)[:, None]) / 2
        numbers = items + np.arange(len(mask))
        groups.append(jackknife_of_means(agreements, with_others[:, :, None], mask.T, numbers))
        items += len(mask)
    return groups


def group_means(answers: BoolArray, sides: FloatArray, own: BoolArray) -> FloatArray:
    """Accuracies of a group and its lower noise ceilings, (n_experiments, 2 * n_models).

    nan where the group has no trial of a model, and for the ceilings of groups of one. Args are
    those of `significantly_better`, of one group.
    """
    chosen, with_others = (x.mean(axis=1)[..., None] for x in _with_others(answers))
    with np.errstate(invalid="ignore", divide="ignore"):
        means = [
            (agreement * own).sum(axis=1) / own.sum(axis=0)
            for agreement in ((1 + chosen * sides) / 2, with_others)
        ]
    return np.concatenate(means, axis=1)


def _with_others(answers: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Choices, 1 for sentence_2, -1 for sentence_1, and their agreement with the others' majority.

    (n_experiments, n_people, n_trials) each; nan for people who are alone.
    """
    chosen = np.where(answers, 1.0, -1.0)
    # Each against the sum of the others' sides, as in `accuracy_lower`.
    others = chosen.sum(axis=1, keepdims=True) - chosen
    agreement = (1 + np.sign(others) * chosen) / 2
    return chosen, agreement if answers.shape[1] > 1 else np.full_like(agreement, np.nan)


def family_limits(
    trials: TrialPreferences, groups: int, participants: int, alpha: float
) -> Detectability:
    """Limits of what signed-rank tests over groups can find, whatever people answer.

    Args:
        trials: of one scope.
        groups: how many groups there are; those beyond the design's have trials like its own.
        participants: in each group; those who are alone have no noise ceiling.
        alpha: false discovery rate.
    """
    # has: (designed groups, n_models), whether any of a group's trials evaluates a model; a test of
    # two models has the units that have trials of both.
    has = np.zeros((trials.designed, len(trials.models)), dtype=np.int64)
    np.maximum.at(has, trials.groups, trials.evaluates.astype(np.int64))
    units = has[np.arange(groups) % trials.designed]
    pairs = [units[:, i] @ units[:, j] for i, j in combinations(range(len(trials.models)), 2)]
    return detectability([*pairs, *(units.sum(axis=0) if participants > 1 else [])], alpha)


def units_for(families: Iterable[Detectability]) -> Units:
    """Groups, where tests of groups can find something in every scope; else people and items."""
    return "crossed" if any(family.hopeless for family in families) else "groups"
