"""Scores, triplets and times in the database."""

import json
import sqlite3
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import StoreError
from contstim.items.stimuli import Triplet
from contstim.store import Result, Store, TripletStore
from contstim.store.times import Times
from contstim.words.sentence import Sentence
from tests.store.trails import entries

TRIPLET = Triplet(
    "triplet-1",
    "a",
    "b",
    Sentence.parse("One two."),
    Sentence.parse("Three two."),
    Sentence.parse("One four."),
    *(-1.5,) * 6,
    4.25,
)
STEPS = ((0, 1, 0, "One", "Three", "Three two.", -2.5, -9.125),)
EVALUATIONS = (
    (1, 0, "Three", "Three two.", -2.5, -9.125),
    (2, 1, "five", "Three five.", None, float("-inf")),
)
TRAIL = {"accept": "b", "reject": "a", "steps": STEPS, "evaluations": EVALUATIONS}
TRAILS = (TRAIL, TRAIL | {"accept": "a", "reject": "b"})
FOUND = Result(0, "a", "b", TRIPLET.natural.text, "found", "", TRIPLET, 24, 200, 4)
SKIPPED = replace(FOUND, state="inadmissible", reason="too rare", triplet=None)


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    with Store(path) as store:
        kept = TripletStore(store)
        result = kept.keep("key", FOUND, TRAILS)
        skipped = kept.keep("other", SKIPPED, ())
        assert kept.find("nothing") is None
    with Store(path) as store:
        kept = TripletStore(store)
        assert kept.find("key") == result
        assert kept.naturals() == {TRIPLET.natural.text}
        assert replace(result, id=0) == FOUND
        found = [skipped, result]
        steps = entries(store, found, {"a": "A"}, "steps")
        candidates = entries(store, found, {}, "evaluations")
        assert [*zip(*list(steps.values())[4:], strict=True)] == [*STEPS, *STEPS]
        assert steps["reject"] == ["A", "b"]
        assert candidates["number"] == [0, 1, 0, 1]
        assert candidates["log_prob_accept"] == [-2.5, None, -2.5, None]
        assert candidates["log_prob_reject"][1] == -np.inf
        # A repeated search replaces its earlier result
        again = kept.keep("other", FOUND, TRAILS)
        assert (again.id, again.state) == (skipped.id, "found")


def test_a_full_disk_is_said_and_loses_nothing(tmp_path: Path) -> None:
    """SQLite's own limit on pages stands for the disk's."""
    with Store(tmp_path / "study.sqlite") as store:
        kept = TripletStore(store)
        kept.keep("key", FOUND, TRAILS)
        pages = store.rows("PRAGMA page_count")[0][0]
        store.rows(f"PRAGMA max_page_count = {pages}")
        many = (TRAIL | {"evaluations": EVALUATIONS * 10_000},)
        with pytest.raises(StoreError, match="the disk may be full"):
            kept.keep("many", FOUND, many)
        assert kept.find("many") is None
        store.rows("PRAGMA max_page_count = 1000000")
        kept.keep("many", FOUND, many)
        assert kept.find("many") is not None


def test_floors_are_kept(tmp_path: Path) -> None:
    with Store(tmp_path / "study.sqlite") as store:
        kept = TripletStore(store)
        assert kept.floors("m", "w", 0.25) == {}
        kept.keep_floors("m", "w", 0.25, {7: -20.5, 8: float("-inf")})
        assert kept.floors("m", "w", 0.25) == {7: -20.5, 8: float("-inf")}
        assert kept.floors("m", "w", 0.5) == {}


def test_keeps_scores_by_fingerprint_and_sentence(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    texts = [f"sentence {i}." for i in range(1_200)]
    scores = -np.arange(1_200) / 7
    scores[3] = -np.inf
    with Store(path) as store:
        store.save("model-a", "{}", texts, scores)
    with Store(path) as store:
        np.testing.assert_array_equal(store.log_probs("model-a", texts[::-1]), scores[::-1])
        assert np.isnan(store.log_probs("model-b", texts)).all()
        assert np.isnan(store.log_probs("model-a", ["unseen."])).all()


@pytest.mark.parametrize("exists", [False, True])
def test_work_that_fails_at_first_leaves_no_store(tmp_path: Path, exists: bool) -> None:
    path = tmp_path / "new" / "study.sqlite"
    if exists:
        Store(path).close()
    with pytest.raises(ValueError, match="refused"), Store(path):
        raise ValueError("refused")
    assert path.exists() == path.parent.exists() == exists
    with suppress(ValueError), Store(path) as store:
        store.save("model-a", "{}", ["One two."], np.array([-1.0]))
        raise ValueError("late")
    with Store(path) as store:
        assert store.log_probs("model-a", ["One two."]) == [-1.0]


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    code = f"from contstim.store import Store; Store({str(path)!r})"
    Store(path).close()
    with Store(path):
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "StoreError" in other.stderr
    assert "in use by another process" in other.stderr
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_foreign_and_damaged_files_are_refused(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(b"not a database at all, but long enough to be read as one" * 50)
    with pytest.raises(StoreError, match="not a readable study store"):
        Store(damaged)
    foreign = tmp_path / "foreign.sqlite"
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE other (x)")
    connection.close()
    before = foreign.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        Store(foreign)
    assert foreign.read_bytes() == before


def test_a_store_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    Store(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="another version"):
        Store(path)


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
