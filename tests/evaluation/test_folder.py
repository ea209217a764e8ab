"""The folder that every evaluation writes."""

from __future__ import annotations

import math
from base64 import b64encode
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from contstim.errors import InputError
from contstim.evaluation.folder import (
    Findings,
    data_hash,
    page_table,
    write_findings,
)
from contstim.files.tables import read_table
from contstim.models.catalog import load_model
from contstim.reporting.canvas import new_figure
from contstim.reporting.report import Paragraph

if TYPE_CHECKING:
    from pathlib import Path

    from contstim.evaluation.folder import Columns


def test_the_report_says_what_was_run(tmp_path: Path, trained: Path) -> None:
    trigram = load_model(f"kenlm:{trained / '3gram.arpa'}", name="3-gram")
    out, data = tmp_path / "out", tmp_path / "pairs.jsonl"
    data.write_text("{}")
    columns: Columns = {"paradigm": ["a", "b"], "accuracy": [0.5, math.nan]}
    findings = Findings(
        title="A test",
        summary=page_table(columns),
        parts=[Paragraph("Half of it.")],
        tables={"accuracy": columns, "nothing": {}, "header": {"paradigm": []}},
        figures=lambda: {"accuracy": new_figure(2, 1)},
        facts={"sample": "all"},
    )
    facts, written = write_findings(findings, out, models=[trigram], data=[data], seed=7)
    report = (out / "report.md").read_text(encoding="utf-8")
    page = (out / "report.html").read_text(encoding="utf-8")
    for fact in (
        "# A test",
        "Half of it.",
        trigram.name,
        trigram.convention.fingerprint,
        "seed: 7",
        "sample: all",
    ):
        assert fact.removeprefix("# ") in page
        assert fact in report
    assert data_hash([data]) in report
    assert "![accuracy](accuracy.png)" in report
    assert b64encode((out / "accuracy.png").read_bytes()).decode() in page
    cells = {"paradigm": ["a", "b"], "accuracy": ["0.5", ""]}
    assert read_table(out / "accuracy.csv") == cells
    assert (out / "header.csv").read_text() == '"paradigm"\n'
    assert not (out / "nothing.csv").exists()
    assert (out / "accuracy.png").read_bytes()[1:4] == b"PNG"
    assert {path.name for path in written} == {
        "accuracy.csv",
        "accuracy.pdf",
        "accuracy.png",
        "header.csv",
    }
    assert facts["models"][trigram.name]["rule"] == "log-likelihood"
    assert (facts["data_sha256"], facts["seed"], facts["sample"]) == (data_hash([data]), 7, "all")


def test_the_hash_is_of_names_and_contents(tmp_path: Path) -> None:
    """Witness: hashlib on the bytes written out by hand."""
    for name, content in (("b.txt", "two"), ("a.txt", "one")):
        (tmp_path / name).write_text(content)
    expected = sha256(b"a.txt\x003\x00oneb.txt\x003\x00two").hexdigest()
    assert data_hash([tmp_path / "b.txt", tmp_path / "a.txt"]) == expected
    with pytest.raises(InputError, match="Cannot read"):
        data_hash([tmp_path / "c.txt"])
