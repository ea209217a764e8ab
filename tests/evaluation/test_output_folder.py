"""The folder that every evaluation writes."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from contstim.errors import InputError
from contstim.evaluation.output_folder import data_hash, write_evaluation
from contstim.models.catalog import load_model
from contstim.reporting.canvas import new_figure, styled
from contstim.reporting.report import Paragraph
from contstim.tables import read_table

if TYPE_CHECKING:
    from pathlib import Path


def test_the_report_says_what_was_run(tmp_path: Path, trained: Path) -> None:
    trigram = load_model(f"kenlm:{trained / '3gram.arpa'}", name="3-gram")
    out, data = tmp_path / "out", tmp_path / "pairs.jsonl"
    data.write_text("{}")
    with styled():
        write_evaluation(
            out,
            title="A test",
            parts=[Paragraph("Half of it.")],
            tables={"accuracy": {"paradigm": ["a"], "accuracy": [0.5]}},
            figures={"accuracy": new_figure(2, 1)},
            models=[trigram],
            data=[data],
            seed=7,
        )
    report = (out / "report.md").read_text(encoding="utf-8")
    page = (out / "report.html").read_text(encoding="utf-8")
    for fact in (
        "# A test",
        "Half of it.",
        trigram.name,
        trigram.convention.fingerprint,
        "seed: 7",
    ):
        assert fact.removeprefix("# ") in page
        assert fact in report
    assert data_hash([data]) in report
    assert "![accuracy](accuracy.png)" in report
    assert b64encode((out / "accuracy.png").read_bytes()).decode() in page
    assert read_table(out / "accuracy.csv") == {"paradigm": ["a"], "accuracy": ["0.5"]}
    assert (out / "accuracy.png").read_bytes()[1:4] == b"PNG"
    record = json.loads((out / "report.md.meta.json").read_text(encoding="utf-8"))
    assert record["models"][trigram.name]["rule"] == "log-likelihood"
    read = {name.rpartition("/")[2] for name in record["inputs"]}
    assert {"pairs.jsonl", "3gram.arpa", "3gram.arpa.counts.csv"} <= read


def test_the_hash_is_of_names_and_contents(tmp_path: Path) -> None:
    """Witness: hashlib on the bytes written out by hand."""
    for name, content in (("b.txt", "two"), ("a.txt", "one")):
        (tmp_path / name).write_text(content)
    expected = sha256(b"a.txt\x003\x00oneb.txt\x003\x00two").hexdigest()
    assert data_hash([tmp_path / "b.txt", tmp_path / "a.txt"]) == expected
    with pytest.raises(InputError, match="Cannot read"):
        data_hash([tmp_path / "c.txt"])
