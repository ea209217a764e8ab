"""Who agrees with whom: models with models, people with people, and people with rival models."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis.measures import choice_agreement
from contstim.experiments.analysis.scopes import roles
from contstim.stimuli import Condition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contstim.arrays import BoolArray, FloatArray
    from contstim.experiments.analysis.ratings import GroupRatings, Ratings
    from contstim.stimuli import Trial


@dataclass(frozen=True)
class Unanimity:
    """On how many trials of a condition nearly everybody prefers the same sentence."""

    condition: Condition
    trials: int
    near_unanimous: int


@dataclass(frozen=True)
class RolePreference:
    """Preference of people for the synthetic sentence that one model accepts, another rejects."""

    accept: str
    reject: str
    trials: int
    ratings: int
    prefer_synthetic: int


def model_agreement(ratings: Ratings, condition: Condition) -> FloatArray:
    """The share of a condition's trials in which two models prefer the same sentence.

    A tie counts one half. (n_models, n_models), symmetric, 1 on the diagonal; nan without trials.
    """
    signs = [np.sign(g.ratios[:, _of(g, condition)]) for g in ratings.groups]
    preferred = np.concatenate(signs, axis=1)
    n_models, n_trials = preferred.shape  # +1 for sentence_2, -1 for sentence_1, 0 for a tie
    if not n_trials:
        return np.full((n_models, n_models), np.nan)
    # The mean product of two models' signs is the share of agreements less that of disagreements.
    agreement: FloatArray = (1 + preferred @ preferred.T / n_trials) / 2
    np.fill_diagonal(agreement, 1.0)
    return agreement


def dominance(ratings: Ratings, condition: Condition) -> FloatArray:
    """The share of ratings that side with the row's model against the column's.

    Only trials count that were made to set the two against each other. (n_models, n_models); nan
    where there are none. Cells across the diagonal add up to one where the models do disagree.
    """
    n_models = len(ratings.models)
    sums, counts = np.zeros((2, n_models, n_models))
    for group in ratings.groups:
        # (n_models, 1, n_trials) against (n_participants, n_trials), summed over participants
        agreed = choice_agreement(group.ratios[:, None], group.preferences).sum(axis=1)
        for column in np.flatnonzero(_of(group, condition)):
            trial = group.trials[column]
            rivals = [ratings.models.index(name) for name in (trial.model_1, trial.model_2)]
            for side, other in (rivals, rivals[::-1]):
                sums[side, other] += agreed[side, column]
                counts[side, other] += len(group.participants)
    shares: FloatArray = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return shares


def role_preferences(ratings: Ratings) -> tuple[RolePreference, ...]:
    """Synthetic against natural sentences, for each model that accepts and each that rejects."""
    by_roles: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for trial, rated in rated_trials(ratings, Condition.NATURAL_SYNTHETIC):
        counts = len(rated), int((rated > ratings.scale.middle).sum())
        by_roles.setdefault(roles(trial), []).append(counts)
    order = ratings.models.index
    return tuple(
        RolePreference(*models, len(rows), *map(sum, zip(*rows, strict=True)))
        for models, rows in sorted(by_roles.items(), key=lambda item: tuple(map(order, item[0])))
    )


def near_unanimity(ratings: Ratings, share: float = 0.9) -> tuple[Unanimity, ...]:
    """Number of trials of each condition that have at least `share` of people on one side."""
    rows = []
    for condition in Condition:
        sides = [
            np.mean(rated > ratings.scale.middle) for _, rated in rated_trials(ratings, condition)
        ]
        majorities = np.maximum(sides, 1 - np.array(sides))
        if sides:
            agreed = int((majorities >= share - 1e-9).sum())  # 9 of 10 are .9, rounded or not
            rows.append(Unanimity(condition, len(sides), agreed))
    return tuple(rows)


def rivals(ratings: Ratings, condition: Condition) -> tuple[tuple[str, str], ...]:
    """The pairs of models that a condition sets against each other, in the models' order."""
    met = {
        frozenset((trial.model_1, trial.model_2)) for trial, _ in rated_trials(ratings, condition)
    }
    return tuple(pair for pair in combinations(ratings.models, 2) if frozenset(pair) in met)


def _of(group: GroupRatings, condition: Condition) -> BoolArray:
    return np.array([trial.condition is condition for trial in group.trials], dtype=bool)


def rated_trials(ratings: Ratings, condition: Condition) -> Iterator[tuple[Trial, FloatArray]]:
    """Each trial of a condition with its ratings, (n_participants,)."""
    for group in ratings.groups:
        for column in np.flatnonzero(_of(group, condition)):
            yield group.trials[column], group.ratings[:, column]
