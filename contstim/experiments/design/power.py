"""Statistical power of a design: what it would show if one of the models were human."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.design.discoveries import group_means, person_means, significantly_better
from contstim.experiments.design.simulated import TrialPreferences, choice_probabilities

if TYPE_CHECKING:
    from contstim.arrays import FloatArray, IntArray

_AT_ONCE = 2_000_000  # simulated answers in memory


@dataclass(frozen=True, eq=False)
class Power:
    """What to expect of one scope when each model in turn is planted as the human.

    Rates are shares of simulated experiments; their standard error is at most
    1 / (2 · sqrt(simulations)).

    Attributes:
        models: their names, planted or compared.
        accuracy: (planted, model) expected share of trials in which model and person agree, over
            the model's own trials; a model's tie counts one half, nan where it has no trials.
        better: (planted, model) how often the planted model is significantly better than the other.
        first: (planted,) how often the planted model has the highest accuracy with all trials; a
            place shared by k counts 1/k.
        first_by_trials: (planted, n_trials) the same with the first 1, 2, … trials, model pairs
            taken as evenly as possible. Where any model has no trial yet, nobody comes first.
        simulations: how many experiments were simulated for each planted model.
    """

    models: tuple[str, ...]
    accuracy: FloatArray
    better: FloatArray
    first: FloatArray
    first_by_trials: FloatArray
    simulations: int

    @property
    def mean_better(self) -> float:
        """Share of all (planted, other model) comparisons that become significant."""
        return float(self.better.sum() / (len(self.models) * (len(self.models) - 1)))

    def trials_needed(self, rate: float) -> int | None:
        """From how many trials on the planted model comes first that often, on average; or None."""
        reached = self.first_by_trials.mean(axis=0) >= rate
        below = np.flatnonzero(~reached)
        needed = int(below[-1]) + 2 if len(below) else 1
        return needed if needed <= len(reached) else None


def simulate_power(
    comparisons: TrialPreferences,
    noise: FloatArray,
    *,
    groups: int | None = None,
    participants: int = 10,
    simulations: int = 1000,
    alpha: float = 0.05,
    seed: int = 0,
) -> Power:
    """Plant each model in turn as the human, and analyse what its simulated participants answer.

    Every simulated experiment is analysed as `analyze` does: models are compared through the means
    of groups over their own trials (of participants, where there is one group) by Wilcoxon
    signed-rank tests, in one family of all model pairs and all models against the lower noise
    ceiling, after Benjamini and Hochberg. A group in which a model has no trial is left out of its
    tests; participants who are alone in their group have no noise ceiling.

    Args:
        comparisons: of one scope.
        noise: (n_models,) or (n_trials, n_models) of the participants where that model is planted,
            nats.
        groups: groups of participants; more than the design has see its trials again, fewer leave
            trials out. By default the design's.
        participants: in each group.
        simulations: experiments for each planted model.
        alpha: false discovery rate; adjusted p-values below it are significant.
        seed: of the simulation.

    Raises:
        InputError: no participants, groups or simulations.
    """
    counts = {"participants": participants, "simulations": simulations, "groups": groups}
    for what, number in counts.items():
        if number is not None and number < 1:
            raise InputError(f"Power needs 1 or more {what}, not {number}.")
    # As many groups as asked for: beyond the design's, its groups begin anew. rows: (n_trials,) the
    # design's trials that are simulated, some several times; numbers: (n_trials,) their groups.
    designed = int(comparisons.groups.max()) + 1
    places = [np.flatnonzero(comparisons.groups == g % designed) for g in range(groups or designed)]
    rows, numbers = np.concatenate(places), np.repeat(range(len(places)), [*map(len, places)])
    study = _rows(comparisons, rows, numbers)
    noise = np.broadcast_to(noise, comparisons.differences.shape)[rows]
    rng = np.random.default_rng(seed)
    planted_results = [
        _plant(study, planted, noise[:, planted], participants, simulations, alpha, rng)
        for planted in range(len(study.models))
    ]
    accuracy, better, curves = map(np.array, zip(*planted_results, strict=True))
    return Power(study.models, accuracy, better, curves[:, -1], curves, simulations)


def thin(comparisons: TrialPreferences, per_group: int, *, seed: int = 0) -> TrialPreferences:
    """A smaller experiment: the trials that `thinned` keeps.

    Raises:
        InputError: a group has fewer trials, or none would be left.
    """
    rows = thinned(comparisons, per_group, seed=seed)
    return _rows(comparisons, rows, comparisons.groups[rows])


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


def _rows(comparisons: TrialPreferences, rows: IntArray, groups: IntArray) -> TrialPreferences:
    return TrialPreferences(
        comparisons.models,
        comparisons.differences[rows],
        comparisons.evaluates[rows],
        groups,
        comparisons.strata[rows],
    )


def _plant(
    study: TrialPreferences,
    planted: int,
    noise: FloatArray,
    participants: int,
    simulations: int,
    alpha: float,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Expected accuracies, significant comparisons and the curve of first places of one model."""
    p = choice_probabilities(study.differences[:, planted], noise)  # (n_trials,)
    signs = np.sign(study.differences) * study.evaluates  # (n_trials, n_models)
    # A model agrees with probability p where it prefers sentence_2, 1 - p where sentence_1, and 1/2
    # where it ties: 1/2 + sign * (p - 1/2) in all three cases.
    with np.errstate(invalid="ignore"):
        accuracy = 0.5 + (p - 0.5) @ signs / study.evaluates.sum(axis=0)
    alone = not study.groups.any()  # one group: its participants are what tests compare
    size = max(1, _AT_ONCE // (signs.size * (participants if alone else 1)))
    blocks = [min(size, simulations - done) for done in range(0, simulations, size)]
    better, curve = np.zeros(len(study.models)), np.zeros(len(p))
    for block in blocks:
        if alone:
            answers = rng.random((block, participants, len(p))) < p
            votes = answers.sum(axis=1)
            means, ceilings = person_means(study, answers)
        else:
            votes = rng.binomial(participants, p, size=(block, len(p)))
            means, ceilings = group_means(study, votes, participants)
        better += significantly_better(means, ceilings, planted, alpha).sum(axis=0)
        # The curve: every experiment, (block, n_trials), in an order of its own, and the accuracies
        # of all models on its first 1, 2, … trials, (block, n_trials, n_models). Rounding lets
        # equal accuracies tie, whatever the order of their sums.
        orders = _orders(study.strata, block, rng)
        ordered = np.take_along_axis(votes / participants - 0.5, orders, axis=1)[..., None]
        trials = np.cumsum(study.evaluates[orders], axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            accuracies = np.round(np.cumsum(ordered * signs[orders], axis=1) / trials, 12)
        best = accuracies.max(axis=2, keepdims=True)  # nan where a model has no trial yet
        winners = accuracies == best
        curve += (winners[..., planted] / np.maximum(winners.sum(axis=2), 1)).sum(axis=0)
    return accuracy, better / simulations, curve / simulations


def _orders(strata: IntArray, simulations: int, rng: np.random.Generator) -> IntArray:
    """Random orders of trials, (n_simulations, n_trials): no stratum twice before all once."""
    # A key's whole part is the round in which a trial comes, its fraction the place within: the k
    # trials of a stratum get the rounds 0 to k - 1 at random, in every simulation anew.
    keys = rng.random((simulations, len(strata)))
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        keys[:, members] += np.argsort(np.argsort(keys[:, members], axis=1), axis=1)
    return np.argsort(keys, axis=1)
