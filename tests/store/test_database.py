"""Scores, triplets, floors and times in the store."""

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

ONE, TWO, THREE = map(Sentence.parse, ("One two.", "Three two.", "One four."))
TRIPLET = Triplet("triplet-1", "a", "b", ONE, TWO, THREE, *(-1.5,) * 6, 4.25)
STEPS = ((0, 1, 0, "One", "Three", "Three two.", -2.5, -9.125),)
EVALUATIONS = (
    (1, 0, "Three", "Three two.", -2.5, -9.125),
    (2, 1, "five", "Three five.", None, float("-inf")),
)
TRAIL = {"accept": "b", "reject": "a", "steps": STEPS, "evaluations": EVALUATIONS}
TRAILS = (TRAIL, TRAIL | {"accept": "a", "reject": "b"})
FOUND = Result(0, "a", "b", TRIPLET.natural.text, "found", "", TRIPLET, 24, 200, 4, TRAILS)
SKIPPED = replace(FOUND, state="inadmissible", reason="too rare", triplet=None, trails=())


def test_stored_results_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    with Store(path) as store:
        triplets = TripletStore(store)
        result = triplets.keep("key", FOUND)
        skipped = triplets.keep("other", SKIPPED)
        assert triplets.find("nothing") is None
    with Store(path) as store:
        triplets = TripletStore(store)
        assert triplets.find("key") == result
        assert triplets.naturals() == {TRIPLET.natural.text}
        assert replace(result, id=0) == FOUND
        results = [skipped, result]
        steps = entries(store, results, {"a": "A"}, "steps")
        candidates = entries(store, results, {}, "evaluations")
        assert [*zip(*list(steps.values())[4:], strict=True)] == [*STEPS, *STEPS]
        assert steps["reject"] == ["A", "b"]
        assert candidates["number"] == [0, 1, 0, 1]
        assert candidates["log_prob_accept"] == [-2.5, None, -2.5, None]
        assert candidates["log_prob_reject"][1] == -np.inf
        # A repeated search replaces its earlier result
        replacement = triplets.keep("other", FOUND)
        assert (replacement.id, replacement.state) == (skipped.id, "found")


def test_full_disk_is_reported_and_loses_no_result(tmp_path: Path) -> None:
    """SQLite's limit on pages simulates a full disk."""
    with Store(tmp_path / "study.sqlite") as store:
        triplets = TripletStore(store)
        triplets.keep("key", FOUND)
        n_pages = store.rows("PRAGMA page_count")[0][0]
        store.rows(f"PRAGMA max_page_count = {n_pages}")
        long = replace(FOUND, trails=(TRAIL | {"evaluations": EVALUATIONS * 10_000},))
        with pytest.raises(StoreError, match="the disk may be full"):
            triplets.keep("many", long)
        assert triplets.find("many") is None
        store.rows("PRAGMA max_page_count = 1000000")
        triplets.keep("many", long)
        assert triplets.find("many") is not None


def test_floors_are_stored_by_their_settings(tmp_path: Path) -> None:
    with Store(tmp_path / "study.sqlite") as store:
        triplets = TripletStore(store)
        assert triplets.floors("m", "w", 0.25) == {}
        triplets.keep_floors("m", "w", 0.25, {7: -20.5, 8: float("-inf")})
        assert triplets.floors("m", "w", 0.25) == {7: -20.5, 8: float("-inf")}
        assert triplets.floors("m", "w", 0.5) == {}


def test_scores_are_stored_by_fingerprint_and_sentence(tmp_path: Path) -> None:
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
def test_no_store_is_created_if_work_fails_before_saving(tmp_path: Path, exists: bool) -> None:
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


def test_second_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    code = f"from contstim.store import Store; Store({str(path)!r})"
    Store(path).close()
    with Store(path):
        process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "StoreError" in process.stderr
    assert "in use by another process" in process.stderr
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
    content = foreign.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        Store(foreign)
    assert foreign.read_bytes() == content
    later = tmp_path / "study.sqlite"
    Store(later).close()
    connection = sqlite3.connect(later)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="another version"):
        Store(later)


def test_mean_time_is_over_all_units_and_is_saved(tmp_path: Path) -> None:
    """By hand: 30 s for 4 units. An interrupted search adds seconds and no unit."""
    path = tmp_path / "times.json"
    times = Times(path)
    assert times.get("search").a_unit is None
    for units, seconds in ((1, 5.0), (3, 15.0), (0, 10.0)):
        times.add("search", units=units, seconds=seconds, rows=7)
    times.save()
    mean_time = Times(path).get("search")
    assert mean_time.a_unit == pytest.approx(30 / 4)
    assert mean_time.rows == 21


def test_times_of_a_retrained_model_are_removed(tmp_path: Path) -> None:
    times = Times(tmp_path / "times.json")
    stale = ["score hf:models/a", "load hf:models/a@chain", "search 12 hf:models/a kenlm:b.arpa"]
    valid = ["score hf:models/ab", "search 12 hf:models/ab kenlm:b.arpa", "train models/a {}"]
    for key in (*stale, *valid):
        times.add(key, units=1, seconds=1)
    for specification in ("hf:models/a", "hf:models/ab"):
        times.add_context(specification, {"nats": 1.0})
    times.forget_models({"hf:models/a", "hf:models/a@chain"})
    assert [*times.contexts] == ["hf:models/ab"]
    assert [times.get(key).a_unit for key in (*stale, *valid)] == [None] * 3 + [1.0] * 3


@pytest.mark.parametrize("content", ["{", "[]", '{"machine": "other", "times": {"a": {}}}'])
def test_damaged_or_foreign_times_are_ignored(tmp_path: Path, content: str) -> None:
    path = tmp_path / "times.json"
    path.write_text(content)
    times = Times(path)
    assert times.get("a").a_unit is None
    times.add("b", units=1, seconds=2)
    times.save()
    assert json.loads(path.read_text())["times"]["b"]["seconds"] == 2
