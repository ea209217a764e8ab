"""Prediction of people's ratings by a model's log-probability ratios (Golan et al. 2023, Methods).

Each of the two measures has its own noise ceilings. The accuracy is the share of choices that a
model predicts. The signed-rank cosine also compares how strong the preferences of model and
participant are. Preferences are ratings in steps from the middle of the scale: below 0 for the
first sentence, above 0 for the second. The last axis of an array is trials; results lack this axis.
Axes of samples, such as jackknife samples, come before the last axis and remain in the results.

Noise ceilings measure how well participants predict one another, and so how well a model could
predict them. The lower ceiling predicts each participant from the others (leave-one-out). The upper
ceiling predicts each participant from all participants, including that participant. The value of
the best possible model is between the two ceilings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.experiments.analysis.ratings import GroupRatings, Ratings
    from contstim.files.arrays import BoolArray, FloatArray, IntArray
    from contstim.items.scale import Scale

# Sums of ranks are rounded to this number of decimals. One unit of the last decimal is larger than
# rounding errors, and smaller than differences between unequal sums
_DECIMALS = 10


def log_ratios(log_probs: FloatArray) -> FloatArray:
    """Return the log-probability ratio log p(s2) - log p(s1) of the two sentences, in nats.

    Two impossible sentences (both -inf) are a tie, 0. One impossible sentence gives an infinite
    ratio, whose absolute value ranks above all finite ratios and ties with other infinite ratios.

    Args:
        log_probs: (..., 2) nats, of the first and the second sentence.
    """
    first, second = log_probs[..., 0], log_probs[..., 1]
    # The difference of two -inf would be nan
    with np.errstate(invalid="ignore"):
        return np.where(first == second, 0.0, second - first)


def choice_agreement(ratios: FloatArray, preferences: FloatArray) -> FloatArray:
    """Return 1 if model and participant prefer the same sentence, 0 if not, 1/2 for a tie.

    Args:
        ratios: (..., n_trials), nats, positive for the second sentence.
        preferences: (..., n_trials), positive for the second sentence.
    """
    # The product of signs is 0 if the model ties or the participant has no preference
    return (1 + np.sign(ratios) * np.sign(preferences)) / 2


def accuracy(ratios: FloatArray, preferences: FloatArray) -> FloatArray:
    """Return the share of each participant's choices that each model predicts; a tie counts 1/2.

    Args:
        ratios: log-probability ratios, (n_models, …, n_trials), nats; see `log_ratios`.
        preferences: (n_participants, …, n_trials).

    Returns:
        (n_participants, n_models, …).
    """
    # One participant at a time, since all together may not fit in memory
    return np.stack([choice_agreement(ratios, person).mean(axis=-1) for person in preferences])


def signed_rank_cosine(ratios: FloatArray, preferences: FloatArray) -> FloatArray:
    """Return cosines between models' and participants' signed ranks (2023, Eqs. 7-11).

    The result is the expected cosine if ties are broken at random. The ties of model and
    participant are broken independently, so the expected product of two ranks is the product of
    their average ranks. After ties are broken, k non-zero values have the ranks 1 to k, whose
    squares sum to k(k+1)(2k+1)/6. A model that ties on all trials has a cosine of 0. Args and
    returns are those of `accuracy`.
    """
    ranks = signed_ranks(ratios)
    products = np.stack([(ranks * person).sum(axis=-1) for person in signed_ranks(preferences)])
    return cosine(products, rank_squares(ratios) * rank_squares(preferences)[:, None])


def cosine(products: FloatArray, squares: FloatArray) -> FloatArray:
    """Return cosines of pairs of vectors; 0 if a vector is 0.

    Args:
        products: dot products of the vectors.
        squares: products of their squared norms, same shape.
    """
    return np.divide(products, np.sqrt(squares), out=np.zeros_like(products), where=squares > 0)


def signed_ranks(values: FloatArray) -> FloatArray:
    """Rank absolute values from 1, and give each rank the sign of its value; zeros stay 0.

    Zeros are not ranked. Ties have average ranks.

    Args:
        values: (…, n_trials); infinite values are ties with the highest rank.
    """
    from scipy.stats import rankdata

    # Zeros have the lowest ranks; their number is subtracted from the other ranks
    zeros = (values == 0).sum(axis=-1, keepdims=True)
    return np.asarray(np.sign(values) * (rankdata(np.abs(values), axis=-1) - zeros))


def rank_squares(values: FloatArray) -> FloatArray:
    """Return k(k+1)(2k+1)/6 for k non-zero values (2023, Eq. 9), shape (…)."""
    k = np.count_nonzero(values, axis=-1)
    return np.asarray(k * (k + 1) * (2 * k + 1) / 6)


def known_mean(values: FloatArray | BoolArray) -> float:
    """Return the mean of all values that are not nan; nan if there are none."""
    non_missing = values[~np.isnan(values)]
    return float(non_missing.mean()) if len(non_missing) else np.nan


def accuracy_lower(preferences: FloatArray) -> FloatArray:
    """Return the share of each participant's choices that agree with most other participants.

    On a trial, if equally many other participants chose each sentence, the choice counts 1/2.

    Args:
        preferences: (n_participants, …, n_trials), of two participants or more.

    Returns:
        (n_participants, …).
    """
    choices = np.sign(preferences)
    # The sum of the others' votes is the sum of all votes minus the participant's own vote. The
    # sign of this difference is the majority of the others
    agreement = choice_agreement(choices.sum(axis=0) - choices, preferences)
    return np.asarray(agreement.mean(axis=-1))


def accuracy_upper(preferences: FloatArray) -> FloatArray:
    """Return the share of each participant's choices that agree with most participants.

    The participant's own choice is included. If equally many participants chose each sentence, the
    choice counts 1/2. Args and returns are those of `accuracy_lower`.
    """
    votes = np.sign(preferences).sum(axis=0)  # including the participant's own
    return np.asarray(choice_agreement(votes, preferences).mean(axis=-1))


def cosine_lower(preferences: FloatArray) -> FloatArray:
    """Return each participant's signed-rank cosine with the mean ranks of the other participants.

    Ranks are normalised before they are averaged. The means are then ranked again. A mean of zero
    is a tie, like a model's ratio of zero. Args and returns are those of `accuracy_lower`.
    """
    ranks, squares = signed_ranks(preferences), rank_squares(preferences)
    vectors = _normalise_ranks(ranks, squares)
    # Sums have the same ranks as means. They are rounded, because rounding errors would break ties,
    # depending on the order of participants.
    sums_of_others = np.round(vectors.sum(axis=0) - vectors, _DECIMALS)
    return cosine(
        (signed_ranks(sums_of_others) * ranks).sum(axis=-1), rank_squares(sums_of_others) * squares
    )


def cosine_upper(preferences: FloatArray) -> FloatArray:
    """Return each participant's signed-rank cosine with the mean ranks of all participants.

    Ranks are normalised before they are averaged. The means are not ranked again. Args and returns
    are those of `accuracy_lower`.
    """
    ranks, squares = signed_ranks(preferences), rank_squares(preferences)
    # After normalisation, the rank vectors of all participants have equal norms. The sum of a
    # vector's cosines with the participants' vectors is highest for the mean of these vectors. So
    # no model can do better than the mean. The mean is not ranked again, so its norm does not
    # follow from Eq. 9.
    mean = _normalise_ranks(ranks, squares).mean(axis=0)
    return cosine((ranks * mean).sum(axis=-1), squares * (mean**2).sum(axis=-1))


def _normalise_ranks(ranks: FloatArray, squares: FloatArray) -> FloatArray:
    """Divide ranks by each participant's norm if norms differ; otherwise return them unchanged.

    Norms differ if participants have different numbers of trials without a preference. Participants
    without any preference are ignored.
    """
    differ = ((squares != squares.max(axis=0)) & (squares > 0)).any(axis=0)
    return ranks / np.sqrt(np.where(differ & (squares > 0), squares, 1))[..., None]


@dataclass(frozen=True)
class Measure:
    """A measure of how well a model predicts each participant, with its noise ceilings.

    Attributes:
        lowest: lowest possible value; the highest is 1. The expected value of a model that guesses
            is in the middle between the two.
        model: function of ratios and preferences that returns the values of models.
        lower: function of preferences that returns the lower noise ceiling.
        upper: function of preferences that returns the upper noise ceiling.
    """

    name: str
    label: str
    lowest: float
    model: Callable[[FloatArray, FloatArray], FloatArray]
    lower: Callable[[FloatArray], FloatArray]
    upper: Callable[[FloatArray], FloatArray]


ACCURACY = Measure(
    "accuracy", "share of choices predicted", 0.0, accuracy, accuracy_lower, accuracy_upper
)
COSINE = Measure(
    "signed-rank-cosine",
    "signed-rank cosine with ratings",
    -1.0,
    signed_rank_cosine,
    cosine_lower,
    cosine_upper,
)
MEASURES = (ACCURACY, COSINE)


def measures_of(scale: Scale) -> tuple[Measure, ...]:
    """Return the measures for a scale; by default, the last measure is the primary outcome."""
    return MEASURES if scale.is_graded else (ACCURACY,)


def require_measure(measure: Measure, scale: Scale) -> None:
    """Check that a measure can be computed from answers on a scale.

    Raises:
        InputError: if the measure is the cosine and answers are choices, which cannot be ranked.
    """
    if measure not in measures_of(scale):
        raise InputError(
            f"The {measure.name} needs ratings of confidence, but the responses are choices. "
            f"Use {ACCURACY.name}, or ask participants for their confidence."
        )


@dataclass(frozen=True, eq=False)
class ParticipantScores:
    """Results of all participants, in order of groups, on the trials that evaluate each model.

    Attributes:
        groups: (n_participants,), group number of each participant.
        values: (n_participants, n_models); nan where a group has no trial for a model.
        lower: lower noise ceiling on the same trials, same shape; nan for a participant who is
            alone in a group.
        upper: upper noise ceiling, same shape; nan for the same participants.
        n_trials: (n_participants, n_models), number of trials that evaluate each model.
    """

    models: tuple[str, ...]
    groups: IntArray
    values: FloatArray
    lower: FloatArray
    upper: FloatArray
    n_trials: IntArray

    def of_groups(self, values: FloatArray) -> FloatArray:
        """Return means over the participants of each group, (n_groups, n_models)."""
        return np.stack([values[self.groups == g].mean(axis=0) for g in np.unique(self.groups)])


def evaluate(ratings: Ratings, measure: Measure, masks: Sequence[BoolArray]) -> ParticipantScores:
    """Measure how well each model predicts each participant, on the trials that evaluate the model.

    Args:
        ratings: ratings and log-probabilities.
        measure: accuracy or signed-rank cosine.
        masks: for each group, whether a trial evaluates a model, (n_models, n_trials).

    Raises:
        InputError: see `require_measure`.
    """
    require_measure(measure, ratings.scale)
    parts = [
        evaluate_group(group, measure, mask)
        for group, mask in zip(ratings.groups, masks, strict=True)
    ]
    sizes = [len(group.participants) for group in ratings.groups]
    numbers = np.repeat([group.number for group in ratings.groups], sizes)
    counts = np.repeat([mask.sum(axis=1) for mask in masks], sizes, axis=0)
    values, lower, upper = (np.concatenate(kind) for kind in zip(*parts, strict=True))
    return ParticipantScores(ratings.models, numbers, values, lower, upper, counts)


def evaluate_group(
    group: GroupRatings, measure: Measure, mask: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return values, lower and upper ceilings of one group, each (n_participants, n_models).

    The arguments are those of `evaluate`, for one group.
    """
    people, (n_models, _) = group.preferences, mask.shape
    values, lower, upper = np.full((3, len(people), n_models), np.nan)
    # Models with the same trials are evaluated together, because they have the same ceilings
    for trials in np.unique(mask[mask.any(axis=1)], axis=0):
        models = (mask == trials).all(axis=1)
        rated = people[:, trials]
        values[:, models] = measure.model(group.ratios[np.ix_(models, trials)], rated)
        if len(people) > 1:
            lower[:, models] = measure.lower(rated)[:, None]
            upper[:, models] = measure.upper(rated)[:, None]
    return values, lower, upper
