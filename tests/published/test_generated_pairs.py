"""Minimal pairs made here have the fields of BLiMP's published files, and values of their kinds."""

import json
from pathlib import Path

import pytest

from contstim.english.minimal_pairs import generate_pairs
from contstim.english.paradigm import shipped_paradigms

pytestmark = pytest.mark.published


def test_fields_and_kinds_are_those_of_the_published_files(published_data: Path) -> None:
    """Outside witness: the first line of each of the 67 files; two have a remark of their own."""
    published = {}
    for file in sorted((published_data / "blimp" / "data").glob("*.jsonl")):
        with file.open(encoding="utf-8") as lines:
            row = json.loads(next(lines))
        methods = (row["one_prefix_method"], row["two_prefix_method"])
        row = {k: v for k, v in row.items() if k not in ("crucial_item", "dependency_length")}
        published[methods] = {name: type(value) for name, value in row.items()}
    paradigms = [p for p in shipped_paradigms() if p.phenomenon in ("binding", "npi_licensing")]
    paradigms += [p for p in shipped_paradigms() if p.phenomenon == "island_effects"]
    ours = {}
    for pair in generate_pairs(1, seed=0, paradigms=paradigms):
        methods = (bool(pair.one_prefix), bool(pair.two_prefix))
        ours[methods] = {name: type(value) for name, value in pair.row.items()}
    assert ours == published
