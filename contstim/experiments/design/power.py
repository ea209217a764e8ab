"""Statistical power of a design: what experiments with new people and new items would show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.design.crossed_tests import contrast_variances, products
from contstim.experiments.design.discoveries import (
    family_reach,
    person_agreements,
    significantly_better,
    suited_units,
)
from contstim.experiments.design.precision import Precision
from contstim.experiments.design.simulated import TrialPreferences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.experiments.analysis.effects import Units
    from contstim.experiments.design.population import Population

_AT_ONCE = 500_000  # simulated answers in memory
_FOR_PRECISION = 100  # experiments that tell how much items, people and answers vary


@dataclass(frozen=True, eq=False)
class Power:
    """Power in one scope, for each population that people and items are drawn from.

    Rates are shares of simulated experiments; their standard error is at most
    1 / (2 · sqrt(simulations)).

    Attributes:
        models: their names.
        populations: their names: each model in turn, or `AS_MEASURED`.
        rivals: of each population, whether rivals are `DISTANT` or `CLOSE`; "" as measured.
        favourites: (n_populations,) place of the model that predicts people best: the planted one.
        accuracy: (n_populations, n_models) expected share of choices that a model predicts on its
            own trials; a model's tie counts one half, nan where it has no trials.
        better: (n_populations, n_models, n_models) how often the first model is significantly
            better than the second.
        first: (n_populations,) how often the favourite has the highest accuracy with all trials; a
            place shared by k counts 1/k.
        first_by_trials: (n_populations, n_trials) the same with the first 1, 2, … trials, model
            pairs taken as evenly as possible. Where any model has no trial yet, nobody comes first.
        simulations: how many experiments were simulated for each population.
        units: what the tests take as random.
        groups: how many.
        participants: in each group.
    """

    models: tuple[str, ...]
    populations: tuple[str, ...]
    rivals: tuple[str, ...]
    favourites: IntArray
    accuracy: FloatArray
    better: FloatArray
    first: FloatArray
    first_by_trials: FloatArray
    simulations: int
    units: Units
    groups: int
    participants: int

    @property
    def parts(self) -> tuple[Power, ...]:
        """The same by what is assumed of rivals, where both is."""
        places = [
            [place for place, rivals in enumerate(self.rivals) if rivals == assumed]
            for assumed in dict.fromkeys(self.rivals)
        ]
        return tuple(
            replace(
                self,
                populations=tuple(self.populations[place] for place in of_part),
                rivals=tuple(self.rivals[place] for place in of_part),
                favourites=self.favourites[of_part],
                accuracy=self.accuracy[of_part],
                better=self.better[of_part],
                first=self.first[of_part],
                first_by_trials=self.first_by_trials[of_part],
            )
            for of_part in places
        )

    @property
    def range_better(self) -> tuple[float, float]:
        """The least and the most of `mean_better`, by what is assumed of rivals."""
        rates = [part.mean_better for part in self.parts]
        return min(rates), max(rates)

    @property
    def range_first(self) -> tuple[float, float]:
        """The least and the most of how often the favourite comes first, likewise."""
        rates = [float(part.first.mean()) for part in self.parts]
        return min(rates), max(rates)

    @property
    def mean_better(self) -> float:
        """Share of comparisons of the favourite with others that become significant for it."""
        places = np.arange(len(self.populations))
        return float(self.better[places, self.favourites].sum() / len(places)) / (
            len(self.models) - 1
        )

    def trials_needed(self, rate: float) -> int | None:
        """From how many trials on the favourite comes first that often, on average; or None."""
        reached = self.first_by_trials.mean(axis=0) >= rate
        below = np.flatnonzero(~reached)
        needed = int(below[-1]) + 2 if len(below) else 1
        return needed if needed <= len(reached) else None


def simulate_power(
    comparisons: TrialPreferences,
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
        comparisons: of one scope.
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
    for what, number in counts.items():
        if number is not None and number < 1:
            raise InputError(f"Power needs 1 or more {what}, not {number}.")
    study = _Study.of(comparisons, groups)
    if units is None:
        units = suited_units([family_reach(comparisons, len(study.places), participants, alpha)])
    rng = np.random.default_rng(seed)
    rates = [
        _rates(study, population, participants, simulations, alpha, units, rng)
        for population in populations
    ]
    favourites, accuracy, better, curves = map(np.array, zip(*rates, strict=True))
    return Power(
        comparisons.models,
        tuple(population.name for population in populations),
        tuple(population.rivals for population in populations),
        favourites,
        accuracy,
        better,
        curves[:, -1],
        curves,
        simulations,
        units,
        len(study.places),
        participants,
    )


def measure_precision(
    comparisons: TrialPreferences,
    populations: Sequence[Population],
    *,
    participants: int = 10,
    pair: tuple[int, int] | None = None,
    seed: int = 0,
) -> Precision:
    """Variation of items, people and single answers, by what crossed tests say of experiments.

    Args:
        comparisons: of one scope.
        populations: of the same trials.
        participants: in each group.
        pair: places of two models; by default the mean over all pairs.
        seed: of the simulation.
    """
    study, rng = _Study.of(comparisons, None), np.random.default_rng(seed)
    n_models, people = len(study.comparisons.models), max(2, participants)
    pairs = list(combinations(range(n_models), 2)) if pair is None else [pair]
    has = np.array([own.any(axis=0) for own in study.own])  # (n_groups, n_models)
    pairs = [(i, j) for i, j in pairs if (has[:, i] & has[:, j]).any()]
    if not pairs:
        return Precision(*np.full((6, 1), np.nan))
    first, second = np.array(pairs).T
    groups_of = (has[:, first] & has[:, second]).sum(axis=0)  # (n_pairs,)
    parts, freedoms = [], []
    for population in populations:
        rows = study.draw(-(-_FOR_PRECISION // len(populations)), rng)
        of_groups = [
            products(
                person_agreements(population.answers(of_group, people, rng), study.sides(of_group)),
                np.tile(own.T, (2, 1)),
            )
            for of_group, own in zip(rows, study.own, strict=True)
        ]
        contrasts = contrast_variances(of_groups, first, second)
        of_means = contrasts.variance * groups_of
        parts.append(np.stack([of_means, contrasts.people, contrasts.answers]).mean(axis=1))
        freedoms.append(contrasts.freedom)
    # Of a group's mean; people and their answers are seen in it too: what they add is taken away.
    of_means, of_people, answers = np.mean(parts, axis=0)
    items = of_means - of_people / people
    used = np.array([_used(study.own, i, j) for i, j in pairs])
    items[(groups_of == 1) & (used < 1)] = np.nan  # one trial: nothing tells how items scatter
    even = Precision(
        np.maximum(0.0, items),
        np.maximum(0.0, of_people - answers),
        answers,
        used,
        np.ones(len(pairs)),
        np.array([_widest(study, i, j) for i, j in pairs]),
    )
    median = np.median(np.concatenate(freedoms), axis=0)
    normal = [even.freedom(int(n), people)[k] for k, n in enumerate(groups_of)]
    share = median / np.array(normal)
    return replace(even, evenness=np.clip(np.nan_to_num(share, nan=1.0), 0.0, 1.0))


def _used(owns: Sequence[BoolArray], i: int, j: int) -> float:
    """Trials of a group that evaluate either of two models, less what their means use up."""
    used = [
        int((own[:, i] | own[:, j]).sum()) - 1 - int((own[:, i] != own[:, j]).any())
        for own in owns
        if own[:, i].any() and own[:, j].any()
    ]
    return float(np.mean(used))


def _widest(study: _Study, i: int, j: int) -> float:
    """The largest difference that two models' accuracies can have, whatever people choose."""
    widest = []
    for places, own in zip(study.places, study.own, strict=True):
        if own[:, i].any() and own[:, j].any():
            shares = study.sides(places)[:, [i, j]] * own[:, [i, j]] / own[:, [i, j]].sum(axis=0)
            # A choice moves the difference by half its shares' difference, to either side.
            widest.append(np.abs(shares[:, 0] - shares[:, 1]).sum() / 2)
    return float(np.mean(widest))


