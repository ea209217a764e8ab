"""Sureness of people of each item: mean ratings, drawn towards the middle by their chance.

Ten people's mean rating of a trial holds what people in general think of it, and chance. In trials
of one condition, with n people each,

    variance of mean ratings around the middle of the scale = V(items) + V(people) / n

where V(people) is the variance of ratings within trials. The share that is not chance, V(items) /
(V(items) + V(people) / n), is the reliability of a mean rating, and by it the mean is drawn towards
the middle, which is what nobody having a preference would give (empirical Bayes; James & Stein
1961, Efron & Morris 1975). Around the middle and not around a mean, because which sentence is
called sentence_1 is a convention.

Which sentence people in general prefer is asked of their choices alone, since how far a rating lies
from the middle says as much of the person as of the trial. A person prefers sentence_2 of a trial
with the probability Phi(h), where h, the trial's hidden value, is normal within a condition
(Thurstone 1927). Its variance is unknown, with a prior around that of the 2023 study. Its mean is
unknown too where sentence_1 is the natural or the acceptable sentence; elsewhere it is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contstim.experiments.analysis.agreement import rated_trials
from contstim.experiments.analysis.ratings import TESTING
from contstim.items.stimuli import Condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contstim.experiments.analysis.ratings import Ratings
    from contstim.files.arrays import FloatArray
    from contstim.items.scale import Scale
    from contstim.items.stimuli import Trial

# Standard deviations of trials' hidden values, in that of single answers, and what is expected of
# them beforehand. The choices of experiment 1 of Golan et al. (2023) are likeliest under .97
# (natural-controversial), .98 (natural-synthetic), 1.26 (random-natural), 1.65
# (synthetic-synthetic).
_SPREADS = np.exp(np.linspace(np.log(0.15), np.log(6.0), 24))
_SPREAD_EXPECTED = np.exp(-0.5 * (np.log(_SPREADS / 1.2) / 0.5) ** 2)
# Means, where sentence_1 is the natural or the acceptable one: -1.43 with synthetic sentences and
# -3.42 in catch trials.
_ORIENTED = (Condition.NATURAL_SYNTHETIC, Condition.MINIMAL_PAIR, Condition.CATCH)
_MEANS = np.linspace(-5.0, 5.0, 21)
_MEAN_EXPECTED = np.exp(-0.5 * (_MEANS / 2.0) ** 2)
_VALUES = np.linspace(-9.95, 9.95, 200)  # of h; 0 lies between two


RatedTrial: TypeAlias = "tuple[Trial, FloatArray, ItemReliability]"
"""A trial, its ratings (n_people,), and what these tell of people in general."""

SURE = 0.95  # how likely a preference of people in general is, from which a trial counts as sure


@dataclass(frozen=True)
class ItemReliability:
    """Preference of people in general on a trial, as far as those who rated it tell.

    Attributes:
        shrunken_rating: the mean rating, drawn towards the middle of the scale, which it is where
            nothing but chance is in it.
        standard_error: of the shrunken rating, in steps of the scale.
        reliability: of the mean rating, 0 (chance) to 1.
        sure_of_2: how likely it is that people in general prefer sentence_2, 0 to 1.
    """

    shrunken_rating: float
    standard_error: float
    reliability: float
    sure_of_2: float

    @property
    def sureness(self) -> float:
        """Probability that people in general prefer the sentence that most raters did."""
        return max(self.sure_of_2, 1 - self.sure_of_2)


def item_reliabilities(ratings: Ratings) -> dict[str, ItemReliability | None]:
    """Reliability of each trial of an experiment, by its identifier; see `reliabilities_of`."""
    rated = [row for condition in Condition for row in rated_trials(ratings, condition)]
    return reliabilities_of(rated, ratings.scale)


def reliabilities_of(
    rated_trials: Iterable[tuple[Trial, FloatArray]], scale: Scale
) -> dict[str, ItemReliability | None]:
    """Reliability of each trial, by its identifier.

    Each condition is judged by itself. None where no trial of the condition was rated by
    two people, so that nobody knows what is chance.

    Args:
        rated_trials: trials with their ratings, (n_people,), one at least.
        scale: of the ratings.
    """
    middle = scale.middle
    # By condition a row a trial: its name, its mean rating, its number of people, the sum of
    # squares around the mean, and how many prefer sentence_2.
    rows: dict[Condition, list[tuple[str, float, int, float, float]]] = {}
    for trial, rated in rated_trials:
        mean_rating, second = float(rated.mean()), float((1 + np.sign(rated - middle)).sum() / 2)
        squares = float(((rated - mean_rating) ** 2).sum())
        row = trial.trial_id, mean_rating, len(rated), squares, second
        rows.setdefault(trial.condition, []).append(row)
    reliabilities: dict[str, ItemReliability | None] = {}
    for condition, of_condition in rows.items():
        names = [name for name, *_ in of_condition]
        # (n_trials,)
        mean, people_of, squares_of, second_of = np.array([row[1:] for row in of_condition]).T
        freedom = (people_of - 1).sum()
        if freedom == 0:
            reliabilities |= dict.fromkeys(names)
            continue
        chance = squares_of.sum() / freedom / people_of  # (n_trials,) variance of a mean rating
        items = max(0.0, float(((mean - middle) ** 2 - chance).mean()))
        # Where both are zero everybody chose the middle, which the scale does not have
        share = items / np.maximum(items + chance, 1e-300)
        shrunken = middle + share * (mean - middle)
        errors = np.sqrt(share * chance)
        sure = _sure_of_2(second_of, people_of, oriented=condition in _ORIENTED)
        of_trials = np.column_stack([shrunken, errors, share, sure]).tolist()
        reliabilities |= {
            name: ItemReliability(*values) for name, values in zip(names, of_trials, strict=True)
        }
    return reliabilities


def _sure_of_2(second: FloatArray, people: FloatArray, *, oriented: bool) -> FloatArray:
    """(n_trials,) how likely h is positive, for what its distribution may be in all the trials.

    Args:
        second: (n_trials,) how many people prefer sentence_2.
        people: (n_trials,) of how many.
        oriented: whether sentence_1 is another kind of sentence than sentence_2, so that the mean
            of h is unknown too; else it is 0, because which is which is a convention.
    """
    from scipy.special import log_ndtr

    votes, places, counts = np.unique(
        np.column_stack([second, people - second]),
        axis=0,
        return_inverse=True,
        return_counts=True,
    )
    # (n_votes, n_values), of which the largest in a row is 1
    logs = votes @ np.stack([log_ndtr(_VALUES), log_ndtr(-_VALUES)])
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    means, expected = (_MEANS, _MEAN_EXPECTED) if oriented else (np.zeros(1), np.ones(1))
    # (n_means, n_spreads, n_values) distributions of h
    distances = (_VALUES - means[:, None, None]) / _SPREADS[:, None]
    densities = np.exp(-0.5 * distances**2) + 1e-300
    densities = (densities / densities.sum(axis=2, keepdims=True)).reshape(-1, len(_VALUES))
    positive = _VALUES > 0
    of_votes = likelihood @ densities.T  # (n_votes, n_distributions)
    of_positive = likelihood[:, positive] @ densities[:, positive].T
    # How likely each distribution is, by all trials
    log_weights = counts @ np.log(of_votes) + np.log(np.outer(expected, _SPREAD_EXPECTED).ravel())
    weights = np.exp(log_weights - log_weights.max())
    # Rounded, so that equal votes for both are exactly one half
    sure: FloatArray = np.round((of_positive / of_votes) @ weights / weights.sum(), 12)
    return sure[places.ravel()]


def judged_trials(ratings: Ratings) -> dict[Condition, list[RatedTrial]]:
    """Trials, ratings and what these tell, by condition; conditions that tell nothing are left out.

    Catch trials are left out too: they ask whether people attend.
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


def by_sureness(judged: Mapping[Condition, list[RatedTrial]]) -> list[RatedTrial]:
    """The trials of all conditions, those that people are least sure of first."""
    # Where likelihoods are equal to the last digit, the rating farther from the middle is surer
    return sorted(
        (row for trials in judged.values() for row in trials),
        key=lambda row: (row[2].sureness, abs(row[2].shrunken_rating - row[0].scale.middle)),
    )


def mean_reliability(trials: list[RatedTrial]) -> float:
    """Over the trials of a condition, which numbers of people may differ for."""
    return float(np.mean([reliability.reliability for *_, reliability in trials]))
