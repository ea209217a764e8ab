"""`--model NAME=SPECIFICATION` in commands that load models, and names in their output."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from contstim.errors import ModelError
from contstim.items.stimuli import read_triplets
from contstim.models.ngram.adapter import NgramModel
from contstim.optimization.jobs.tasks import TripletTask
from contstim.testing.platform import read_csv_rows
from tests.cli.running import invoke, model_options

pytestmark = pytest.mark.usefixtures("unsaved_figures")
PLAIN = ("kenlm:2.arpa", "kenlm:3.arpa")
NAMED = ("two=kenlm:2.arpa", "three=kenlm:3.arpa")


def fail(*_arguments: object) -> None:
    raise AssertionError("computed a second time")


def test_renamed_models_are_not_scored_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Witness: the scores under the specification; the model fails if it scores a second time."""
    invoke("score --sentences natural.txt --out plain.csv -q", *model_options(PLAIN))
    monkeypatch.setattr(NgramModel, "log_probs", fail)
    named_options = model_options(["2-gram=kenlm:2.arpa", "the other=kenlm:3.arpa"])
    invoke("score --sentences natural.txt --out named.csv -q", *named_options)
    plain, named = (read_csv_rows(folder / f"{name}.csv") for name in ("plain", "named"))
    assert [*named[0]] == ["sentence", "2-gram", "the other"]
    assert [[*row.values()] for row in named] == [[*row.values()] for row in plain]
    record = json.loads((folder / "named.csv.meta.json").read_text())["models"]
    assert record["the other"]["specification"] == "kenlm:3.arpa"


def test_renamed_models_are_not_searched_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Witness: the triplets under the specifications, renamed by hand."""
    options = "triplets --sentences natural.txt --vocabulary vocab.txt --per-pair 1 --frame none"
    options += " --out t.csv"
    invoke(f"{options} -q", *model_options(PLAIN))
    triplets = read_triplets(folder / "t.csv")
    monkeypatch.setattr(TripletTask, "perform", fail)
    result = invoke(options, *model_options(NAMED))
    renamed = [replace(triplet, model_1="two", model_2="three") for triplet in triplets]
    assert list(read_triplets(folder / "t.csv")) == renamed
    record = json.loads((folder / "t.csv.meta.json").read_text())
    assert record["models"]["two"]["specification"] == "kenlm:2.arpa"
    assert record["pairs"][0]["model_2"] == "three"
    assert "│ three " in result.stdout


def test_reference_accepts_a_name_or_a_specification(folder: Path) -> None:
    options = "evaluate desiderata --sentences natural.txt --frequencies natural.txt -q --out"
    tables = []
    for number, reference in enumerate(("three", "kenlm:3.arpa")):
        invoke(f"{options} {number}", *model_options(NAMED), "--reference", reference)
        tables.append((folder / str(number) / "desiderata.csv").read_text())
    assert tables[0] == tables[1]
    assert ',"three",' in tables[0]


@pytest.mark.parametrize(
    "command",
    [
        "score --sentences natural.txt --out o.csv",
        "triplets --sentences natural.txt --vocabulary vocab.txt --out o.csv",
        "vocabulary --text natural.txt --min-count 1 --out o.txt",
        "compare --sentences natural.txt --out o",
        "evaluate desiderata --sentences natural.txt --frequencies natural.txt --out o",
    ],
)
@pytest.mark.parametrize("second", ["kenlm:2.arpa", "b=./2.arpa", "a=kenlm:3.arpa"])
def test_commands_refuse_a_repeated_model(folder: Path, command: str, second: str) -> None:
    with pytest.raises(ModelError, match=r"are the same model|got several models named"):
        invoke(command, *model_options(["a=kenlm:2.arpa", second]))
    assert not any((folder / name).is_file() for name in ("o.csv", "o.txt"))
