"""`contstim select natural` on scores that leave nothing to choose."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from typer.testing import CliRunner

from contstim.cli.program import app
from contstim.errors import InfeasibleError
from contstim.items.scores import ScoreTable
from contstim.testing.platform import read_csv_rows
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("alike", [True, False])
def test_pairs_on_which_models_agree_are_named(tmp_path: Path, *, alike: bool) -> None:
    """Witness: models of the same order agree on any pair, of the opposite order on none."""
    scores, out = tmp_path / "s.csv", tmp_path / "pairs.csv"
    first = np.array([-4.0, -3.0, -2.0, -1.0])
    other = first if alike else first[::-1]
    texts = ("Cats see dogs.", "Dogs hear birds.", "Birds eat seeds.", "Seeds make trees.")
    sentences = tuple(map(Sentence.parse, texts))
    ScoreTable(sentences, ("a", "b"), np.stack([first, other], axis=1)).write(scores)
    command = ["select", "natural", "--scores", str(scores), "--per-pair", "1", "--out", str(out)]
    if alike:
        with pytest.raises(InfeasibleError, match="0 pairs for every model pair can be had"):
            CliRunner().invoke(app, command, catch_exceptions=False)
        command.append("--agreeing")
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    (pair,) = read_csv_rows(out)
    assert ("both models prefer the same sentence" in done.stderr) == alike
    assert (pair["trial_id"] in done.stderr) == alike
    certificate = json.loads((tmp_path / "pairs.csv.certificate.json").read_text())
    assert certificate["question"]["agreeing"] == alike
    record = json.loads((tmp_path / "pairs.csv.meta.json").read_text())
    assert record["not_controversial"] == ([pair["trial_id"]] if alike else [])
