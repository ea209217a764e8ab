"""Reliability of each item: mean ratings, shrunk towards the middle of the scale.

The mean rating of a few participants reflects both the preference of people in general and chance.
In trials of one condition, with n participants each,

    variance of mean ratings around the middle of the scale = V(items) + V(people) / n

where V(people) is the variance of ratings within trials. The reliability of a mean rating is the
part of this variance that is not chance, V(items) / (V(items) + V(people) / n). The mean is shrunk
by this factor towards the middle, the expected value without any preference (empirical Bayes; James
& Stein 1961, Efron & Morris 1975). The mean of all trials would be a wrong target. That mean
depends on a convention: which sentence of each trial is called sentence_1.

Only choices, without confidence, are used to estimate which sentence people in general prefer. The
confidence of a rating depends on the person as much as on the trial. A person prefers sentence_2 of
a trial with probability Phi(h), where h is the trial's latent value (Thurstone 1927). The values of
h are normally distributed over the trials of a condition. The variance of h is unknown; the prior
of this variance is centred on the values of the 2023 study. The mean of h is unknown in conditions
in which sentence_1 is always the natural or the acceptable sentence. In all other conditions, the
mean is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contstim.experiments.analysis.agreement import rated_trials
from contstim.experiments.analysis.ratings import TESTING, Ratings
from contstim.items.stimuli import Condition, Trial
from contstim.wording import grouped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contstim.files.arrays import FloatArray
    from contstim.items.scale import Scale

# Possible standard deviations of the latent value h over trials, and the prior of these standard
# deviations. The unit is the standard deviation of the noise of a single answer. For the choices of
# experiment 1 of Golan et al. (2023), the maximum-likelihood standard deviations are .97
# (natural-controversial), .98 (natural-synthetic), 1.26 (random-natural) and 1.65
# (synthetic-synthetic).
_SPREADS = np.exp(np.linspace(np.log(0.15), np.log(6.0), 24))
_SPREAD_PRIOR = np.exp(-0.5 * (np.log(_SPREADS / 1.2) / 0.5) ** 2)
# Conditions in which sentence_1 is the natural or the acceptable sentence, so that the mean of
# latent values is not 0. `_MEANS` are possible means. The maximum-likelihood means of the 2023
# study are -1.43 for natural-synthetic and -3.42 for catch trials.
_ORIENTED = (Condition.NATURAL_SYNTHETIC, Condition.MINIMAL_PAIR, Condition.CATCH)
_MEANS = np.linspace(-5.0, 5.0, 21)
_MEAN_PRIOR = np.exp(-0.5 * (_MEANS / 2.0) ** 2)
_VALUES = np.linspace(-9.95, 9.95, 200)  # grid of values of h, none of which is 0


RatedTrial: TypeAlias = "tuple[Trial, FloatArray, ItemReliability]"
"""A trial, its ratings (n_people,), and its reliability."""

SURE = 0.95  # a preference with at least this probability is called sure


@dataclass(frozen=True)
class ItemReliability:
    """Preference of people in general on a trial, estimated from the trial's ratings.

    Attributes:
        shrunken_rating: mean rating, shrunk towards the middle of the scale.
        standard_error: standard error of the shrunken rating, in steps of the scale.
        reliability: reliability of the mean rating, 0 (chance) to 1.
        sure_of_2: probability that people in general prefer sentence_2, 0 to 1.
    """

    shrunken_rating: float
    standard_error: float
    reliability: float
    sure_of_2: float

    @property
    def sureness(self) -> float:
        """Probability of the more probable preference, for sentence_1 or sentence_2; 1/2 to 1."""
        return max(self.sure_of_2, 1 - self.sure_of_2)


def item_reliabilities(ratings: Ratings) -> dict[str, ItemReliability | None]:
    """Return trial_id → reliability of each rated trial; see `reliabilities_of`."""
    rated = [row for condition in Condition for row in rated_trials(ratings, condition)]
    return reliabilities_of(rated, ratings.scale)


def reliabilities_of(
    rated_trials: Iterable[tuple[Trial, FloatArray]], scale: Scale
) -> dict[str, ItemReliability | None]:
    """Return trial_id → reliability, estimated separately for each condition.

    The reliability is None if no trial of the condition has two ratings, because V(people) cannot
    then be estimated.
    """
    middle = scale.middle
    by_condition = grouped((trial.condition, (trial.trial_id, r)) for trial, r in rated_trials)
    reliabilities: dict[str, ItemReliability | None] = {}
    for condition, trials in by_condition.items():
        names = [name for name, _ in trials]
        # (n_trials,): mean rating, number of people, sum of squares around the mean, and number of
        # people who prefer sentence_2
        mean, people_of, squares_of, second_of = np.array(
            [
                (r.mean(), len(r), ((r - r.mean()) ** 2).sum(), (1 + np.sign(r - middle)).sum() / 2)
                for _, r in trials
            ]
        ).T
        freedom = (people_of - 1).sum()
        if freedom == 0:
            reliabilities |= dict.fromkeys(names)
            continue
        chance = squares_of.sum() / freedom / people_of  # (n_trials,) variance of a mean rating
        items = max(0.0, float(((mean - middle) ** 2 - chance).mean()))
        # The minimum avoids a division by zero if all ratings are in the middle of the scale
        share = items / np.maximum(items + chance, 1e-300)
        shrunken = middle + share * (mean - middle)
        errors = np.sqrt(share * chance)
        sure = _sure_of_2(second_of, people_of, oriented=condition in _ORIENTED)
        trial_values = np.column_stack([shrunken, errors, share, sure]).tolist()
        reliabilities |= {
            name: ItemReliability(*values) for name, values in zip(names, trial_values, strict=True)
        }
    return reliabilities


def _sure_of_2(second: FloatArray, people: FloatArray, *, oriented: bool) -> FloatArray:
    """Return the posterior probability that a trial's latent value h is positive, (n_trials,).

    Args:
        second: (n_trials,), number of people who prefer sentence_2.
        people: (n_trials,), number of people.
        oriented: whether sentence_1 is always the natural or the acceptable sentence, so that the
            mean of h is estimated; otherwise, the mean is 0.
    """
    from scipy.special import log_ndtr

    votes, vote_indices, counts = np.unique(
        np.column_stack([second, people - second]), axis=0, return_inverse=True, return_counts=True
    )
    # Trials with equal votes have equal results, so each distinct row of votes is computed once.
    # Likelihoods are (n_votes, n_values), scaled to a maximum of 1 in each row
    logs = votes @ np.stack([log_ndtr(_VALUES), log_ndtr(-_VALUES)])
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    means, mean_prior = (_MEANS, _MEAN_PRIOR) if oriented else (np.zeros(1), np.ones(1))
    # (n_means, n_spreads, n_values) distributions of h
    distances = (_VALUES - means[:, None, None]) / _SPREADS[:, None]
    densities = np.exp(-0.5 * distances**2) + 1e-300
    densities = (densities / densities.sum(axis=2, keepdims=True)).reshape(-1, len(_VALUES))
    positive = _VALUES > 0
    of_votes = likelihood @ densities.T  # (n_votes, n_distributions)
    of_positive = likelihood[:, positive] @ densities[:, positive].T
    log_weights = counts @ np.log(of_votes) + np.log(np.outer(mean_prior, _SPREAD_PRIOR).ravel())
    weights = np.exp(log_weights - log_weights.max())
    # Rounded, so that equal numbers of choices of sentence_1 and sentence_2 give exactly one half
    sure: FloatArray = np.round((of_positive / of_votes) @ weights / weights.sum(), 12)
    return sure[vote_indices.ravel()]


def judged_trials(ratings: Ratings) -> dict[Condition, list[RatedTrial]]:
    """Return the trials of each condition with their reliabilities.

    Catch trials and conditions whose reliability cannot be estimated are left out.
    """
    reliabilities = item_reliabilities(ratings)
    by_condition = {
        condition: [
            (trial, rated, reliability)
            for trial, rated in rated_trials(ratings, condition)
            if (reliability := reliabilities[trial.trial_id]) is not None
        ]
        for condition in TESTING
    }
    return {condition: trials for condition, trials in by_condition.items() if trials}


def mean_reliability(trials: list[RatedTrial]) -> float:
    """Return the mean reliability of trials, which may have different numbers of raters."""
    return float(np.mean([reliability.reliability for *_, reliability in trials]))
