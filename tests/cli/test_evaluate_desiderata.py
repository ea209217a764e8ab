"""`contstim evaluate desiderata`, as users type it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from contstim.cli import app
from contstim.english import generate
from contstim.errors import InputError


@pytest.mark.usefixtures("unsaved")
def test_words_come_from_the_folder_of_a_model(trained: Path, tmp_path: Path) -> None:
    """A folder without the counts of a model is refused by name."""
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{sentence.text}\n" for sentence in generate(60, seed=9)))
    counts = (trained / "2gram.arpa.counts.csv").read_bytes()
    command = ["evaluate", "desiderata", "--out", str(tmp_path / "out"), "--sentences", str(text)]
    command += ["--model", f"kenlm:{trained / '2gram.arpa'}", "--frequencies", str(tmp_path)]
    result = CliRunner().invoke(app, [*command, "--words", "5", "--sample", "20"])
    assert isinstance(result.exception, InputError)
    (tmp_path / "vocabulary.csv").write_bytes(counts)
    result = CliRunner().invoke(app, [*command, "--words", "5", "--sample", "20"])
    assert result.exit_code == 0


def test_two_rules_of_one_model_side_by_side(trained: Path, tmp_path: Path) -> None:
    """The table is about both models, drawn from the sentences and words that were asked for."""
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{sentence.text}\n" for sentence in generate(200, seed=9)))
    models = [f"kenlm:{trained / name}" for name in ("2gram.arpa", "3gram.arpa")]
    command = ["evaluate", "desiderata", "--out", str(tmp_path / "out"), "--sample", "50"]
    command += ["--model", models[0], "--model", models[1], "--reference", models[1]]
    command += ["--sentences", str(text), "--frequencies", str(text), "--words", "40", "--quiet"]
    CliRunner().invoke(app, command, catch_exceptions=False)
    with (tmp_path / "out" / "desiderata.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["model"] for row in rows] == models
    assert {row["length_n"] for row in rows} == {"50"}
    assert {row["frequency_n"] for row in rows} == {"40"}
    assert float(rows[1]["reference_r"]) == pytest.approx(1)
    record = json.loads((tmp_path / "out" / "report.md.meta.json").read_text())
    assert set(record["models"]) == set(models)
    assert record["seed"] == 0
    read = {name.rpartition("/")[2] for name in record["inputs"]}
    assert {"text.txt", "3gram.arpa", "3gram.arpa.counts.csv"} <= read
    assert {"report.md", "report.html", "desiderata.csv", "desiderata.png"} <= {*record["outputs"]}
    assert "contstim.sqlite" not in record["outputs"]  # it goes on changing
    report = (tmp_path / "out" / "report.md").read_text()
    assert "Desiderata of scoring rules" in report
    assert "versions" in report
