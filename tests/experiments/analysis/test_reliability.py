"""Shrunken ratings and their reliability, by hand and against planted values."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from contstim.experiments.analysis.ratings import Ratings
from contstim.experiments.analysis.reliability import ItemReliability, item_reliabilities
from contstim.files.arrays import FloatArray
from contstim.items.stimuli import Condition
from tests.experiments.analysis.mixed.ratings import THRESHOLDS, build_group


def build_ratings(values: FloatArray, condition: Condition = Condition.RANDOM_NATURAL) -> Ratings:
    group = build_group(1, values, np.ones((1, values.shape[1])))
    trials = tuple(replace(trial, condition=condition) for trial in group.trials)
    return Ratings(("a",), (replace(group, trials=trials),))


def compute_reliabilities(ratings: Ratings) -> list[ItemReliability]:
    rows = list(item_reliabilities(ratings).values())
    assert all(row is not None for row in rows)
    return [row for row in rows if row is not None]


def test_two_trials_by_hand() -> None:
    """Means 2 and 5, each 1.5 from the middle; variances within 2 and 0, so 1 for a single rating.

    The error variance of a mean of two is 1 / 2, that of items 1.5² - 1 / 2 = 1.75. The reliability
    is 1.75 / 2.25 = 7 / 9.
    """
    first, second = compute_reliabilities(build_ratings(np.array([[1.0, 5.0], [3.0, 5.0]])))
    assert first.reliability == second.reliability == pytest.approx(7 / 9)
    assert first.shrunken_rating == pytest.approx(3.5 - 1.5 * 7 / 9)
    assert first.standard_error == pytest.approx(np.sqrt(7 / 9 / 2))
    # Two choices for sentence_1, two for sentence_2. Witness: hidden values drawn from the prior,
    # weighted by the likelihood of these choices.
    rng = np.random.default_rng(0)
    spread = 1.2 * np.exp(0.5 * rng.standard_normal(400_000))
    hidden = spread * rng.standard_normal((2, 400_000))
    weights = norm.cdf(-hidden[0]) ** 2 * norm.cdf(hidden[1]) ** 2
    assert second.sure_of_2 == pytest.approx(weights[hidden[1] > 0].sum() / weights.sum(), abs=0.01)
    assert first.sure_of_2 == pytest.approx(1 - second.sure_of_2)


def test_planted_values_are_recovered() -> None:
    """Ratings are not rounded to the scale: errors and reliability match the planted values."""
    rng = np.random.default_rng(1)
    truth = 3.5 + rng.normal(0, 0.8, 4_000)
    ratings = build_ratings(truth + rng.normal(0, 1.4, (5, 4_000)))
    rows = compute_reliabilities(ratings)
    shrunken = np.array([row.shrunken_rating for row in rows])
    means = ratings.groups[0].ratings.mean(axis=0)
    error = np.sqrt(((shrunken - truth) ** 2).mean())
    assert error < np.sqrt(((means - truth) ** 2).mean())
    assert error == pytest.approx(rows[0].standard_error, rel=0.05)
    new_means = truth + rng.normal(0, 1.4, (5, 4_000)).mean(axis=0)
    # The reliability is the correlation with the mean ratings of five other participants
    assert np.corrcoef(means, new_means)[0, 1] == pytest.approx(rows[0].reliability, abs=0.04)


def test_nine_of_seventeen_choices_are_not_conclusive() -> None:
    """Even if the nine are confident and all other trials are clear."""
    split = np.where(np.arange(17) < 9, 6.0, 3.0)
    clear = np.where(np.arange(12) % 2, 5.0, 2.0)
    values = np.column_stack([np.tile(clear, (17, 1)), split])
    assert 0.5 < compute_reliabilities(build_ratings(values))[-1].sure_of_2 < 0.7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("condition", "mean", "spread"),
    [
        (Condition.NATURAL_CONTROVERSIAL, 0.0, 0.97),
        (Condition.NATURAL_SYNTHETIC, -1.43, 0.98),
        (Condition.SYNTHETIC_SYNTHETIC, 0.0, 1.65),
        (Condition.RANDOM_NATURAL, 0.0, 1.26),
    ],
)
def test_probabilities_are_calibrated(condition: Condition, mean: float, spread: float) -> None:
    """Witness: trials with drawn hidden values, which vary as in experiment 1 of the 2023 study.

    Participants have a small bias, and differ in how easily they rate themselves as confident.
    """
    rng, claimed, truth = np.random.default_rng(4), [], []
    for trials, people in [(n, people) for people in range(5, 19) for n in (8, 20, 60)] * 6:
        hidden = rng.normal(mean, spread, trials)
        answers = hidden + rng.normal(0, 0.1, (people, 1)) + rng.normal(size=(people, trials))
        thresholds = THRESHOLDS * np.exp(rng.normal(0, 0.7, (people, 1, 1)))
        ratings = build_ratings(1.0 + (answers[..., None] > thresholds).sum(axis=2), condition)
        claimed += [row.sure_of_2 for row in compute_reliabilities(ratings)]
        truth += (hidden > 0).tolist()
    confidence = np.maximum(claimed, 1 - np.array(claimed))
    is_right = (np.array(claimed) > 0.5) == np.array(truth)
    for lowest, share in ((0.8, 0.77), (0.9, 0.87), (0.95, 0.92)):
        in_bin = (confidence >= lowest) & (confidence < lowest + 0.05)
        assert in_bin.sum() > 100
        assert is_right[in_bin].mean() >= share
    # Nor underconfident: with these numbers of participants, most preferences are clear
    assert (confidence > 0.9).mean() > 0.5


@pytest.mark.parametrize("mean", [-1.5, -0.7, 0.0, 0.7, 1.5])
@pytest.mark.parametrize("condition", [Condition.MINIMAL_PAIR, Condition.NATURAL_SYNTHETIC])
def test_oriented_preferences_are_calibrated(condition: Condition, mean: float) -> None:
    """Witness: drawn hidden values of trials in which most participants chose sentence_2."""
    rng, claimed, truth = np.random.default_rng(9), [], []
    for _ in range(60):
        hidden = rng.normal(mean, 1.0, 60)
        chosen = np.where(hidden + rng.normal(size=(7, 60)) > 0, 5.0, 2.0)
        rows = compute_reliabilities(build_ratings(chosen, condition))
        is_majority = (chosen > 3.5).mean(axis=0) > 0.5
        claimed += [row.sure_of_2 for row, keep in zip(rows, is_majority, strict=True) if keep]
        truth += (hidden[is_majority] > 0).tolist()
    assert np.mean(claimed) == pytest.approx(np.mean(truth), abs=0.03)


def test_swapping_sentences_mirrors_the_results() -> None:
    """Property: results do not depend on which sentence is sentence_1."""
    values = np.random.default_rng(2).integers(1, 7, (6, 12)).astype(np.float64)
    swapped = values.copy()
    swapped[:, ::2] = 7 - swapped[:, ::2]
    for index, (row, other) in enumerate(
        zip(
            compute_reliabilities(build_ratings(values)),
            compute_reliabilities(build_ratings(swapped)),
            strict=True,
        )
    ):
        sign = -1 if index % 2 == 0 else 1
        assert other.shrunken_rating - 3.5 == pytest.approx(sign * (row.shrunken_rating - 3.5))
        assert other.standard_error == pytest.approx(row.standard_error)
        assert sign * (other.sure_of_2 - 0.5) == pytest.approx(row.sure_of_2 - 0.5)
