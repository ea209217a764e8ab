"""Prediction of people's ratings by a model's log-probability ratios (Golan et al. 2023, Methods).

Two measures, each with the noise ceilings that belong to it: the share of choices a model predicts,
and the signed-rank cosine, which also asks whether model and person are sure of the same trials.
Preferences are ratings in steps from the middle of their scale: below 0 for the first sentence,
above 0 for the second. Arrays have trials last. With weights (n_samples, n_trials), how often each
trial counts in each of n_samples resamples, results gain a last axis of samples.

Noise ceilings say how well people predict one another, so how well a model could. The lower ceiling
predicts each person from the others, leave-one-out; the upper from everybody, this person included.
The best possible model lies between the two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contstim.arrays import FloatArray
from contstim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import BoolArray, IntArray
    from contstim.experiments.analysis.ratings import GroupRatings, Ratings
    from contstim.scale import Scale

_OfModel: TypeAlias = Callable[[FloatArray, FloatArray, FloatArray | None], FloatArray]
_OfPeople: TypeAlias = Callable[[FloatArray, FloatArray | None], FloatArray]

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


def accuracy(
    ratios: FloatArray, preferences: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    """The share of each person's choices that each model predicts; a tie counts one half.

    Args:
        ratios: log-probability ratios, (n_models, n_trials), nats; see `log_ratios`.
        preferences: (n_participants, n_trials).
        weights: (n_samples, n_trials); see the module.

    Returns:
        (n_participants, n_models) or (n_participants, n_models, n_samples); nan where no trial
        counts.
    """
    # (n_models, n_trials) against (n_participants, 1, n_trials): every model meets every person.
    return weighted_mean(choice_agreement(ratios, preferences[:, None, :]), weights)


def signed_rank_cosine(
    ratios: FloatArray, preferences: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    """The cosine of each model's and each person's signed ranks (2023, Eqs. 7-11).

    This is what breaking ties at random gives on average, in closed form: ties are broken
    independently on both sides, so the expected product of two ranks is the product of their
    average ranks; and whatever the ties, k non-zero values have ranks 1 to k, whose squares sum to
    k(k+1)(2k+1)/6. A model that ties everywhere has the cosine 0. Args and returns are those of
    `accuracy`.
    """
    counts = np.ones(preferences.shape[-1]) if weights is None else weights
    # The numerator, sum over trials t of rank(model, t) * rank(person, t): each person's ranks,
    # (n_trials,) or (n_samples, n_trials), meet those of all models, (n_models, [n_samples,]
    # n_trials). A trial that is drawn c times counts c times.
    counted = counts * resampled_ranks(ratios, weights)
    products = np.stack(
        [(counted * person).sum(axis=-1) for person in resampled_ranks(preferences, weights)]
    )
    # The denominator from the closed form of Eq. 9, (n_participants, n_models[, n_samples]).
    models, people = spread(ratios, weights), spread(preferences, weights)
    squares = rank_squares(models, counts) * rank_squares(people, counts)[:, None]
    return cosine(products, squares, counts)


def cosine(products: FloatArray, squares: FloatArray, counts: FloatArray) -> FloatArray:
    """Products over the root of squares; 0 where a vector is 0, nan where no trial counts."""
    scales = np.broadcast_to(np.sqrt(squares), products.shape)
    cosines = np.divide(products, scales, out=np.zeros_like(products), where=scales > 0)
    return np.where(counts.sum(axis=-1) > 0, cosines, np.nan)


def signed_ranks(values: FloatArray, counts: FloatArray | None = None) -> FloatArray:
    """Average ranks, from 1, of the non-zero values by size, with their signs; zeros stay 0.

    Args:
        values: (..., n_trials); infinite ones rank highest, tied.
        counts: how often each value stands in its list, broadcastable to `values`.
    """
    sizes = np.abs(values)
    counts = np.broadcast_to(1.0 if counts is None else counts, values.shape) * (sizes > 0)
    # From here on trials stand in ascending order of size: `order` brings them back at the end.
    # Sizes .2 .5 .5 .9 that each count once have ranks 1 2.5 2.5 4.
    order = np.argsort(sizes, axis=-1)
    sizes, counts = (np.take_along_axis(array, order, axis=-1) for array in (sizes, counts))
    opens = np.ones(values.shape, dtype=bool)  # where a run of ties begins
    opens[..., 1:] = sizes[..., 1:] != sizes[..., :-1]
    closes = np.ones(values.shape, dtype=bool)
    closes[..., :-1] = opens[..., 1:]
    # A run of ties takes the ranks from `below` + 1 to `last`, and each of it their average. What
    # stands below is carried from the run's first place to its others, `last` from its last place
    # back. Zeros are first in the order and count 0, so that the ranks of the others begin with 1.
    upto = np.cumsum(counts, axis=-1)
    below = np.maximum.accumulate(np.where(opens, upto - counts, 0), axis=-1)
    last = np.flip(np.where(closes, upto, np.inf), axis=-1)
    last = np.flip(np.minimum.accumulate(last, axis=-1), axis=-1)
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (below + last + 1) / 2, axis=-1)
    return np.sign(values) * ranks


def resampled_ranks(values: FloatArray, weights: FloatArray | None) -> FloatArray:
    """`signed_ranks` of each list in each resample, (n_lists, n_samples, n_trials).

    Args:
        values: (n_lists, n_trials).
        weights: (n_samples, n_trials); None leaves out the axis of samples.
    """
    if weights is None:
        return signed_ranks(values)
    from scipy.stats import rankdata

    # Each list is sorted once for all resamples, which then only count its runs of ties: `runs`
    # numbers them by size, (n_lists, n_trials), and `members` says which trial is in which run,
    # (n_lists, n_trials, n_runs).
    runs = rankdata(np.abs(values), method="dense", axis=-1).astype(np.int64) - 1
    members = (runs[..., None] == np.arange(runs.max() + 1)).astype(np.float64)
    zeros = np.einsum("lt,ltr->lr", (values == 0).astype(np.float64), members) > 0
    counts = np.where(zeros[:, None], 0, weights @ members)  # (n_lists, n_samples, n_runs)
    # A run of c values that ends at place u has the ranks u - c + 1 to u, on average u - (c - 1)/2.
    ranks = np.cumsum(counts, axis=-1) - (counts - 1) / 2
    return np.sign(values)[:, None] * np.take_along_axis(ranks, runs[:, None], -1)


def rank_squares(values: FloatArray, counts: FloatArray) -> FloatArray:
    """k(k+1)(2k+1)/6 for the number k of non-zero values (2023, Eq. 9), (...)."""
    k = np.where(values == 0, 0.0, counts).sum(axis=-1)
    squares: FloatArray = k * (k + 1) * (2 * k + 1) / 6
    return squares


def weighted_mean(values: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Means over trials, (...) or (..., n_samples); nan where no trial counts."""
    counts = np.ones((1, values.shape[-1])) if weights is None else weights
    total = counts.sum(axis=-1)
    sums = values @ counts.T  # (..., n_trials) by (n_trials, n_samples)
    means: FloatArray = np.divide(sums, total, out=np.full(sums.shape, np.nan), where=total > 0)
    return means[..., 0] if weights is None else means


