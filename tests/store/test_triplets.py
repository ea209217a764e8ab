from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import StoreError
from contstim.sentence import Sentence
from contstim.stimuli import Triplet
from contstim.store import JobState, Outcome, Store, StoreEdit, Trail, TripletStore
from contstim.store.layout import APPLICATION_ID, LAYOUTS

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
    (2, 1, "five", "Three five.", float("nan"), float("-inf")),
)
TRAIL = Trail("b", "a", 3, "settled", {"a": (5, 40, 2), "b": (7, 60, 3)}, STEPS, EVALUATIONS)
SEARCHES = ((7, -9.125, 0.0, 3, 6, 50), (2**56, -10.5, 1.375, 4, 6, 50))
FOUND = Outcome(
    JobState.FOUND,
    "",
    TRIPLET,
    (replace(TRAIL, searches=SEARCHES), replace(TRAIL, accept="a", reject="b")),
)


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    with Store(path) as store:
        kept = TripletStore(store)
        kept.keep(("a", "b"), 1, "One two.", FOUND)
        kept.keep(("a", "b"), 0, "Five six.", Outcome(JobState.FAILED, "it broke"))
    with Store(path) as store:
        kept = TripletStore(store)
        assert kept.triplets() == [TRIPLET]
        jobs = kept.jobs()
        assert [(j.place, j.natural, j.state, j.reason) for j in jobs] == [
            (0, "Five six.", JobState.FAILED, "it broke"),
            (1, "One two.", JobState.FOUND, ""),
        ]
        assert kept.searches() == {("a", "b"): 3}  # the second trail does not say: one
        assert kept.costs() == {("a", "b"): (24, 200, 10)}
        steps, candidates = kept.trajectories(), kept.evaluations()
        assert [*zip(*list(steps.values())[4:], strict=True)] == [*STEPS, *STEPS]
        assert steps["reject"] == ["a", "b"]
        assert candidates["number"] == [0, 1, 0, 1]
        assert candidates["log_prob_accept"] == [-2.5, None, -2.5, None]
        assert candidates["log_prob_reject"][1] == -np.inf
        assert kept.forget_failures() == 1
        assert [job.place for job in kept.jobs()] == [1]


def test_a_job_is_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    broken = replace(TRAIL, reject="b", evaluations=((1, 0, None, "x", 0.0, 0.0),))  # type: ignore[arg-type]
    with Store(tmp_path / "study.sqlite") as store:
        kept = TripletStore(store)
        with pytest.raises(StoreError, match="NOT NULL"):
            kept.keep(("a", "b"), 0, "One two.", replace(FOUND, trails=(TRAIL, broken)))
        assert kept.jobs() == []
        assert kept.trajectories()["new"] == []
        kept.keep(("a", "b"), 0, "One two.", FOUND)
        with pytest.raises(StoreError, match="UNIQUE"):
            kept.keep(("a", "c"), 0, "One two.", FOUND)


def test_changed_settings_are_refused_with_the_difference(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    with Store(path) as store:
        TripletStore(store).settle({"seed": "1", "per pair": "9", "old": "x"}, may_grow=frozenset())
    with Store(path) as store:
        kept = TripletStore(store)
        with pytest.raises(StoreError) as refused:
            kept.settle(
                {"seed": "2", "per pair": "8", "new": "y"}, may_grow=frozenset({"per pair"})
            )
        lines = str(refused.value).splitlines()[1:-1]
        assert lines == [
            "  old: x → (none)",
            "  per pair: 9 → 8",
            "  seed: 1 → 2",
            "  new: (none) → y",
        ]
        grown = {"seed": "1", "per pair": "10", "old": "x"}
        kept.settle(grown, may_grow=frozenset({"per pair"}))
        with pytest.raises(StoreError, match="per pair: 10 → 9"):
            kept.settle({**grown, "per pair": "9"}, may_grow=frozenset({"per pair"}))


def test_a_full_disk_is_said_and_loses_nothing(tmp_path: Path) -> None:
    """SQLite's own limit on pages stands for the disk's."""
    with Store(tmp_path / "study.sqlite") as store:
        kept = TripletStore(store)
        kept.keep(("a", "b"), 0, "One two.", FOUND)
        pages = store.rows("PRAGMA page_count")[0][0]
        store.rows(f"PRAGMA max_page_count = {pages}")
        many = replace(TRAIL, evaluations=EVALUATIONS * 10_000)
        with pytest.raises(StoreError, match="the disk may be full"):
            kept.keep(("a", "b"), 1, "Two two.", replace(FOUND, trails=(many,)))
        assert len(kept.jobs()) == 1
        store.rows("PRAGMA max_page_count = 1000000")
        kept.keep(("a", "b"), 1, "Two two.", replace(FOUND, trails=(many,)))
        assert len(kept.jobs()) == 2


def test_a_store_of_the_first_layout_keeps_its_scores_and_gets_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    connection = sqlite3.connect(path)
    for statement in LAYOUTS[0]:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("PRAGMA user_version = 1")
    connection.execute("INSERT INTO model VALUES (1, 'model-a', '{}')")
    connection.execute("INSERT INTO score VALUES (1, 'One two.', -3.5)")
    connection.commit()
    connection.close()
    for _ in range(2):
        with Store(path) as store:
            assert store.log_probs("model-a", ["One two."]).tolist() == [-3.5]
            assert TripletStore(store).triplets() == []


def test_settings_and_what_goes_with_them_are_kept_together_or_not_at_all(tmp_path: Path) -> None:
    first, second = ("a", "b", 0, "One two."), ("a", "b", 1, "Five six.")
    with Store(tmp_path / "study.sqlite") as store:
        kept = TripletStore(store)
        kept.settle({"seed": "1"}, may_grow=frozenset(), edit=StoreEdit(assigned=[first]))
        kept.keep(("a", "b"), 0, "One two.", FOUND)
        kept.decide([("a", "b", 0)], {}, 4)
        with pytest.raises(StoreError, match="UNIQUE"):
            kept.settle(
                {"seed": "2"},
                may_grow=frozenset(),
                edit=StoreEdit(
                    assigned=[first, ("a", "c", 0, "One two.")],
                    may_change={"seed"},
                    renewed=[("a", "b")],
                    restarts_waves=True,
                ),
            )
        assert kept.settings() == {"seed": "1"}
        assert kept.triplets() == [TRIPLET]
        assert kept.decisions().wave_end == 4
        kept.assign([second])
        assert kept.assignments() == {("a", "b"): {0: "One two.", 1: "Five six."}}
        with pytest.raises(StoreError, match="UNIQUE"):
            kept.assign([("a", "c", 0, "Five six.")])
        edit = StoreEdit(assigned=[second], replaced=[("a", "b", 0)], restarts_waves=True)
        kept.settle({"seed": "1"}, may_grow=frozenset(), edit=edit)
        assert kept.assignments() == {("a", "b"): {1: "Five six."}}
        assert kept.jobs() == []
        assert kept.triplets(with_gone=True) == [TRIPLET]
        assert (kept.decisions().accepted, kept.decisions().wave_end) == (frozenset(), 0)
        # What reviewers rejected stays when all else of its pair is dropped
        kept.keep(("a", "b"), 0, "One two.", FOUND)
        kept.reject({TRIPLET.triplet_id: "odd"})
        kept.settle({"seed": "1"}, may_grow=frozenset(), edit=StoreEdit(renewed=[("a", "b")]))
        assert kept.rejected() == {("a", "b", 0)}
