"""Scoring by two processes, while workers and the main process are killed by turns."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from contstim.models.loading import Loading
from contstim.models.remote import CHUNK
from contstim.steps.scoring import ScoreSentences
from contstim.store import Store
from contstim.words.sentence import Sentence

DRIVER = Path(__file__).with_name("scoring_driver.py")


def workers_of(driver: int) -> list[int]:
    """The processes that a driver has spawned, without the one that keeps its resources."""
    listed = Path(f"/proc/{driver}/task/{driver}/children")
    if not listed.exists():
        pytest.skip("this system does not tell a process's children")
    children = [int(child) for child in listed.read_text().split()]
    return [c for c in children if b"spawn_main" in Path(f"/proc/{c}/cmdline").read_bytes()]


@pytest.mark.parametrize(
    ("n_sentences", "n_kills"), [(4_000, 2), pytest.param(100_000, 30, marks=pytest.mark.slow)]
)
def test_scores_survive_kills_of_workers_and_of_the_main_process(
    n_sentences: int, n_kills: int, trained: Path, english: list[Sentence], tmp_path: Path
) -> None:
    """Witness: one process, never killed."""
    words = sorted({word for sentence in english for word in sentence.words})
    chance, texts = random.Random(1), dict[str, None]()
    while len(texts) < n_sentences:
        texts[" ".join(chance.choices(words, k=7))] = None
    (tmp_path / "sentences.txt").write_text("".join(f"{text}\n" for text in texts), "utf-8")
    model, out = f"two=kenlm:{trained / '2gram.arpa'}", tmp_path / "several" / "scores.csv"
    command = [sys.executable, str(DRIVER), model, str(tmp_path / "sentences.txt"), str(out)]
    # Each kill waits until the work has gone on for a while
    border = 9 * n_sentences // 10
    steps = [kill * border // n_kills for kill in range(1, n_kills + 1)]
    kept, kills = 0, {"worker": 0, "main": 0}
    done = False
    while not done:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
            assert driver.stdout is not None
            for line in driver.stdout:
                # Nothing is lost: what was told before the kill is there, and counts on from there
                assert int(line) >= kept
                kept = int(line)
                if not steps or kept < steps[0]:
                    continue
                del steps[0]
                if len(steps) % 2:
                    workers = workers_of(driver.pid)
                    kills["worker"] += 1
                    os.kill(chance.choice(workers), signal.SIGKILL)
                else:
                    kills["main"] += 1
                    driver.kill()
                    break
            done = driver.wait() == 0
            assert done or driver.returncode == -signal.SIGKILL
    assert kills == {"worker": n_kills // 2, "main": n_kills // 2}
    assert kept == n_sentences
    ScoreSentences(
        models=(model,),
        sentences=tmp_path / "sentences.txt",
        out=tmp_path / "one.csv",
        loading=Loading(device="cpu"),
    ).run()
    assert out.read_bytes() == (tmp_path / "one.csv").read_bytes()
    with Store(out.parent / "contstim.sqlite") as store:
        assert store.rows("SELECT count(*) FROM score") == [(n_sentences,)]
    assert n_sentences > 2 * n_kills * CHUNK  # most was not at stake at any kill
