"""Measured times of units of work: means, and what becomes of old ones."""

import json
from pathlib import Path

import pytest

from contstim.store.times import Times


def test_means_are_those_of_all_units_and_survive(tmp_path: Path) -> None:
    """Witness: 30 s for 4 units, by hand; a search that is cut off adds seconds and no unit."""
    path = tmp_path / "times.json"
    times = Times(path)
    assert times.get("search").a_unit is None
    for units, seconds in ((1, 5.0), (3, 15.0), (0, 10.0)):
        times.add("search", units=units, seconds=seconds, rows=7)
    times.save()
    measured = Times(path).get("search")
    assert measured.a_unit == pytest.approx(30 / 4)
    assert measured.rows == 21


def test_times_of_a_model_that_is_trained_again_are_forgotten(tmp_path: Path) -> None:
    times = Times(tmp_path / "times.json")
    again = ["score hf:models/a", "load hf:models/a@chain", "search 12 hf:models/a kenlm:b.arpa"]
    others = ["score hf:models/ab", "search 12 hf:models/ab kenlm:b.arpa", "train models/a {}"]
    for key in (*again, *others):
        times.add(key, units=1, seconds=1)
    for specification in ("hf:models/a", "hf:models/ab"):
        times.add_context(specification, {"nats": 1.0})
    times.forget_models({"hf:models/a", "hf:models/a@chain"})
    assert [*times.contexts] == ["hf:models/ab"]
    assert [times.get(key).a_unit for key in (*again, *others)] == [None] * 3 + [1.0] * 3


def test_few_units_of_a_resumed_run_change_a_mean_by_their_share(tmp_path: Path) -> None:
    times = Times(tmp_path / "times.json")
    times.add("search", units=50, seconds=500)
    times.add("search", units=1, seconds=0.1)
    assert times.get("search").a_unit == pytest.approx(500.1 / 51)


@pytest.mark.parametrize("content", ["{", "[]", '{"machine": "other", "times": {"a": {}}}'])
def test_damaged_times_and_those_of_other_machines_are_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "times.json"
    path.write_text(content)
    times = Times(path)
    assert times.get("a").a_unit is None
    times.add("b", units=1, seconds=2)
    times.save()
    assert json.loads(path.read_text())["times"]["b"]["seconds"] == 2
