"""Who agrees with whom: models with models, people with people, and people with rival models.

Also whether models play the roles that trials give them, and their results on the trials that were
made to tell two of them apart.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis.evaluation import evaluate
from contstim.experiments.analysis.measures import choice_agreement
from contstim.experiments.analysis.scopes import pair_mask, roles
from contstim.stimuli import CONTROVERSIAL, Condition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contstim.arrays import BoolArray, FloatArray
    from contstim.experiments.analysis.evaluation import Measure
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


@dataclass(frozen=True)
class Orientation:
    """Number of trials of a condition that the scores contradict; see `orientations`."""

    condition: Condition
    trials: int
    contradicted: int


def orientations(ratings: Ratings) -> tuple[Orientation, ...]:
    """For each controversial condition, how many trials have models in roles they do not play.

    The scores contradict a pair of two natural or two synthetic sentences unless model_1 finds
    sentence_1 less likely than sentence_2, and model_2 finds it likelier; they contradict a
    natural-synthetic trial unless the model that rejects the synthetic sentence finds it less
    likely than the natural one.
    """
    trials: Counter[Condition] = Counter()
    contradicted: Counter[Condition] = Counter()
    for group in ratings.groups:
        for trial, ratios in zip(group.trials, group.ratios.T, strict=True):
            if trial.condition not in CONTROVERSIAL:
                continue
            # ratios: how much likelier sentence_2 is under each model, (n_models,)
            if trial.condition is Condition.NATURAL_SYNTHETIC:
                # The natural sentence comes first. Only the rejecting model is asked: the accepting
                # one finds both about as likely, so that the sign of its ratio says little.
                rejects = ratios[ratings.models.index(roles(trial)[1])]
                as_named = rejects < 0
            else:
                first = ratios[ratings.models.index(trial.model_1)]
                second = ratios[ratings.models.index(trial.model_2)]
                as_named = first > 0 > second
            trials[trial.condition] += 1
            contradicted[trial.condition] += not as_named
    return tuple(Orientation(c, trials[c], contradicted[c]) for c in CONTROVERSIAL if trials[c])


@dataclass(frozen=True)
class PairResult:
    """Means over the participants who saw such trials; ceilings are on the same trials."""

    condition: Condition
    model_1: str
    model_2: str
    measure: str
    value_1: float
    value_2: float
    lower: float
    upper: float
    n_trials: int
    n_ratings: int


def pair_results(ratings: Ratings, condition: Condition, measure: Measure) -> Iterator[PairResult]:
    """A row for each pair of models that a condition sets against each other."""
    for pair in rivals(ratings, condition):
        masks = [pair_mask(g.trials, condition, pair, ratings.models) for g in ratings.groups]
        scores = evaluate(ratings, measure, masks)
        first, second = (ratings.models.index(model) for model in pair)
        # Both models have the same trials here, so the ceilings of the first are those of both.
        yield PairResult(
            condition,
            *pair,
            measure.name,
            _mean(scores.values[:, first]),
            _mean(scores.values[:, second]),
            _mean(scores.lower[:, first]),
            _mean(scores.upper[:, first]),
            sum(int(mask.any(axis=0).sum()) for mask in masks),
            int(scores.n_trials[:, first].sum()),
        )


def _mean(values: FloatArray) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else np.nan
