"""Progress weighted by the cost of each pair, and the table of triplets so far."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from contstim.errors import StoreError
from contstim.items.stimuli import read_triplets
from contstim.optimization.jobs import so_far
from contstim.optimization.jobs.so_far import SearchProgress, costs_of, table_so_far
from contstim.reporter import Reporter
from contstim.store import Store
from contstim.words.sentence import Sentence
from tests.cli.running import run

# The third search waits for a file, like a long search
SEARCHING = """
import sys, time
from pathlib import Path
from contstim.optimization.jobs.tasks import TripletTask
import contstim.cli

perform, tasks = TripletTask.perform, []

def wait_for_file(task, context):
    tasks.append(task)
    while len(tasks) == 3 and not Path("go").exists():
        time.sleep(0.05)
    return perform(task, context)

TripletTask.perform = wait_for_file
contstim.cli.main()
"""


@pytest.mark.slow
def test_triplets_are_readable_while_a_search_runs(
    trained: Path, unseen: list[Sentence], tmp_path: Path
) -> None:
    (tmp_path / "natural.txt").write_text("".join(f"{s.text}\n" for s in unseen))
    out = tmp_path / "triplets.csv"
    models = [f"--model=kenlm:{trained}/{order}gram.arpa" for order in (1, 2)]
    options = ["--recipe=golan2023", "--restarts=1", "--per-pair=5", "--quiet"]
    files = ["--sentences=natural.txt", "--out=triplets.csv"]
    command = [sys.executable, "-c", SEARCHING, "triplets", *models, *options, *files]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        try:
            deadline = time.monotonic() + 60
            while not table_so_far(out).exists() and process.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            assert process.poll() is None, process.stderr and process.stderr.read()
            early = {triplet.triplet_id for triplet in read_triplets(table_so_far(out))}
            page = run(tmp_path, "show", table_so_far(out).name, "--out", "page.html")
            assert page.returncode == 0
            with pytest.raises(StoreError):  # only one process may write
                Store(tmp_path / "contstim.sqlite")
        finally:
            (tmp_path / "go").touch()
        assert process.wait(60) == 0
    assert early
    assert early < {triplet.triplet_id for triplet in read_triplets(out)}
    assert not table_so_far(out).exists()


NGRAMS, NETWORKS, MIXED = ("a", "b"), ("c", "d"), ("a", "c")


class ProgressRecorder(Reporter):
    def __init__(self) -> None:
        self.shares: list[float] = []
        self.notes: list[str] = []

    def progress(self, what: str, done: float, total: float | None, note: str = "") -> None:
        assert what == "triplets"
        self.shares.append(done / (total or 1))
        self.notes.append(note)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The current time, which tests change."""
    now = [100.0]
    monkeypatch.setattr(so_far, "monotonic", lambda: now[0])
    return now


def test_pairs_count_by_their_cost(clock: list[float]) -> None:
    """Witness: by hand. Ten 1 s searches are 10 of 10 + 90 s; a 9 s search is 9 of them."""
    del clock
    costs = {NGRAMS: 1.0, NETWORKS: 9.0}
    recorder = ProgressRecorder()
    reporting = SearchProgress(recorder, costs.get)
    targets = {NGRAMS: 10, NETWORKS: 10}
    reporting.report({NGRAMS: 10, NETWORKS: 0}, targets)
    reporting.report({NGRAMS: 10, NETWORKS: 1}, targets)
    reporting.report(targets, targets)
    assert recorder.shares == pytest.approx([0.10, 0.19, 1.0])
    assert recorder.notes == ["10 of 20 triplets", "11 of 20 triplets", ""]


def test_a_running_search_advances_the_progress(clock: list[float]) -> None:
    recorder = ProgressRecorder()
    reporting = SearchProgress(recorder, {NETWORKS: 30.0}.get)
    reporting.report({NETWORKS: 0}, {NETWORKS: 2})
    reporting.begin(NETWORKS)
    for seconds in (10, 0.5, 20, 600):
        clock[0] += seconds
        reporting.tick()
    first, *later_shares = recorder.shares
    # Half a second is too short for a report, and a running search never counts as finished
    assert first == 0.0
    assert len(later_shares) == 3
    assert later_shares == sorted(later_shares)
    assert 0 < later_shares[0] < later_shares[-1] < 0.5
    reporting.end(NETWORKS)
    reporting.report({NETWORKS: 1}, {NETWORKS: 2})
    assert recorder.shares[-1] == 0.5


def test_unknown_costs_are_estimated_from_similar_pairs() -> None:
    known_costs: dict[Any, float] = {NGRAMS: 1.0, NETWORKS: 9.0}
    assert costs_of([NGRAMS, NETWORKS, MIXED], known_costs.get)[MIXED] == 5.0
    assert costs_of([NGRAMS, ("x", "y")], known_costs.get)["x", "y"] == 1.0
    assert len({*costs_of([NGRAMS, MIXED], lambda _pair: None).values()}) == 1
