"""`contstim plausibility` as a user meets it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from contstim.cli import app
from contstim.errors import ContstimError
from contstim.models.ngram.adapter import NgramModel
from contstim.optimization.jobs.tasks import TripletTask
from contstim.sentence import Sentence
from contstim.store import Store, TripletStore

INPUTS = (
    *("--model", "kenlm:2.arpa", "--model", "kenlm:3.arpa"),
    *("--sentences", "natural.txt", "--vocabulary", "vocab.txt", "--per-pair", "2"),
)
JUDGE = ("--judge", "kenlm:1.arpa", "--floors", "none,.5")


def plausibility(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["plausibility", *INPUTS, "--out", "curve.csv", *arguments])


def test_floors_begin_with_the_same_sentences_and_are_reached(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Witness: the stores of the searches, and the judge's scores counted by hand."""
    done = plausibility(*JUDGE)
    assert done.exit_code == 0, done.exception
    with (folder / "curve.csv").open(newline="") as file:
        none, half = csv.DictReader(file)
    assert (float(none["floor"]), float(half["floor"])) == (0, 0.5)
    judge = NgramModel("1.arpa")
    natural = [Sentence.parse(s) for s in (folder / "natural.txt").read_text().splitlines()]
    scores = judge.log_probs(natural)
    naturals = []
    for row, name in ((none, "floor-0.sqlite"), (half, "floor-0.5.sqlite")):
        with Store(folder / "curve.searches" / name) as store:
            triplets = TripletStore(store).triplets()
        naturals.append([t.natural for t in triplets])
        eq_4 = np.mean([t.controversiality for t in triplets])
        assert float(row["controversiality"]) == pytest.approx(eq_4)
        assert float(row["drop"]) == pytest.approx(eq_4 / 2)
        both = judge.log_probs([s for t in triplets for s in (t.synthetic_1, t.synthetic_2)])
        shares = [np.mean(scores <= score) for score in both]
        assert float(row["plausibility"]) == pytest.approx(np.mean(shares))
        assert row["passed_over"] == "0"
        low, high = float(row["controversiality_low"]), float(row["controversiality_high"])
        assert low <= eq_4 <= high
    assert naturals[0] == naturals[1]
    assert min(shares) >= 0.5
    assert float(half["controversiality"]) <= float(none["controversiality"])
    record = json.loads((folder / "curve.csv.meta.json").read_text())
    assert record["judge"] == "kenlm:1.arpa"
    assert (folder / "curve.png").stat().st_size > 1_000
    assert "What a floor of plausibility costs" in (folder / "curve.html").read_text()
    # What has been found is not searched again
    table = (folder / "curve.csv").read_bytes()
    monkeypatch.setattr(TripletTask, "perform", lambda *_: pytest.fail("searched again"))
    assert plausibility(*JUDGE, "--quiet").output == ""
    assert (folder / "curve.csv").read_bytes() == table


@pytest.mark.usefixtures("folder")
def test_another_highest_floor_needs_another_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower floors are added; the message names what this command has."""
    assert plausibility("-q", "--judge", "kenlm:1.arpa", "--floors", "none,.25").exit_code == 0
    done = plausibility("-q", "--judge", "kenlm:1.arpa", "--floors", ".1,.25")
    assert done.exit_code == 0, done.exception
    monkeypatch.setattr(TripletTask, "perform", lambda *_: pytest.fail("searched"))
    refused = plausibility("-q", "--judge", "kenlm:1.arpa", "--floors", "none,.25,.5").exception
    assert isinstance(refused, ContstimError)
    assert "another --out" in str(refused)
    assert "--store" not in str(refused)


def test_without_a_judge_each_model_judges_what_it_accepts(folder: Path) -> None:
    done = plausibility("--floors", ".5")
    assert done.exit_code == 0, done.exception
    with (folder / "curve.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert float(row["plausibility"]) >= 0.5
    assert int(row["passed_over"]) > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--floors", "none,x"), "has no quantile"),
        (("--floors", ".1,.10"), "each of them once"),
        (("--floors", "1.5"), "from 0 to below 1"),
        (("--workers", "2"), "--executor local has one worker"),
        (("--judge", "kenlm:none.arpa"), "no n-gram model at none.arpa"),
        (("--out", "c.txt"), "not a table"),
    ],
)
def test_bad_input_is_one_message(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    done = plausibility("-q", *arguments)
    assert isinstance(done.exception, ContstimError), done.output
    with pytest.raises(ContstimError, match=message):
        raise done.exception
    assert not (folder / "curve.csv").exists()
