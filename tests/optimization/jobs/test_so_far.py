"""Triplets that are found can be read while other searches run."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from contstim.errors import StoreError
from contstim.items.stimuli import read_triplets
from contstim.optimization.jobs.so_far import table_so_far
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


def test_triplets_are_read_while_a_search_runs(
    trained: Path, unseen: list[Sentence], tmp_path: Path
) -> None:
    (tmp_path / "natural.txt").write_text("".join(f"{s.text}\n" for s in unseen))
    out = tmp_path / "triplets.csv"
    models = [f"--model=kenlm:{trained}/{order}gram.arpa" for order in (1, 2)]
    options = ["--frame=none", "--restarts=1", "--per-pair=5", "--plausible=none", "--quiet"]
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
