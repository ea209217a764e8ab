"""`contstim select natural` with too few controversial pairs, and `contstim near-pairs`."""

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


@pytest.mark.parametrize("same_order", [True, False])
def test_pairs_on_which_models_agree_are_reported(tmp_path: Path, *, same_order: bool) -> None:
    """Witness: models of the same order agree on every pair, of the opposite order on none."""
    scores, out = tmp_path / "s.csv", tmp_path / "pairs.csv"
    first_scores = np.array([-4.0, -3.0, -2.0, -1.0])
    second_scores = first_scores if same_order else first_scores[::-1]
    texts = ("Cats see dogs.", "Dogs hear birds.", "Birds eat seeds.", "Seeds make trees.")
    sentences = tuple(map(Sentence.parse, texts))
    ScoreTable(sentences, ("a", "b"), np.stack([first_scores, second_scores], axis=1)).write(scores)
    command = f"select natural --scores {scores} --per-pair 1 --out {out}"
    if same_order:
        with pytest.raises(InfeasibleError, match="at most 0 pairs can be selected"):
            invoke(command)
        command += " --agreeing"
    result = invoke(command)
    (pair,) = read_csv_rows(out)
    assert ("both models prefer the same sentence" in result.stderr) == same_order
    assert (pair["trial_id"] in result.stderr) == same_order
    certificate = json.loads((tmp_path / "pairs.csv.certificate.json").read_text())
    assert certificate["question"]["agreeing"] == same_order
    record = json.loads((tmp_path / "pairs.csv.meta.json").read_text())
    assert record["not_controversial"] == ([pair["trial_id"]] if same_order else [])


def test_near_pairs_reports_pairs_and_skipped_sentences(folder: Path) -> None:
    models = ("--model", "two=kenlm:2.arpa", "--model", "three=kenlm:3.arpa")
    arguments = ("near-pairs", *models, "--sentences", "natural.txt", "--out", "near.csv")
    output = succeed(folder, *arguments, "--same-length", "2")
    pairs = MinimalPairScores.from_file(folder / "near.csv")
    assert all(abs(len(pair.good.text) - len(pair.bad.text)) <= 2 for pair in pairs.pairs)
    row = next(line for line in output.splitlines() if "three" in line)
    assert f" {len(pairs.pairs)} " in row
    (folder / "natural.txt").write_text("Stop.\nThe xylophone sleeps.\n", encoding="utf-8")
    result = run(folder, *arguments, status=3)
    assert "Skipped: 2 sentences with one word, words outside the vocabulary" in result.stderr
