"""Noise ceilings, transcribed literally: one person and one trial at a time."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import rankdata

from contstim.arrays import FloatArray
from contstim.experiments.analysis import measures


def ranks(values: list[float]) -> list[float]:
    """Signed average ranks of what is not zero."""
    known = [v for v in values if v != 0]
    sizes = iter(rankdata(np.abs(known)).tolist())
    return [0.0 if v == 0 else math.copysign(next(sizes), v) for v in values]


def norm(values: list[float]) -> float:
    """The root of k(k+1)(2k+1)/6."""
    k = sum(v != 0 for v in values)
    return math.sqrt(k * (k + 1) * (2 * k + 1) / 6)


def literal_accuracy(ratings: FloatArray, *, including_self: bool) -> list[float]:
    people, trials = ratings.shape
    found = []
    for person in range(people):
        points = 0.0
        for trial in range(trials):
            voters = [p for p in range(people) if including_self or p != person]
            second = sum(ratings[p, trial] > 0 for p in voters)
            if 2 * second == len(voters):
                points += 0.5
            else:
                points += (2 * second > len(voters)) == (ratings[person, trial] > 0)
        found.append(points / trials)
    return found


def literal_cosines(ratings: FloatArray) -> tuple[list[float], list[float]]:
    """Lower and upper."""
    people, trials = ratings.shape
    signed = [ranks(row.tolist()) for row in ratings]
    unit = [[r / norm(row) for r in row] for row in signed]
    lower, upper = [], []
    for person in range(people):
        others = [row for p, row in enumerate(unit) if p != person]
        # Rounded, so that what ties is equal
        mean = [round(sum(row[t] for row in others) / len(others), 9) for t in range(trials)]
        again = ranks(mean)
        product = sum(a * b for a, b in zip(again, unit[person], strict=True))
        lower.append(product / norm(mean) if any(mean) else 0.0)
        everyone = [sum(row[t] for row in unit) / people for t in range(trials)]
        length = math.sqrt(sum(v * v for v in everyone))
        product = sum(a * b for a, b in zip(everyone, unit[person], strict=True))
        upper.append(product / length if any(everyone) else 0.0)
    return lower, upper


@pytest.mark.parametrize(("people", "trials"), [(2, 5), (3, 12), (10, 40), (7, 1)])
@pytest.mark.parametrize("seed", [0, 1])
def test_ceilings_are_their_transcription(people: int, trials: int, seed: int) -> None:
    ratings = np.random.default_rng(seed).integers(1, 7, (people, trials)).astype(float) - 3.5
    for including_self, ceiling in (
        (False, measures.accuracy_lower),
        (True, measures.accuracy_upper),
    ):
        expected = literal_accuracy(ratings, including_self=including_self)
        assert ceiling(ratings).tolist() == pytest.approx(expected)
    lower, upper = literal_cosines(ratings)
    assert measures.cosine_lower(ratings).tolist() == pytest.approx(lower)
    assert measures.cosine_upper(ratings).tolist() == pytest.approx(upper)


@pytest.mark.parametrize("trials", [8, 40])
@pytest.mark.parametrize("ceiling", [measures.cosine_lower, measures.cosine_upper])
def test_the_order_of_people_and_trials_does_not_matter(
    ceiling: Callable[[FloatArray], FloatArray], trials: int
) -> None:
    """Property; with few trials one pair of ties told apart moved a ceiling by .015."""
    rng = np.random.default_rng(8)
    for _ in range(20):
        ratings = rng.integers(1, 7, (10, trials)).astype(float) - 3.5
        order = rng.permutation(10)
        found = ceiling(ratings[order][:, rng.permutation(trials)])
        assert found.tolist() == pytest.approx(ceiling(ratings)[order].tolist(), abs=1e-12)


def test_people_who_all_give_one_rating_agree_fully() -> None:
    """By hand for the cosine: every rank is 2, so 3 · 2 · 2 / 14 of the ranks 1, 2, 3."""
    ratings = np.full((4, 3), -1.5)
    assert measures.accuracy_lower(ratings).tolist() == [1.0] * 4
    assert measures.accuracy_upper(ratings).tolist() == [1.0] * 4
    assert measures.cosine_lower(ratings) == pytest.approx(12 / 14)
    assert measures.cosine_upper(ratings) == pytest.approx(6 / math.sqrt(14 * 3))


def test_the_upper_ceiling_is_not_below_the_lower_on_average() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        ratings = rng.integers(1, 7, (6, 30)).astype(float) - 3.5
        assert measures.accuracy_upper(ratings).mean() >= measures.accuracy_lower(ratings).mean()
        assert measures.cosine_upper(ratings).mean() >= measures.cosine_lower(ratings).mean()