@dataclass(frozen=True, eq=False)
class _Study:
    """The places of an experiment's trials, and which trials of the design may stand there.

    Attributes:
        comparisons: the design's trials.
        places: for each group, (n_trials,) the design's trial at each of its places.
        kinds: (n_design_trials,) trials of one kind set the same models against each other.
    """

    comparisons: TrialPreferences
    places: tuple[IntArray, ...]
    kinds: IntArray

    @classmethod
    def of(cls, comparisons: TrialPreferences, groups: int | None) -> _Study:
        """Of as many groups as asked for: beyond the design's, its groups begin anew."""
        designed = int(comparisons.groups.max()) + 1
        places = [
            np.flatnonzero(comparisons.groups == group % designed)
            for group in range(groups or designed)
        ]
        places = [of_group for of_group in places if len(of_group)]
        same = np.column_stack([comparisons.strata, comparisons.evaluates])
        kinds = np.unique(same, axis=0, return_inverse=True)[1].ravel()
        return cls(comparisons, tuple(places), kinds)

    @property
    def own(self) -> list[BoolArray]:
        """For each group, (n_trials, n_models) which trials evaluate which model."""
        return [self.comparisons.evaluates[places] for places in self.places]

    def draw(self, experiments: int, rng: np.random.Generator) -> list[IntArray]:
        """For each group, (n_experiments, n_trials): at each place a trial of the same kind."""
        # Trials sorted by kind; the trials of a kind begin at its start, and are so many.
        by_kind = np.argsort(self.kinds, kind="stable")
        counts = np.bincount(self.kinds)
        starts = np.cumsum(counts) - counts
        drawn = []
        for places in self.places:
            of_places = self.kinds[places]
            numbers = rng.integers(counts[of_places], size=(experiments, len(places)))
            drawn.append(by_kind[starts[of_places] + numbers])
        return drawn

    def sides(self, rows: IntArray) -> FloatArray:
        """(…, n_models): which sentence models prefer; see `person_agreements`.

        Args:
            rows: (…), trials of the design.
        """
        sides: FloatArray = np.sign(self.comparisons.differences)[rows]
        return sides


