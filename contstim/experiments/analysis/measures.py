"""Prediction of people's ratings by a model's log-probability ratios (Golan et al. 2023, Methods).

Two measures, each with the noise ceilings that belong to it: the share of choices a model predicts,
and the signed-rank cosine, which also asks whether model and person are sure of the same trials.
Preferences are ratings in steps from the middle of their scale: below 0 for the first sentence,
above 0 for the second. Arrays have trials last, and any axes of samples, such as one of those that
are left without each trial in turn, before them; results keep these.

Noise ceilings say how well people predict one another, so how well a model could. The lower ceiling
predicts each person from the others, leave-one-out; the upper from everybody, this person included.
The best possible model lies between the two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contstim.errors import InputError
from contstim.files.arrays import FloatArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.experiments.analysis.ratings import GroupRatings, Ratings
    from contstim.files.arrays import BoolArray, IntArray
    from contstim.items.scale import Scale

_OfModel: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
_OfPeople: TypeAlias = Callable[[FloatArray], FloatArray]

_DECIMALS = 10  # of sums of ranks: those that tie differ by less, others by more


def log_ratios(log_probs: FloatArray) -> FloatArray:
    """Log-probability ratio of the second sentence to the first, log p(s2) - log p(s1), nats.

    Two impossible sentences (both -inf) are a tie, 0; one alone gives an infinite ratio, which
    ranks above all finite ones and ties with other infinite ones.

    Args:
        log_probs: (..., 2) nats, of the first and the second sentence.
    """
    first, second = log_probs[..., 0], log_probs[..., 1]
    # first == second catches the two -inf, whose difference would be nan.
    with np.errstate(invalid="ignore"):  # -inf - -inf
        return np.where(first == second, 0.0, second - first)


def choice_agreement(ratios: FloatArray, preferences: FloatArray) -> FloatArray:
    """1 where model and person prefer the same sentence, 0 where not, 1/2 where one has none.

    Args:
        ratios: (..., n_trials), nats, positive for the second sentence.
        preferences: (..., n_trials), positive for the second sentence.
    """
    # The product of the signs is 1 where both agree, -1 where not, 0 where the model ties, or the
    # person leaves a slider in the middle.
    return (1 + np.sign(ratios) * np.sign(preferences)) / 2


def accuracy(ratios: FloatArray, preferences: FloatArray) -> FloatArray:
    """The share of each person's choices that each model predicts; a tie counts one half.

    Args:
        ratios: log-probability ratios, (n_models, …, n_trials), nats; see `log_ratios`.
        preferences: (n_participants, …, n_trials).

    Returns:
        (n_participants, n_models, …).
    """
    # Person by person, since all at once may be more than memory holds
    return np.stack([choice_agreement(ratios, person).mean(axis=-1) for person in preferences])


def signed_rank_cosine(ratios: FloatArray, preferences: FloatArray) -> FloatArray:
    """The cosine of each model's and each person's signed ranks (2023, Eqs. 7-11).

    This is what breaking ties at random gives on average, in closed form: ties are broken
    independently on both sides, so the expected product of two ranks is the product of their
    average ranks; and whatever the ties, k non-zero values have ranks 1 to k, whose squares sum to
    k(k+1)(2k+1)/6. A model that ties everywhere has the cosine 0. Args and returns are those of
    `accuracy`.
    """
    ranks = signed_ranks(ratios)
    products = np.stack([(ranks * person).sum(axis=-1) for person in signed_ranks(preferences)])
    # The denominator from the closed form of Eq. 9
    return cosine(products, rank_squares(ratios) * rank_squares(preferences)[:, None])


def cosine(products: FloatArray, squares: FloatArray) -> FloatArray:
    """Products over the root of squares; 0 where a vector is 0."""
    return np.divide(products, np.sqrt(squares), out=np.zeros_like(products), where=squares > 0)


def signed_ranks(values: FloatArray) -> FloatArray:
    """Average ranks, from 1, of the non-zero values by size, with their signs; zeros stay 0.

    Args:
        values: (…, n_trials); infinite ones rank highest, tied.
    """
    from scipy.stats import rankdata

    zeros = (values == 0).sum(axis=-1, keepdims=True)  # which rank below all others
    ranks: FloatArray = np.sign(values) * (rankdata(np.abs(values), axis=-1) - zeros)
    return ranks


def rank_squares(values: FloatArray) -> FloatArray:
    """k(k+1)(2k+1)/6 for the number k of non-zero values (2023, Eq. 9), (…)."""
    k = np.count_nonzero(values, axis=-1)
    return np.asarray(k * (k + 1) * (2 * k + 1) / 6)


def known_mean(values: FloatArray | BoolArray) -> float:
    """Mean of all that is not nan; nan where nothing is left."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else np.nan


