"""Texts that must not run as formulas; the signs are those of OWASP's page on CSV injection."""

from __future__ import annotations

import csv
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from contstim.experiments.responses import Response, read_responses, write_responses
from contstim.experiments.responses.table import (
    APOSTROPHE,
    NO_BREAK_SPACE,
    escape_formula,
    unescape_formula,
)

texts = st.text(st.sampled_from("'\N{NO-BREAK SPACE}=+-@\t\r\n＝＋－＠a1 (\"")) | st.text()
marks = st.sampled_from((APOSTROPHE, NO_BREAK_SPACE))


@given(texts, marks)
def test_what_is_escaped_begins_like_no_formula_and_is_given_back(text: str, mark: str) -> None:
    assert not escape_formula(text, mark).startswith(
        ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
    )
    assert unescape_formula(escape_formula(text, mark), mark) == text


def test_ordinary_names_stay_as_they_are() -> None:
    for name in ("natural-5f3c", "p01", "'tis", "''", "a=b", "3", ""):
        assert escape_formula(name) == unescape_formula(name) == name


def test_a_table_holds_no_formula_and_reads_back(tmp_path: Path) -> None:
    names = ("=1+1", "'=1+1", "-5", "@a", "\t=1", "ordinary")
    rows = tuple(Response(name, 1, name, 3, 1, 1, 5.0) for name in names)
    write_responses(tmp_path / "responses.csv", rows)
    with (tmp_path / "responses.csv").open(newline="", encoding="utf-8") as file:
        cells = [row[0] for row in csv.reader(file)][1:]
    assert cells == ["'=1+1", "''=1+1", "'-5", "'@a", "'\t=1", "ordinary"]
    assert read_responses(tmp_path / "responses.csv") == rows
