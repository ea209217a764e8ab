"""Noise ceilings: how well people predict one another, so how well a model could (2023, Methods).

The lower ceiling predicts each person from the others, leave-one-out; the upper from everybody,
this person included. The best possible model lies between the two. Shapes and weights are those of
`contstim.experiments.analysis.measures`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis.measures import (
    choice_agreement,
    cosine,
    rank_squares,
    resampled_ranks,
    signed_ranks,
    spread,
    weighted_mean,
)

if TYPE_CHECKING:
    from contstim.arrays import FloatArray


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
    """Each person's signed-rank cosine with the others' mean signed ranks, ranked again.

    Args and returns are those of `accuracy_lower`. A mean of zero is a tie, as a model's would be.
    """
    # People stand on the first axis, trials on the last; resamples, if any, between them.
    values = spread(preferences, weights)
    ranks = resampled_ranks(preferences, weights)
    counts = np.ones(preferences.shape[-1]) if weights is None else weights
    # Everybody has the same norm, so that sums rank as means do. Ranks are halves of whole numbers:
    # what ties is equal, in whatever order people stand.
    others = ranks.sum(axis=0) - ranks
    # The others' mean is ranked again, as a model's ratios are, so that both have the same norm.
    products = (counts * signed_ranks(others, counts) * ranks).sum(axis=-1)
    squares = rank_squares(others, counts) * rank_squares(values, counts)
    return cosine(products, squares, counts)


def cosine_upper(preferences: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Each person's cosine with everybody's mean signed ranks, as they are, not ranked again.

    Args and returns are those of `accuracy_lower`.
    """
    values = spread(preferences, weights)
    counts = np.ones(preferences.shape[-1]) if weights is None else weights
    ranks = resampled_ranks(preferences, weights)
    # These vectors have one norm, so that of all vectors their mean has the highest summed cosine
    # with them: no model can do better. It is not ranked again, and Eq. 9 is not its norm.
    mean = ranks.mean(axis=0)
    products = (counts * ranks * mean).sum(axis=-1)
    squares = rank_squares(values, counts) * (counts * mean**2).sum(axis=-1)
    return cosine(products, squares, counts)