def accuracy_lower(preferences: FloatArray) -> FloatArray:
    """The share of each person's choices made by the majority of the others; a draw counts 1/2.

    Args:
        preferences: (n_participants, …, n_trials), of two participants or more.

    Returns:
        (n_participants, …).
    """
    choices = np.sign(preferences)
    # The votes of all less one's own are those of the others; their sum has the majority's sign.
    agreement = choice_agreement(choices.sum(axis=0) - choices, preferences)
    return np.asarray(agreement.mean(axis=-1))


def accuracy_upper(preferences: FloatArray) -> FloatArray:
    """The share of each person's choices made by the majority of all; a draw counts 1/2.

    Args and returns are those of `accuracy_lower`.
    """
    votes = np.sign(preferences).sum(axis=0)  # one's own among them
    return np.asarray(choice_agreement(votes, preferences).mean(axis=-1))


def cosine_lower(preferences: FloatArray) -> FloatArray:
    """Each person's signed-rank cosine with the others' mean normalised ranks, ranked again.

    Args and returns are those of `accuracy_lower`. A mean of zero is a tie, as a model's would be.
    """
    ranks, squares = signed_ranks(preferences), rank_squares(preferences)
    vectors = _of_one_norm(ranks, squares)
    # Sums rank as means do. What ties is equal, in whatever order people stand: ranks are halves of
    # whole numbers, and those that are divided by norms are rounded.
    others = np.round(vectors.sum(axis=0) - vectors, _DECIMALS)
    # The others' mean is ranked again, as a model's ratios are, so that both have the same norm.
    return cosine((signed_ranks(others) * ranks).sum(axis=-1), rank_squares(others) * squares)


def cosine_upper(preferences: FloatArray) -> FloatArray:
    """Each person's cosine with everybody's mean normalised ranks, as they are, not ranked again.

    Args and returns are those of `accuracy_lower`.
    """
    ranks, squares = signed_ranks(preferences), rank_squares(preferences)
    # Of all vectors, the mean of vectors of one norm has the highest summed cosine with them: no
    # model can do better. It is not ranked again, and Eq. 9 is not its norm.
    mean = _of_one_norm(ranks, squares).mean(axis=0)
    return cosine((ranks * mean).sum(axis=-1), squares * (mean**2).sum(axis=-1))


def _of_one_norm(ranks: FloatArray, squares: FloatArray) -> FloatArray:
    """Ranks divided by each person's norm where norms differ; where they do not, as they are.

    They differ where people have different numbers of trials without a preference. Who has none at
    all has ranks of zero, whatever the norm of the others.
    """
    differ = ((squares != squares.max(axis=0)) & (squares > 0)).any(axis=0)
    return ranks / np.sqrt(np.where(differ & (squares > 0), squares, 1))[..., None]


@dataclass(frozen=True)
class Measure:
    """A way to say how well a model predicts each person, and its noise ceilings.

    Attributes:
        name: as in tables.
        label: as on the axis of a figure.
        chance: what a model that knows nothing reaches.
        lowest: what it can be at least; 1 is the highest.
        model: of ratios and preferences.
        lower: of preferences.
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
    "share of choices predicted",
    0.5,
    0.0,
    accuracy,
    accuracy_lower,
    accuracy_upper,
)
COSINE = Measure(
    "signed-rank-cosine",
    "signed-rank cosine with ratings",
    0.0,
    -1.0,
    signed_rank_cosine,
    cosine_lower,
    cosine_upper,
)
MEASURES = (ACCURACY, COSINE)


def measures_of(scale: Scale) -> tuple[Measure, ...]:
    """The measures of answers on a scale; the last is that of all trials together."""
    return MEASURES if scale.is_graded else (ACCURACY,)


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
    group: GroupRatings, measure: Measure, mask: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Model, lower and upper ceiling, each (n_participants, n_models).

    Args:
        group: who rated what.
        measure: accuracy or signed-rank cosine.
        mask: which trials evaluate which model, (n_models, n_trials).
    """
    people, (n_models, _) = group.preferences, mask.shape
    values, lower, upper = np.full((3, len(people), n_models), np.nan)
    # Models with the same trials are evaluated together, on random pairs all of them; where each
    # has its own, one by one. The ceilings are those of these trials.
    for trials in np.unique(mask[mask.any(axis=1)], axis=0):
        models = (mask == trials).all(axis=1)
        rated = people[:, trials]
        values[:, models] = measure.model(group.ratios[np.ix_(models, trials)], rated)
        if len(people) > 1:
            lower[:, models] = measure.lower(rated)[:, None]
            upper[:, models] = measure.upper(rated)[:, None]
    return values, lower, upper
