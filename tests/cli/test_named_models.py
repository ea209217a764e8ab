"""`--model NAME=SPECIFICATION` in the commands that load models, and what the terminal shows."""

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from contstim.errors import ModelError
from contstim.items.stimuli import read_triplets
from contstim.models.ngram.adapter import NgramModel
from contstim.models.vocabularies import counts_path
from contstim.optimization.jobs.tasks import TripletTask
from tests.cli.running import invoke

pytestmark = pytest.mark.usefixtures("unsaved")
LONG = "a-rather-long-folder-name/of-models-trained-in-november"


@pytest.fixture(autouse=True)
def _long_names_on_80_columns(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / LONG).mkdir(parents=True)
    for n in (2, 3):
        for path in (folder / f"{n}.arpa", counts_path(folder / f"{n}.arpa")):
            shutil.copy(path, folder / LONG)
    monkeypatch.setenv("COLUMNS", "80")


def models(*texts: str) -> list[str]:
    return [option for text in texts for option in ("--model", text)]


def refuse(*_arguments: object) -> None:
    raise AssertionError("computed again")


def test_renamed_models_are_not_scored_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Witness: the scores under the specification; the model refuses to score a second time."""
    plain = models("kenlm:2.arpa", "kenlm:3.arpa")
    invoke("score --sentences natural.txt --out plain.csv -q", *plain)
    monkeypatch.setattr(NgramModel, "log_probs", refuse)
    named = models("2-gram=kenlm:2.arpa", "the other=kenlm:3.arpa")
    invoke("score --sentences natural.txt --out named.csv -q", *named)
    tables = [
        list(csv.reader((folder / f"{name}.csv").read_text().splitlines()))
        for name in ("plain", "named")
    ]
    assert tables[1][0] == ["sentence", "2-gram", "the other"]
    assert tables[0][1:] == tables[1][1:]
    record = json.loads((folder / "named.csv.meta.json").read_text())["models"]
    assert record["the other"]["specification"] == "kenlm:3.arpa"


def test_another_name_searches_nothing_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Witness: the triplets under the specifications, renamed by hand."""
    options = "triplets --sentences natural.txt --vocabulary vocab.txt --per-pair 1 --frame none"
    options += " --out t.csv"
    invoke(f"{options} -q", *models("kenlm:2.arpa", "kenlm:3.arpa"))
    found = read_triplets(folder / "t.csv")
    monkeypatch.setattr(TripletTask, "perform", refuse)
    done = invoke(options, *models("two=kenlm:2.arpa", "three=kenlm:3.arpa"))
    renamed = [replace(one, model_1="two", model_2="three") for one in found]
    assert list(read_triplets(folder / "t.csv")) == renamed
    record = json.loads((folder / "t.csv.meta.json").read_text())
    assert record["models"]["two"]["specification"] == "kenlm:2.arpa"
    assert record["pairs"][0]["model_2"] == "three"
    assert "│ three " in done.stdout


def test_the_reference_may_be_named_as_the_model_that_it_is(folder: Path) -> None:
    named = models("two=kenlm:2.arpa", "three=kenlm:3.arpa")
    options = "evaluate desiderata --sentences natural.txt --frequencies natural.txt -q --out"
    tables = []
    for number, reference in enumerate(("three", "kenlm:3.arpa")):
        invoke(f"{options} {number}", *named, "--reference", reference)
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
def test_every_command_refuses_a_model_given_twice(folder: Path, command: str, second: str) -> None:
    with pytest.raises(ModelError, match=r"are the same model|got several models named"):
        invoke(command, *models("a=kenlm:2.arpa", second))
    assert not any((folder / name).is_file() for name in ("o.csv", "o.txt"))
