"""Both measures and their noise ceilings, for every participant and model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contstim.arrays import FloatArray
from contstim.errors import InputError
from contstim.experiments.analysis import measures
from contstim.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import BoolArray, IntArray
    from contstim.experiments.analysis.ratings import GroupRatings, Ratings

_OfModel: TypeAlias = Callable[[FloatArray, FloatArray, FloatArray | None], FloatArray]
_OfPeople: TypeAlias = Callable[[FloatArray, FloatArray | None], FloatArray]


@dataclass(frozen=True)
class Measure:
    """A way to say how well a model predicts each person, and its noise ceilings.

    Attributes:
        name: as in tables.
        label: as on the axis of a figure.
        chance: what a model that knows nothing reaches.
        lowest: what it can be at least; 1 is the highest.
        model: of ratios (n_models, n_trials), preferences (n_participants, n_trials) and weights or
            None.
        lower: of preferences and weights or None.
        upper: as `lower`.
    """

    name: str
    label: str
    chance: float
    lowest: float
    model: _OfModel
    lower: _OfPeople
    upper: _OfPeople


ACCURACY = Measure(
    "accuracy",
    "share of human choices predicted",
    0.5,
    0.0,
    measures.accuracy,
    measures.accuracy_lower,
    measures.accuracy_upper,
)
COSINE = Measure(
    "signed-rank-cosine",
    "signed-rank cosine with human ratings",
    0.0,
    -1.0,
    measures.signed_rank_cosine,
    measures.cosine_lower,
    measures.cosine_upper,
)
MEASURES = (ACCURACY, COSINE)


def measures_of(scale: Scale) -> tuple[Measure, ...]:
    """The measures of answers on a scale; the last is that of all trials together."""
    return (ACCURACY,) if scale is Scale.CHOICE else MEASURES


def require_measure(measure: Measure, scale: Scale) -> None:
    """Make sure that answers on a scale say what a measure compares.

    Raises:
        InputError: they are choices, which cannot be ranked.
    """
    if measure not in measures_of(scale):
        raise InputError(
            f"The {measure.name} ranks trials by how sure people are, and a choice does not say "
            f"that. Take the {ACCURACY.name}, or ask people for their confidence."
        )


@dataclass(frozen=True, eq=False)
class ParticipantScores:
    """Results of all participants, group after group, on the trials that evaluate each model.

    Attributes:
        models: one a column.
        groups: (n_participants,), the number of each participant's group.
        values: (n_participants, n_models); nan where a group has no trial for a model.
        lower: the lower noise ceiling on the same trials, same shape; nan for a group of one.
        upper: the upper noise ceiling, likewise.
        n_trials: (n_participants, n_models), how many trials that is.
    """

    models: tuple[str, ...]
    groups: IntArray
    values: FloatArray
    lower: FloatArray
    upper: FloatArray
    n_trials: IntArray

    @property
    def group_numbers(self) -> IntArray:
        """The groups, ascending."""
        return np.unique(self.groups)

    def of_groups(self, values: FloatArray) -> FloatArray:
        """Means over the participants of each group, (n_groups, n_models)."""
        return np.stack([values[self.groups == g].mean(axis=0) for g in self.group_numbers])


def evaluate(ratings: Ratings, measure: Measure, masks: Sequence[BoolArray]) -> ParticipantScores:
    """Evaluate every model on its own trials.

    Args:
        ratings: who rated what.
        measure: accuracy or signed-rank cosine.
        masks: for each group, which trials evaluate which model, (n_models, n_trials).

    Raises:
        InputError: see `require_measure`.
    """
    require_measure(measure, ratings.scale)
    parts = [
        evaluate_group(group, measure, mask)
        for group, mask in zip(ratings.groups, masks, strict=True)
    ]
    # One row a participant, group after group; what holds for a group is repeated for its people.
    people = [len(group.participants) for group in ratings.groups]
    numbers = np.repeat([group.number for group in ratings.groups], people)
    counts = np.repeat([mask.sum(axis=1) for mask in masks], people, axis=0)
    values, lower, upper = (np.concatenate(kind) for kind in zip(*parts, strict=True))
    return ParticipantScores(ratings.models, numbers, values, lower, upper, counts)


def evaluate_group(
    group: GroupRatings, measure: Measure, mask: BoolArray, weights: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Model, lower and upper ceiling, each (n_participants, n_models) or (…, n_samples).

    Args:
        group: who rated what.
        measure: accuracy or signed-rank cosine.
        mask: which trials evaluate which model, (n_models, n_trials).
        weights: how often each trial counts in each resample, (n_samples, n_trials).
    """
    people, (n_models, _) = group.preferences, mask.shape
    samples = () if weights is None else (len(weights),)
    values, lower, upper = np.full((3, len(people), n_models, *samples), np.nan)
    # Models with the same trials are evaluated together, on random pairs all of them; where each
    # has its own, one by one. The ceilings are those of these trials.
    for trials in np.unique(mask[mask.any(axis=1)], axis=0):
        models = (mask == trials).all(axis=1)
        rated = people[:, trials], None if weights is None else weights[:, trials]
        values[:, models] = measure.model(group.ratios[np.ix_(models, trials)], *rated)
        if len(people) > 1:
            lower[:, models] = measure.lower(*rated)[:, None]
            upper[:, models] = measure.upper(*rated)[:, None]
    return values, lower, upper
