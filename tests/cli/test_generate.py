"""`contstim generate minimal-pairs`, as users type it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from contstim.cli.program import app
from contstim.errors import InputError


def _run(*arguments: str | Path) -> None:
    command = ["generate", "minimal-pairs", *map(str, arguments)]
    CliRunner().invoke(app, command, catch_exceptions=False)


def test_a_file_for_each_paradigm_and_a_record(tmp_path: Path) -> None:
    _run("--out", tmp_path, "--per-paradigm", "4", "--only", "binding", "--seed", "2")
    files = sorted(tmp_path.glob("*.jsonl"))
    assert [file.stem for file in files] == [
        *("reflexive_in_own_clause", "reflexive_is_no_subject", "reflexive_needs_c_command")
    ]
    assert [len(file.read_text().splitlines()) for file in files] == [4, 4, 4]
    record = json.loads((tmp_path / "minimal-pairs.meta.json").read_text())
    assert (record["seed"], record["per_paradigm"]) == (2, 4)


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        'field = "syntax"\nphenomenon = "order"\n'
        '[swap]\ngood = "NAME[agr=he] REFL[agr=he]"\nbad = "REFL NAME"\n'
    )
    _run("--paradigms", own, "--out", tmp_path / "pairs", "--per-paradigm", "2", "--quiet")
    rows = (tmp_path / "pairs" / "swap.jsonl").read_text().splitlines()
    assert json.loads(rows[0])["sentence_bad"].startswith("Himself ")


def test_an_unknown_name_lists_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="paradigm or phenomenon nonsense; the names are"):
        _run("--out", tmp_path, "--only", "nonsense")
