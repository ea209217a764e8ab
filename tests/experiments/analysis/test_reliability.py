"""Ratings drawn towards the middle: by hand, and against truths that were planted."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contstim.arrays import FloatArray
from contstim.experiments.analysis.ratings import Ratings
from contstim.experiments.analysis.reliability import ItemReliability, item_reliabilities
from contstim.experiments.analysis.tables import trials_table
from contstim.tables import write_table
from tests.experiments.analysis.mixed.ratings import group


def rated(values: FloatArray) -> Ratings:
    return Ratings(("a",), (group(1, values, np.ones((1, values.shape[1]))),))


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
    # A distance of 7 / 6 in standard errors of .6236: 1.871; .9693 of the normal lies below it
    assert second.sure_of_2 == pytest.approx(0.9693, abs=1e-4)
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
    sure = np.array([row.sure_of_2 for row in rows])
    near = (sure > 0.7) & (sure < 0.8)
    assert (truth[near] > 3.5).mean() == pytest.approx(0.75, abs=0.05)


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


def test_ends_of_the_range() -> None:
    agreed = reliabilities_of(rated(np.array([[2.0, 6.0], [2.0, 6.0]])))
    assert [row.sure_of_2 for row in agreed] == [0, 1]
    assert [row.reliability for row in agreed] == [1, 1]
    # Opposite ratings of every trial: nothing but chance
    torn = reliabilities_of(rated(np.array([[1.0, 6.0], [6.0, 1.0]])))
    assert [(row.shrunken_rating, row.reliability, row.sure_of_2) for row in torn] == [
        (3.5, 0, 0.5)
    ] * 2


def test_a_table_has_empty_cells_where_nobody_knows(tmp_path: Path) -> None:
    ratings = rated(np.array([[2.0, 6.0]]))
    assert set(item_reliabilities(ratings).values()) == {None}
    two = replace(
        ratings,
        groups=(
            *ratings.groups,
            replace(group(2, np.full((2, 1), 4.0), np.ones((1, 1))), number=2),
        ),
    )
    assert reliabilities_of(two)  # the second group says what chance is
    write_table(tmp_path / "trials.csv", trials_table(ratings))
    with (tmp_path / "trials.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["shrunken_rating"] for row in rows] == ["", ""]
    assert [row["mean_rating"] for row in rows] == ["2.0", "6.0"]
