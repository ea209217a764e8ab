"""Ratings drawn towards the middle: by hand, and against truths that were planted."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from contstim.experiments.analysis.ratings import Ratings
from contstim.experiments.analysis.reliability import ItemReliability, item_reliabilities
from contstim.files.arrays import FloatArray
from contstim.items.stimuli import Condition
from tests.experiments.analysis.mixed.ratings import THRESHOLDS, group


def rated(values: FloatArray, condition: Condition = Condition.RANDOM_NATURAL) -> Ratings:
    made = group(1, values, np.ones((1, values.shape[1])))
    trials = tuple(replace(trial, condition=condition) for trial in made.trials)
    return Ratings(("a",), (replace(made, trials=trials),))


def reliabilities_of(ratings: Ratings) -> list[ItemReliability]:
    rows = list(item_reliabilities(ratings).values())
    assert all(row is not None for row in rows)
    return [row for row in rows if row is not None]


def test_two_trials_by_hand() -> None:
    """Means 2 and 5, each 1.5 from the middle; variances within 2 and 0, so 1 of one rating.

    Chance is 1 / 2 of a mean of two, items 1.5² - 1 / 2 = 1.75: reliability 1.75 / 2.25 = 7 / 9.
    """
    first, second = reliabilities_of(rated(np.array([[1.0, 5.0], [3.0, 5.0]])))
    assert first.reliability == second.reliability == pytest.approx(7 / 9)
    assert first.shrunken_rating == pytest.approx(3.5 - 1.5 * 7 / 9)
    assert first.standard_error == pytest.approx(np.sqrt(7 / 9 / 2))
    # Two choices for sentence_1, two for sentence_2. Witness: hidden values that are drawn as is
    # expected beforehand, weighted by how likely these choices are under them.
    rng = np.random.default_rng(0)
    spread = 1.2 * np.exp(0.5 * rng.standard_normal(400_000))
    hidden = spread * rng.standard_normal((2, 400_000))
    weights = norm.cdf(-hidden[0]) ** 2 * norm.cdf(hidden[1]) ** 2
    assert second.sure_of_2 == pytest.approx(weights[hidden[1] > 0].sum() / weights.sum(), abs=0.01)
    assert first.sure_of_2 == pytest.approx(1 - second.sure_of_2)


def test_planted_truths_lie_where_they_are_said_to_lie() -> None:
    """Without the rounding of a scale: errors, reliability and sides are those of the planted."""
    rng = np.random.default_rng(1)
    truth = 3.5 + rng.normal(0, 0.8, 4_000)
    ratings = rated(truth + rng.normal(0, 1.4, (5, 4_000)))
    rows = reliabilities_of(ratings)
    shrunken = np.array([row.shrunken_rating for row in rows])
    means = ratings.groups[0].ratings.mean(axis=0)
    error = np.sqrt(((shrunken - truth) ** 2).mean())
    assert error < np.sqrt(((means - truth) ** 2).mean())
    assert error == pytest.approx(rows[0].standard_error, rel=0.05)
    again = truth + rng.normal(0, 1.4, (5, 4_000)).mean(axis=0)
    # What five other people say correlates with what these say by the reliability
    assert np.corrcoef(means, again)[0, 1] == pytest.approx(rows[0].reliability, abs=0.04)


def test_nine_of_seventeen_answers_make_nobody_sure() -> None:
    """However sure those nine are, and however clear all other trials."""
    split = np.where(np.arange(17) < 9, 6.0, 3.0)
    clear = np.where(np.arange(12) % 2, 5.0, 2.0)
    values = np.column_stack([np.tile(clear, (17, 1)), split])
    assert 0.5 < reliabilities_of(rated(values))[-1].sure_of_2 < 0.7


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
    """Witness: trials whose truth is drawn, as they vary in experiment 1 of the 2023 study.

    People lean a little, and differ in how readily they call themselves sure.
    """
    rng, said, truth = np.random.default_rng(4), [], []
    for trials, people in [(n, people) for people in range(5, 19) for n in (8, 20, 60)] * 6:
        hidden = rng.normal(mean, spread, trials)
        answers = hidden + rng.normal(0, 0.1, (people, 1)) + rng.normal(size=(people, trials))
        thresholds = THRESHOLDS * np.exp(rng.normal(0, 0.7, (people, 1, 1)))
        shown = rated(1.0 + (answers[..., None] > thresholds).sum(axis=2), condition)
        said += [row.sure_of_2 for row in reliabilities_of(shown)]
        truth += (hidden > 0).tolist()
    stated = np.maximum(said, 1 - np.array(said))
    right = (np.array(said) > 0.5) == np.array(truth)
    for least, share in ((0.8, 0.77), (0.9, 0.87), (0.95, 0.92)):
        some = (stated >= least) & (stated < least + 0.05)
        assert some.sum() > 100
        assert right[some].mean() >= share
    # Nor less sure than may be: most preferences of so many people are clear
    assert (stated > 0.9).mean() > 0.5


@pytest.mark.parametrize("mean", [-1.5, -0.7, 0.0, 0.7, 1.5])
@pytest.mark.parametrize("condition", [Condition.MINIMAL_PAIR, Condition.NATURAL_SYNTHETIC])
def test_oriented_preferences_are_calibrated(condition: Condition, mean: float) -> None:
    """Witness: drawn hidden values, of trials in which most people chose sentence_2."""
    rng, claimed, truth = np.random.default_rng(9), [], []
    for _ in range(60):
        hidden = rng.normal(mean, 1.0, 60)
        chosen = np.where(hidden + rng.normal(size=(7, 60)) > 0, 5.0, 2.0)
        rows = reliabilities_of(rated(chosen, condition))
        most = (chosen > 3.5).mean(axis=0) > 0.5
        claimed += [row.sure_of_2 for row, is_most in zip(rows, most, strict=True) if is_most]
        truth += (hidden[most] > 0).tolist()
    assert np.mean(claimed) == pytest.approx(np.mean(truth), abs=0.03)


def test_turning_a_trial_turns_what_is_said_of_it() -> None:
    """Property: around the middle of the scale nothing depends on which sentence is sentence_1."""
    values = np.random.default_rng(2).integers(1, 7, (6, 12)).astype(np.float64)
    turned = values.copy()
    turned[:, ::2] = 7 - turned[:, ::2]
    for place, (row, other) in enumerate(
        zip(reliabilities_of(rated(values)), reliabilities_of(rated(turned)), strict=True)
    ):
        sign = -1 if place % 2 == 0 else 1
        assert other.shrunken_rating - 3.5 == pytest.approx(sign * (row.shrunken_rating - 3.5))
        assert other.standard_error == pytest.approx(row.standard_error)
        assert sign * (other.sure_of_2 - 0.5) == pytest.approx(row.sure_of_2 - 0.5)
