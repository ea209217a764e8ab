"""Measures against NumPy, and against numbers worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.experiments.benchmarks.desiderata.carriers import Carrier
from contstim.experiments.benchmarks.desiderata.frequencies import (
    WordFrequencies,
    read_frequencies,
)
from contstim.experiments.benchmarks.desiderata.measures import Correlation, Splitting


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


def test_log_frequencies_are_laplaces() -> None:
    """Outside witness: fractions by hand, (count + 1) / (5 tokens + 2 types)."""
    frequencies = WordFrequencies({"cat": 4, "dog": 1})
    assert frequencies.log_frequency("cat") == pytest.approx(math.log(5 / 7))
    assert frequencies.log_frequency("dog") == pytest.approx(math.log(2 / 7))
    assert frequencies.log_frequency("owl") == pytest.approx(math.log(1 / 7))


def test_frequencies_are_counted_in_a_text_or_read_from_a_list(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("The cat saw the dog.\nthe end\n")
    counted = read_frequencies(text)
    assert counted.counts == {"The": 1, "cat": 1, "saw": 1, "the": 2, "dog": 1, "end": 1}
    table = tmp_path / "list.csv"
    table.write_text("word,count\ncat,3\nX-ray,0\n")
    assert read_frequencies(table).counts == {"cat": 3, "X-ray": 0}
    assert counted.sample(3, seed=1) == counted.sample(3, seed=1)
    assert set(counted.sample(99, seed=0)) == {"cat", "saw", "the", "dog", "end"}
    with pytest.raises(InputError, match="no word of small letters"):
        WordFrequencies({"X-ray": 3}).sample(1, seed=0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("word,n\ncat,3\n", "lacks count"),
        ("word,count\ncat,3\ncat,4\n", "counts 'cat' twice"),
        ("word,count\ncat,-3\n", "row 0: '-3' under count is not a count"),
        ("word,count\ncat,many\n", "row 0: 'many' under count is not a count"),
    ],
)
def test_a_bad_frequency_list_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "list.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_frequencies(path)


def test_carriers_hold_a_word_in_their_gap() -> None:
    carrier = Carrier("My _ is here!")
    assert carrier.position == 1
    assert carrier.holding("cat").text == "My cat is here!"
    assert Carrier("_").holding("cat").text == "cat."
    for text in ("My word", "_ and _", "My _s", ""):
        with pytest.raises(InputError, match="no carrier"):
            Carrier(text)
