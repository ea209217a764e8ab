"""`contstim select natural` on scores that leave nothing to choose, and `contstim near-pairs`."""

import json
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import InfeasibleError
from contstim.items.minimal_pair_scores import MinimalPairScores
from contstim.items.scores import ScoreTable
from contstim.testing.platform import read_csv_rows
from contstim.words.sentence import Sentence
from tests.cli.running import invoke, run, succeed


@pytest.mark.parametrize("alike", [True, False])
def test_pairs_on_which_models_agree_are_named(tmp_path: Path, *, alike: bool) -> None:
    """Witness: models of the same order agree on any pair, of the opposite order on none."""
    scores, out = tmp_path / "s.csv", tmp_path / "pairs.csv"
    first = np.array([-4.0, -3.0, -2.0, -1.0])
    other = first if alike else first[::-1]
    texts = ("Cats see dogs.", "Dogs hear birds.", "Birds eat seeds.", "Seeds make trees.")
    sentences = tuple(map(Sentence.parse, texts))
    ScoreTable(sentences, ("a", "b"), np.stack([first, other], axis=1)).write(scores)
    command = f"select natural --scores {scores} --per-pair 1 --out {out}"
    if alike:
        with pytest.raises(InfeasibleError, match="at most 0 pairs can be selected"):
            invoke(command)
        command += " --agreeing"
    done = invoke(command)
    (pair,) = read_csv_rows(out)
    assert ("both models prefer the same sentence" in done.stderr) == alike
    assert (pair["trial_id"] in done.stderr) == alike
    certificate = json.loads((tmp_path / "pairs.csv.certificate.json").read_text())
    assert certificate["question"]["agreeing"] == alike
    record = json.loads((tmp_path / "pairs.csv.meta.json").read_text())
    assert record["not_controversial"] == ([pair["trial_id"]] if alike else [])


def test_what_is_found_is_told(folder: Path) -> None:
    models = ("--model", "two=kenlm:2.arpa", "--model", "three=kenlm:3.arpa")
    arguments = ("near-pairs", *models, "--sentences", "natural.txt", "--out", "near.csv")
    shown = succeed(folder, *arguments, "--same-length", "2")
    pairs = MinimalPairScores.from_file(folder / "near.csv")
    assert all(abs(len(pair.good.text) - len(pair.bad.text)) <= 2 for pair in pairs.pairs)
    row = next(line for line in shown.splitlines() if "three" in line)
    assert f" {len(pairs.pairs)} " in row
    (folder / "natural.txt").write_text("Stop.\nThe xylophone sleeps.\n", encoding="utf-8")
    done = run(folder, *arguments, status=3)
    assert "2 sentences skipped: a single word, words outside the vocabulary" in done.stderr
