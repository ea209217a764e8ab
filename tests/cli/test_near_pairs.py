"""`contstim near-pairs`, in this process."""

from __future__ import annotations

from pathlib import Path

from contstim.items.minimal_pair_scores import MinimalPairScores
from tests.cli.running import run, succeed


def test_what_is_found_is_told(folder: Path) -> None:
    models = ("--model", "two=kenlm:2.arpa", "--model", "three=kenlm:3.arpa")
    arguments = ("near-pairs", *models, "--sentences", "natural.txt", "--out", "near.csv")
    shown = succeed(folder, *arguments, "--same-length", "2")
    pairs = MinimalPairScores.from_file(folder / "near.csv")
    assert all(abs(len(pair.good.text) - len(pair.bad.text)) <= 2 for pair in pairs.pairs)
    row = next(line for line in shown.splitlines() if "three" in line)
    assert f" {len(pairs.pairs)} " in row
    (folder / "natural.txt").write_text("Stop.\nThe xylophone sleeps.\n", encoding="utf-8")
    done = run(folder, *arguments)
    assert done.returncode == 3
    assert "2 sentences skipped: a single word, words outside the vocabulary" in done.stderr