def known_mean(values: FloatArray | BoolArray) -> float:
    """Mean of all that is not nan; nan where nothing is left."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else np.nan


def spread(values: FloatArray, weights: FloatArray | None) -> FloatArray:
    """(..., n_trials) as (..., 1, n_trials) where there is an axis of samples to meet."""
    return values if weights is None else values[..., None, :]


def accuracy_lower(preferences: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """The share of each person's choices made by the majority of the others; a draw counts 1/2.

    Args:
        preferences: (n_participants, n_trials), of two participants or more.
        weights: (n_samples, n_trials).

    Returns:
        (n_participants,) or (n_participants, n_samples); nan where no trial counts.
    """
    choices = np.sign(preferences)
    # The votes of all less one's own are those of the others; their sum has the majority's sign.
    agreement = choice_agreement(choices.sum(axis=0) - choices, preferences)
    return weighted_mean(agreement, weights)


def accuracy_upper(preferences: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """The share of each person's choices made by the majority of all; a draw counts 1/2.

    Args and returns are those of `accuracy_lower`.
    """
    votes = np.sign(preferences).sum(axis=0)  # (n_trials,), one's own among them
    return weighted_mean(choice_agreement(votes, preferences), weights)


def cosine_lower(preferences: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Each person's signed-rank cosine with the others' mean normalised ranks, ranked again.

    Args and returns are those of `accuracy_lower`. A mean of zero is a tie, as a model's would be.
    """
    # People stand on the first axis, trials on the last; resamples, if any, between them.
    ranks, squares, counts = _people(preferences, weights)
    vectors = _of_one_norm(ranks, squares)
    # Sums rank as means do. What ties is equal, in whatever order people stand: ranks are halves of
    # whole numbers, and those that are divided by norms are rounded.
    others = np.round(vectors.sum(axis=0) - vectors, _DECIMALS)
    # The others' mean is ranked again, as a model's ratios are, so that both have the same norm.
    products = (counts * signed_ranks(others, counts) * ranks).sum(axis=-1)
    return cosine(products, rank_squares(others, counts) * squares, counts)


def cosine_upper(preferences: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Each person's cosine with everybody's mean normalised ranks, as they are, not ranked again.

    Args and returns are those of `accuracy_lower`.
    """
    ranks, squares, counts = _people(preferences, weights)
    # Of all vectors, the mean of vectors of one norm has the highest summed cosine with them: no
    # model can do better. It is not ranked again, and Eq. 9 is not its norm.
    mean = _of_one_norm(ranks, squares).mean(axis=0)
    products = (counts * ranks * mean).sum(axis=-1)
    return cosine(products, squares * (counts * mean**2).sum(axis=-1), counts)


def _people(
    preferences: FloatArray, weights: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Everybody's signed ranks, their sums of squares, and how often each trial counts."""
    counts = np.ones(preferences.shape[-1]) if weights is None else weights
    squares = rank_squares(spread(preferences, weights), counts)
    return resampled_ranks(preferences, weights), squares, counts


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
    accuracy,
    accuracy_lower,
    accuracy_upper,
)
COSINE = Measure(
    "signed-rank-cosine",
    "signed-rank cosine with human ratings",
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
        values[:, models] = measure.model(group.ratios[np.ix_(models, trials)], rated, None)
        if len(people) > 1:
            lower[:, models] = measure.lower(rated, None)[:, None]
            upper[:, models] = measure.upper(rated, None)[:, None]
    return values, lower, upper
