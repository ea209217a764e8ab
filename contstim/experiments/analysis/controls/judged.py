"""Trials as a model and people judged them, beside something that their sentences differ in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from contstim.arrays import FloatArray
    from contstim.experiments.analysis.controls.features import Features
    from contstim.experiments.analysis.ratings import Ratings
    from contstim.stimuli import Condition, Trial


@dataclass(frozen=True)
class JudgedTrial:
    """A trial as a model and people judged it: 1 for sentence_2, -1 for sentence_1, 0 for neither.

    `difference` is the feature of sentence_2 less that of sentence_1.
    """

    model: float
    people: float
    difference: float


def judged(
    ratings: Ratings,
    model: str,
    conditions: Collection[Condition],
    features: Features,
    feature: str,
) -> Iterator[JudgedTrial]:
    """The trials of some conditions that evaluate a model: those that target it, or no model."""
    if model not in ratings.models:
        raise InputError(
            f"There are no log-probabilities of {model!r}, only of {', '.join(ratings.models)}."
        )
    row = ratings.models.index(model)
    require_values(ratings, conditions, features, feature)
    for group in ratings.groups:
        columns = [
            column
            for column in columns_of(group.trials, conditions)
            if group.trials[column].model_1 in ("", model) or group.trials[column].model_2 == model
        ]
        differences = differences_of([group.trials[c] for c in columns], features, feature)
        # (n_participants, n_columns) choices, +1 for sentence_2; their sum has the majority's sign,
        # and is 0 where people are divided evenly
        votes = np.sign(group.preferences[:, columns]).sum(axis=0)
        preferred = np.sign(group.ratios[row, columns])
        for values in zip(preferred, np.sign(votes), differences, strict=True):
            yield JudgedTrial(*map(float, values))


def columns_of(trials: Iterable[Trial], conditions: Collection[Condition]) -> list[int]:
    """Columns of the trials of some conditions."""
    return [column for column, trial in enumerate(trials) if trial.condition in conditions]


def require_values(
    ratings: Ratings, conditions: Collection[Condition], features: Features, feature: str
) -> None:
    """Make sure that every sentence of the trials of some conditions has a value of a feature.

    Raises:
        InputError: some have none; says how many different ones, over all groups.
    """
    # All groups are searched before anything is said, so that the table is mended once.
    every = [
        group.trials[c] for group in ratings.groups for c in columns_of(group.trials, conditions)
    ]
    missing = sorted({text for both in _texts(every) for text in both} - features[feature].keys())
    if missing:
        number, have = counted(len(missing), "sentence"), "has" if len(missing) == 1 else "have"
        raise InputError(
            f"{number} of the trials {have} no value of {feature}, among them {missing[0]!r}. Give "
            "the table a row for each."
        )


def _texts(trials: Iterable[Trial]) -> list[tuple[str, str]]:
    return [(trial.sentence_1.text, trial.sentence_2.text) for trial in trials]


def differences_of(trials: Iterable[Trial], features: Features, feature: str) -> FloatArray:
    """The feature of sentence_2 less that of sentence_1, (n_trials,)."""
    values = features[feature]
    return np.array([values[second] - values[first] for first, second in _texts(trials)])
