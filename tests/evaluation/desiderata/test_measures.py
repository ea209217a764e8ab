"""Measures against NumPy, and against numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from contstim.correlation import Correlation
from contstim.errors import InputError
from contstim.evaluation.desiderata.carriers import Carrier
from contstim.evaluation.desiderata.measures import Splitting


def test_correlation_is_numpys_and_its_interval_fishers() -> None:
    """Outside witnesses: numpy.corrcoef, and Fisher's transformation by hand."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=50)
    y = 0.5 * x + rng.normal(size=50)
    found = Correlation.of(x, y)
    assert found.r == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-12)
    half = 1.959963985 / math.sqrt(50 - 3)
    assert found.low == pytest.approx(math.tanh(math.atanh(found.r) - half), abs=1e-9)
    assert found.high == pytest.approx(math.tanh(math.atanh(found.r) + half), abs=1e-9)
    assert found.n == 50


def test_correlation_leaves_out_what_is_infinite_and_is_nan_where_nothing_varies() -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0, -np.inf])
    found = Correlation.of(x, np.array([2.0, 4.0, 6.0, 8.5, 1.0]))
    assert found.n == 4
    assert found.r == pytest.approx(np.corrcoef(x[:4], [2.0, 4.0, 6.0, 8.5])[0, 1])
    assert math.isnan(Correlation.of(np.ones(5), np.arange(5.0)).r)
    assert math.isnan(Correlation.of(np.arange(3.0), np.arange(3.0)).r)


def test_the_advantage_of_split_words_is_what_was_put_in() -> None:
    """Outside witness: scores made as 2 × log frequency + 3 × split + 1, without noise."""
    log_frequencies = np.array([-1.0, -2.0, -3.0, -4.0, -5.0, -6.0])
    split = np.array([False, False, True, False, True, True])
    scores = 2 * log_frequencies + 3 * split + 1
    found = Splitting.of(scores, log_frequencies, split)
    assert found.share == 0.5
    assert found.single == pytest.approx((-1 - 3 - 7) / 3)
    assert found.several == pytest.approx((-2 - 6 - 8) / 3)
    assert found.advantage == pytest.approx(3.0)
    assert found.standard_error == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("all_split", [True, False])
def test_words_of_one_kind_have_no_advantage(all_split: bool) -> None:
    found = Splitting.of(np.arange(5.0), np.arange(5.0), np.full(5, all_split))
    assert found.share == float(all_split)
    assert math.isnan(found.advantage)
    assert math.isnan(found.single if all_split else found.several)


def test_carriers_hold_a_word_in_their_gap() -> None:
    carrier = Carrier("My _ is here!")
    assert carrier.position == 1
    assert carrier.holding("cat").text == "My cat is here!"
    assert Carrier("_").holding("cat").text == "cat."
    for text in ("My word", "_ and _", "My _s", ""):
        with pytest.raises(InputError, match="not a carrier"):
            Carrier(text)
