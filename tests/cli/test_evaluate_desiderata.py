"""`contstim evaluate desiderata`, as users type it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from contstim.cli.program import app
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
