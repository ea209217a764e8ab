"""Progress by what each pair of models costs, and triplets that are read while searches run."""

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

# The third search waits for a file, as a long one would
SEARCHING = """
import sys, time
from pathlib import Path
from contstim.optimization.jobs.tasks import TripletTask
import contstim.cli

perform, begun = TripletTask.perform, []

def wait_for_file(task, context):
    begun.append(task)
    while len(begun) == 3 and not Path("go").exists():
        time.sleep(0.05)
    return perform(task, context)

TripletTask.perform = wait_for_file
contstim.cli.main()
"""


@pytest.mark.slow
def test_triplets_are_read_while_a_search_runs(
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
            shown = run(tmp_path, "show", table_so_far(out).name, "--out", "page.html")
            assert shown.returncode == 0
            with pytest.raises(StoreError):  # one process writes
                Store(tmp_path / "contstim.sqlite")
        finally:
            (tmp_path / "go").touch()
        assert process.wait(60) == 0
    assert early
    assert early < {triplet.triplet_id for triplet in read_triplets(out)}
    assert not table_so_far(out).exists()


NGRAMS, NETWORKS, MIXED = ("a", "b"), ("c", "d"), ("a", "c")


class Shares(Reporter):
    def __init__(self) -> None:
        self.shares: list[float] = []
        self.notes: list[str] = []

    def progress(self, what: str, done: float, total: float | None, note: str = "") -> None:
        assert what == "triplets"
        self.shares.append(done / (total or 1))
        self.notes.append(note)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, to be moved by hand."""
    now = [100.0]
    monkeypatch.setattr(so_far, "monotonic", lambda: now[0])
    return now


def test_a_pair_counts_by_its_cost(clock: list[float]) -> None:
    """Witness: by hand. Ten searches of 1 s are 10 of 10 + 90 s, and one of 9 s is 9 of them."""
    del clock
    costs = {NGRAMS: 1.0, NETWORKS: 9.0}
    shares = Shares()
    reporting = SearchProgress(shares, costs.get)
    wanted = {NGRAMS: 10, NETWORKS: 10}
    reporting.report({NGRAMS: 10, NETWORKS: 0}, wanted)
    reporting.report({NGRAMS: 10, NETWORKS: 1}, wanted)
    reporting.report(wanted, wanted)
    assert shares.shares == pytest.approx([0.10, 0.19, 1.0])
    assert shares.notes == ["10 of 20 triplets", "11 of 20 triplets", ""]


def test_a_running_search_moves_the_bar(clock: list[float]) -> None:
    shares = Shares()
    reporting = SearchProgress(shares, {NETWORKS: 30.0}.get)
    reporting.report({NETWORKS: 0}, {NETWORKS: 2})
    reporting.begin(NETWORKS)
    for seconds in (10, 0.5, 20, 600):
        clock[0] += seconds
        reporting.tick()
    first, *rest = shares.shares
    # After half a second nothing is reported, and no search counts as ended before it ends
    assert first == 0.0
    assert len(rest) == 3
    assert rest == sorted(rest)
    assert 0 < rest[0] < rest[-1] < 0.5
    reporting.end(NETWORKS)
    reporting.report({NETWORKS: 1}, {NETWORKS: 2})
    assert shares.shares[-1] == 0.5


def test_a_pair_of_unknown_cost_takes_that_of_similar_pairs() -> None:
    known: dict[Any, float] = {NGRAMS: 1.0, NETWORKS: 9.0}
    assert costs_of([NGRAMS, NETWORKS, MIXED], known.get)[MIXED] == 5.0
    assert costs_of([NGRAMS, ("x", "y")], known.get)["x", "y"] == 1.0
    assert len({*costs_of([NGRAMS, MIXED], lambda _pair: None).values()}) == 1
