"""Which differences between models simulated experiments discover, tested as `analyze` does."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis.inference import reach, signed_rank_p_values

if TYPE_CHECKING:
    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.experiments.analysis.inference import Reach
    from contstim.experiments.design.simulated import TrialPreferences


def group_means(
    study: TrialPreferences, votes: IntArray, participants: int
) -> tuple[FloatArray, FloatArray]:
    """Accuracies and lower noise ceilings, both (n_experiments, n_groups, n_models).

    nan where a group has no trial of a model, and for the ceilings of groups of one.

    Args:
        study: the trials.
        votes: (n_experiments, n_trials), how many participants prefer sentence_2.
        participants: in each group.
    """
    n_groups, n_models = int(study.groups.max()) + 1, len(study.models)
    # Sums over a group's trials as one product for all experiments, (n_experiments, n_trials) by
    # (n_trials, n_groups * n_models); t: trials, g: groups, m: models. A model's agreement with a
    # share v of votes for sentence_2 is 1/2 + sign * (v - 1/2), so that a tie counts one half.
    of_group = np.eye(n_groups)[study.groups]  # (n_trials, n_groups)
    evaluates = study.evaluates.astype(np.float64)
    signs = np.sign(study.differences) * evaluates
    trials = of_group.T @ evaluates
    # sided: each trial's sign in its own group's columns; owned: 1 in these where it evaluates
    sided = np.einsum("tg,tm->tgm", of_group, signs).reshape(len(signs), -1)
    owned = np.einsum("tg,tm->tgm", of_group, evaluates).reshape(len(signs), -1)
    shape = (len(votes), n_groups, n_models)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = 0.5 + ((votes / participants - 0.5) @ sided).reshape(shape) / trials
        ceilings = (agreement(participants)[votes] @ owned).reshape(shape) / trials
    return means, ceilings


def person_means(study: TrialPreferences, answers: BoolArray) -> tuple[FloatArray, FloatArray]:
    """The same for each participant of a single group, (n_experiments, participants, n_models).

    Args:
        study: the trials.
        answers: (n_experiments, participants, n_trials), whether each prefers sentence_2.
    """
    participants = answers.shape[1]
    sides = np.where(answers, 1.0, -1.0)
    # Each against the sum of the others' sides, as in `accuracy_lower`.
    agrees = (1 + np.sign(sides.sum(axis=1, keepdims=True) - sides) * sides) / 2
    if participants == 1:
        agrees[:] = np.nan
    evaluates = study.evaluates.astype(np.float64)
    signs = np.sign(study.differences) * evaluates
    with np.errstate(invalid="ignore", divide="ignore"):
        trials = evaluates.sum(axis=0)
        return 0.5 + sides @ signs / trials / 2, agrees @ evaluates / trials


def agreement(participants: int) -> FloatArray:
    """By number of votes for sentence_2: mean agreement of a person with the others' majority."""
    if participants == 1:
        return np.full(2, np.nan)
    # All that matters is how many voted alike: of v who prefer sentence_2, each has v - 1 others on
    # their side among the participants - 1, and those who prefer sentence_1 likewise.
    votes = np.arange(participants + 1)
    half = (participants - 1) / 2

    def with_others(same: IntArray) -> FloatArray:
        agree: FloatArray = (np.sign(same - half) + 1) / 2
        return agree

    other = participants - votes
    total = votes * with_others(votes - 1) + other * with_others(other - 1)
    return np.asarray(total / participants, np.float64)


def significantly_better(
    means: FloatArray, ceilings: FloatArray, planted: int, alpha: float
) -> BoolArray:
    """(n_experiments, n_models): whether the planted model is significantly better.

    Args:
        means: accuracies, (n_experiments, n_units, n_models).
        ceilings: lower noise ceilings, same shape.
        planted: place of the planted model.
        alpha: false discovery rate.
    """
    # The family of `every_contrast`: all pairs of models, then each model against its ceiling.
    n_models = means.shape[-1]
    pairs = list(combinations(range(n_models), 2))
    first, second = np.array(pairs).T
    differences = np.concatenate([means[..., first] - means[..., second], means - ceilings], axis=2)
    significant = discoveries(differences, alpha)
    ahead = np.nansum(differences, axis=1)
    better = np.zeros((len(means), n_models), dtype=np.bool_)
    # Only the pairs of the planted model count; a pair's difference is its first less its second.
    for place, (i, j) in enumerate(pairs):
        if planted in (i, j):
            wins = ahead[:, place] > 0 if planted == i else ahead[:, place] < 0
            better[:, j if planted == i else i] = significant[:, place] & wins
    return better


def family_reach(study: TrialPreferences, groups: int, participants: int, alpha: float) -> Reach:
    """What the tests of `significantly_better` can find, whatever people answer.

    Args:
        study: the trials.
        groups: how many groups there are; those beyond the design's see its trials again.
        participants: in each group; they are compared where there is one group.
        alpha: false discovery rate.
    """
    designed = int(study.groups.max()) + 1
    # has: (designed groups, n_models), whether any of a group's trials evaluates a model; a test of
    # two models has the units that have trials of both.
    has = np.zeros((designed, len(study.models)), dtype=np.int64)
    np.maximum.at(has, study.groups, study.evaluates.astype(np.int64))
    units = has[np.arange(groups) % designed] * (participants if groups == 1 else 1)
    first, second = np.array(list(combinations(range(len(study.models)), 2))).T
    pairs = np.minimum(units[:, first], units[:, second]).sum(axis=0)
    return reach([*pairs, *(units.sum(axis=0) if participants > 1 else [])], alpha)


def discoveries(differences: FloatArray, alpha: float) -> BoolArray:
    """Which of a family of paired comparisons are significant, (n_experiments, n_comparisons).

    Two-sided tests (`signed_rank_p_values`) over the units, and Benjamini-Hochberg over the
    comparisons of each experiment. Comparisons without any unit are not part of the family.

    Args:
        differences: (n_experiments, n_units, n_comparisons), nan where a unit is not compared: in
            all experiments alike.
        alpha: false discovery rate; adjusted p-values below it are significant.
    """
    from scipy.stats import false_discovery_control

    n_experiments, n_units, n_comparisons = differences.shape
    # One row a test, (n_experiments * n_comparisons, n_units), for all experiments at once.
    tests = np.moveaxis(differences, 1, 2).reshape(-1, n_units)
    p_values = signed_rank_p_values(tests).reshape(n_experiments, n_comparisons)
    tested = ~np.isnan(p_values).any(axis=0)
    significant = np.zeros(p_values.shape, dtype=np.bool_)
    if tested.any():
        significant[:, tested] = false_discovery_control(p_values[:, tested], axis=1) < alpha
    return significant