def _rates(
    study: _Study,
    population: Population,
    participants: int,
    simulations: int,
    alpha: float,
    units: Units,
    rng: np.random.Generator,
) -> tuple[int, FloatArray, FloatArray, FloatArray]:
    """Favourite, expected accuracies, significant differences, and the curve of first places."""
    models, evaluates = study.comparisons.models, study.comparisons.evaluates
    # A model agrees with probability p where it prefers sentence_2, 1 - p where sentence_1, and 1/2
    # where it ties: 1/2 + side * (p - 1/2) in all three cases.
    p = population.choice_probabilities()
    with np.errstate(invalid="ignore"):
        of_trials = (p - 0.5) @ (study.sides(np.arange(len(p))) * evaluates)
        accuracy = 0.5 + of_trials / evaluates.sum(axis=0)
    planted = population.name in models
    favourite = models.index(population.name) if planted else int(np.nanargmax(accuracy))
    own, order = study.own, np.concatenate(study.places)
    better, curve = np.zeros((len(models), len(models))), np.zeros(len(order))
    width = 2 * len(models) if units == "crossed" else 1
    size = max(1, _AT_ONCE // (len(order) * participants * width))
    for start in range(0, simulations, size):
        rows = study.draw(min(size, simulations - start), rng)
        answers = [population.answers(of_group, participants, rng) for of_group in rows]
        sides = [study.sides(of_group) for of_group in rows]
        better += significantly_better(answers, sides, own, units, alpha)
        # The curve: every experiment, (block, n_trials), in an order of its own, and the accuracies
        # of all models on its first 1, 2, … trials, (block, n_trials, n_models). Rounding lets
        # equal accuracies tie, whatever the order of their sums.
        orders = _orders(study.comparisons.strata[order], len(rows[0]), rng)[..., None]
        shares = np.concatenate([given.mean(axis=1) for given in answers], axis=1) - 0.5
        agreed = shares[..., None] * np.concatenate(sides, axis=1) * evaluates[order]
        trials = np.cumsum(evaluates[order][orders[..., 0]], axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            summed = np.cumsum(np.take_along_axis(agreed, orders, axis=1), axis=1)
            accuracies = np.round(summed / trials, 12)
        best = accuracies.max(axis=2, keepdims=True)  # nan where a model has no trial yet
        winners = accuracies == best
        curve += (winners[..., favourite] / np.maximum(winners.sum(axis=2), 1)).sum(axis=0)
    return favourite, accuracy, better / simulations, curve / simulations


def thin(comparisons: TrialPreferences, per_group: int, *, seed: int = 0) -> TrialPreferences:
    """A smaller experiment: the trials that `thinned` keeps.

    Raises:
        InputError: a group has fewer trials, or none would be left.
    """
    rows = thinned(comparisons, per_group, seed=seed)
    return TrialPreferences(
        comparisons.models,
        comparisons.differences[rows],
        comparisons.evaluates[rows],
        comparisons.groups[rows],
        comparisons.strata[rows],
    )


def thinned(comparisons: TrialPreferences, per_group: int, *, seed: int = 0) -> IntArray:
    """The places of so many trials of each group, model pairs taken as evenly as possible.

    Raises:
        InputError: a group has fewer trials, or none would be left.
    """
    least = int(np.bincount(comparisons.groups).min())
    if not 1 <= per_group <= least:
        raise InputError(f"A group keeps 1 to {least} trials of this scope, not {per_group}.")
    order = _orders(comparisons.strata, 1, np.random.default_rng(seed))[0]
    groups = comparisons.groups[order]
    return np.concatenate([order[groups == group][:per_group] for group in np.unique(groups)])


def _orders(strata: IntArray, simulations: int, rng: np.random.Generator) -> IntArray:
    """Random orders of trials, (n_simulations, n_trials), strata as evenly as possible."""
    # The k trials of a stratum get the places (0 + u) / k, (1 + u) / k, … at random, in every
    # simulation anew: strata of one size come round by round, larger ones as much more often.
    keys = rng.random((simulations, len(strata)))
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        keys[:, members] += np.argsort(np.argsort(keys[:, members], axis=1), axis=1)
        keys[:, members] /= len(members)
    return np.argsort(keys, axis=1)
