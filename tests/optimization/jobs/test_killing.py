"""Jobs that are killed or interrupted from outside.

`tests/study/test_running.py` kills studies at random moments.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.interrupts import hear_interrupts, wait_for_rows
from tests.jobs.contract import vanishes


@pytest.fixture
def folder(
    tmp_path: Path, trained: Path, words: Vocabulary, naturals: tuple[Sentence, ...]
) -> Path:
    """A user's folder with models, natural sentences and a vocabulary."""
    for n in (1, 2, 3, 4):
        (tmp_path / f"{n}.arpa").write_bytes((trained / f"{n}gram.arpa").read_bytes())
    (tmp_path / "natural.txt").write_text("".join(f"{s.text}\n" for s in naturals))
    words.save(tmp_path / "vocab.txt")
    return tmp_path


def triplets_arguments(
    out: str, *other_arguments: str, per_pair: int = 6, orders: tuple[int, int] = (2, 3)
) -> list[str]:
    models = [text for n in orders for text in ("--model", f"kenlm:{n}.arpa")]
    inputs = ("--sentences", "natural.txt", "--vocabulary", "vocab.txt")
    count = ("--per-pair", str(per_pair))
    outputs = ("--out", out, "--store", f"{out}.sqlite", "--restarts", "2")
    return ["triplets", *models, *inputs, *count, *outputs, "-q", *other_arguments]


def quick_arguments(out: str) -> list[str]:
    """Return arguments for searches that take a tenth of a second each."""
    return triplets_arguments(out, "--recipe", "golan2023", per_pair=16, orders=(1, 4))


@pytest.mark.slow
def test_workers_exit_with_a_killed_driver_and_the_job_resumes(folder: Path) -> None:
    command = [sys.executable, "-m", "contstim"]
    subprocess.run([*command, *quick_arguments("local.csv")], cwd=folder, check=True)
    executor = ("--executor", "processes", "--workers", "2")
    parallel = [*command, *quick_arguments("several.csv"), *executor]
    driver = subprocess.Popen(parallel, cwd=folder, text=True)
    wait_for_rows("result", folder / "several.csv.sqlite", driver)
    workers = child_processes(driver.pid)
    driver.kill()
    assert driver.wait() == -signal.SIGKILL
    assert len(workers) >= 2
    assert all(map(vanishes, workers))
    subprocess.run(parallel, cwd=folder, check=True)
    assert (folder / "several.csv").read_bytes() == (folder / "local.csv").read_bytes()


def child_processes(process: int) -> list[int]:
    path = Path(f"/proc/{process}/task/{process}/children")
    if not path.exists():
        pytest.skip("this system does not list a process's children")
    return [int(child) for child in path.read_text().split()]


@pytest.mark.slow
def test_an_interrupt_prints_no_traceback_and_loses_nothing(folder: Path) -> None:
    command = [sys.executable, "-m", "contstim", *quick_arguments("hand.csv")]
    driver = subprocess.Popen(
        command, cwd=folder, stderr=subprocess.PIPE, text=True, preexec_fn=hear_interrupts
    )
    wait_for_rows("result", folder / "hand.csv.sqlite", driver)
    driver.send_signal(signal.SIGINT)
    _, errors = driver.communicate(timeout=60)
    assert driver.returncode == 130
    assert "Traceback" not in errors
    assert not (folder / "hand.csv").exists()
    subprocess.run(command, cwd=folder, check=True)
    assert len((folder / "hand.csv").read_text().splitlines()) == 17
