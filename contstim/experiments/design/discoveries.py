"""Differences between models that simulated experiments discover, tested as `analyze` does."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis.inference import false_discovery, reach, signed_rank_p_values
from contstim.experiments.design.crossed_tests import (
    contrast_variances,
    crossed_p_values,
    products,
)
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.experiments.analysis.effects import Units
    from contstim.experiments.analysis.inference import Reach
    from contstim.experiments.design.simulated import TrialPreferences


def family(n_models: int) -> tuple[IntArray, IntArray]:
    """The family of `every_contrast`: all pairs of models, then each model against its ceiling.

    Returns:
        The columns that are compared, (n_contrasts,) each: those of models come first, those of
        their noise ceilings then.
    """
    pairs = list(combinations(range(n_models), 2))
    pairs += [(model, n_models + model) for model in range(n_models)]
    first, second = np.array(pairs).T
    return first, second


def person_agreements(answers: BoolArray, sides: FloatArray) -> FloatArray:
    """Trial by trial, with each model and with the majority of the others in the group.

    Args:
        answers: (n_experiments, n_people, n_trials), whether each prefers sentence_2.
        sides: (n_experiments, n_trials, n_models): 1 where a model prefers sentence_2, -1 where
            sentence_1, 0 for a tie.

    Returns:
        (n_experiments, n_people, n_trials, 2 * n_models): 0 to 1; the majority's is the same for
        every model, nan for people who are alone.
    """
    chosen = np.where(answers, 1.0, -1.0)
    with_models = (1 + chosen[..., None] * sides[:, None]) / 2
    # Each against the sum of the others' sides, as in `accuracy_lower`.
    others = chosen.sum(axis=1, keepdims=True) - chosen
    with_others = (1 + np.sign(others) * chosen) / 2 if answers.shape[1] > 1 else np.nan * chosen
    repeated = np.repeat(with_others[..., None], sides.shape[-1], axis=-1)
    return np.concatenate([with_models, repeated], axis=-1)


def group_means(
    votes: IntArray, participants: int, sides: FloatArray, own: BoolArray
) -> FloatArray:
    """Accuracies of a group and its lower noise ceilings, (n_experiments, 2 * n_models).

    nan where the group has no trial of a model, and for the ceilings of groups of one.

    Args:
        votes: (n_experiments, n_trials), how many participants prefer sentence_2.
        participants: in the group.
        sides: (n_experiments, n_trials, n_models); see `person_agreements`.
        own: (n_trials, n_models), which trials evaluate which model.
    """
    share = votes / participants - 0.5
    with np.errstate(invalid="ignore", divide="ignore"):
        # A model's agreement with a share v of votes for sentence_2 is 1/2 + side * (v - 1/2), so
        # that a tie counts one half; t: trials, m: models.
        values = 0.5 + np.einsum("et,etm->em", share, sides * own) / own.sum(axis=0)
        ceilings = agreement(participants)[votes] @ own.astype(np.float64) / own.sum(axis=0)
    return np.concatenate([np.where(own.any(axis=0), values, np.nan), ceilings], axis=1)


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
    answers: Sequence[BoolArray],
    sides: Sequence[FloatArray],
    own: Sequence[BoolArray],
    units: Units,
    alpha: float,
) -> FloatArray:
    """(n_models, n_models): in how many experiments the first model is better than the second.

    Args:
        answers: of each group; see `person_agreements`.
        sides: of each group.
        own: of each group; see `group_means`.
        units: groups, or people and items crossed.
        alpha: false discovery rate.
    """
    participants, n_models = answers[0].shape[1], own[0].shape[1]
    first, second = family(n_models)
    if units == "crossed":
        parts = [
            products(person_agreements(given, side), np.tile(mask.T, (2, 1)))
            for given, side, mask in zip(answers, sides, own, strict=True)
        ]
        contrasts = contrast_variances(parts, first, second)
        differences, p_values = contrasts.difference, crossed_p_values(contrasts)
    else:
        means = np.stack(
            [
                group_means(given.sum(axis=1), participants, side, mask)
                for given, side, mask in zip(answers, sides, own, strict=True)
            ],
            axis=1,
        )
        apart = means[..., first] - means[..., second]  # (n_experiments, n_groups, n_contrasts)
        differences = np.nansum(apart, axis=1)
        tests = np.moveaxis(apart, 1, 2).reshape(-1, len(answers))
        p_values = signed_rank_p_values(tests).reshape(differences.shape)
    significant = discoveries(p_values, alpha)
    better = np.zeros((n_models, n_models))
    pairs = second < n_models
    for i, j, discovered, ahead in zip(
        first[pairs],
        second[pairs],
        significant[:, pairs].T,
        differences[:, pairs].T,
        strict=True,
    ):
        better[i, j] = (discovered & (ahead > 0)).sum()
        better[j, i] = (discovered & (ahead < 0)).sum()
    return better


def discoveries(p_values: FloatArray, alpha: float) -> BoolArray:
    """Mask of the significant tests of a family, (n_experiments, n_contrasts).

    Benjamini-Hochberg over the contrasts of each experiment; nan is not part of the family.

    Args:
        p_values: (n_experiments, n_contrasts).
        alpha: false discovery rate; adjusted p-values below it are significant.
    """
    from scipy.stats import false_discovery_control

    # Contrasts that no experiment tests are no part of any family; where only some experiments lack
    # a test, each is adjusted by itself.
    tested = ~np.isnan(p_values).all(axis=0)
    significant = np.zeros(p_values.shape, dtype=np.bool_)
    some = p_values[:, tested]
    if some.size:
        lacking = np.isnan(some).any(axis=1)
        of_tested = np.zeros(some.shape, dtype=np.bool_)
        of_tested[~lacking] = false_discovery_control(some[~lacking], axis=1) < alpha
        for row in np.flatnonzero(lacking):
            of_tested[row] = false_discovery(some[row]) < alpha
        significant[:, tested] = of_tested
    return significant


def family_reach(study: TrialPreferences, groups: int, participants: int, alpha: float) -> Reach:
    """Limits of what signed-rank tests over groups can find, whatever people answer.

    Args:
        study: the trials.
        groups: how many groups there are; those beyond the design's have trials like its own.
        participants: in each group; those who are alone have no noise ceiling.
        alpha: false discovery rate.
    """
    designed = int(study.groups.max()) + 1
    # has: (designed groups, n_models), whether any of a group's trials evaluates a model; a test of
    # two models has the units that have trials of both.
    has = np.zeros((designed, len(study.models)), dtype=np.int64)
    np.maximum.at(has, study.groups, study.evaluates.astype(np.int64))
    units = has[np.arange(groups) % designed]
    first, second = np.array(list(combinations(range(len(study.models)), 2))).T
    pairs = np.minimum(units[:, first], units[:, second]).sum(axis=0)
    return reach([*pairs, *(units.sum(axis=0) if participants > 1 else [])], alpha)


def suited_units(families: Iterable[Reach]) -> Units:
    """Groups, where tests of groups can find something in every scope; else people and items."""
    hopeless = any(family.tests and family.needed is None for family in families)
    return "crossed" if hopeless else "groups"


def crossed_instead(groups: int) -> str:
    """Why so few groups are compared by crossed tests, in a sentence."""
    return (
        f"With {counted(groups, 'group')} signed-rank tests over groups could show nothing, "
        "whatever people answer: contstim analyze compares models by crossed tests instead, which "
        "take people and items as random and speak of both."
    )
