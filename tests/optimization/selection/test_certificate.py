"""What a certificate holds, and that it survives the way through a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.optimization.selection.certificate import Certificate, NaturalSelection
from contstim.optimization.selection.natural import select_natural
from contstim.optimization.selection.natural_verification import verify_natural
from contstim.stimuli import read_pairs, write_pairs
from tests.optimization.selection.tables import random_table, repetitive_table


def test_certificate_is_json_with_the_promised_fields(tmp_path: Path) -> None:
    table = repetitive_table()
    for rule in (None, frozenset({"the"})):
        certificate = select_natural(table, per_pair=2, repeatable=rule).certificate
        certificate.save(tmp_path / "new" / "pairs.certificate.json")
        facts = json.loads((tmp_path / "new" / "pairs.certificate.json").read_text())
        promised = "objective bound status solver version tie_rule candidates seconds".split()
        assert list(facts)[: len(promised)] == promised
        assert facts["seconds"] > 0
        assert Certificate.load(tmp_path / "new" / "pairs.certificate.json") == certificate


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"repeatable": null, "models": [], "n": 1}'])
def test_other_files_are_no_certificates(tmp_path: Path, content: str) -> None:
    (tmp_path / "c.json").write_text(content)
    with pytest.raises(InputError, match=r"c\.json.* (is not|lacks)"):
        Certificate.load(tmp_path / "c.json")
    with pytest.raises(InputError, match="Cannot read"):
        Certificate.load(tmp_path / "nowhere.json")


def test_a_selection_read_back_from_files_verifies(tmp_path: Path) -> None:
    table = random_table()
    selection = select_natural(table, per_pair=4)
    write_pairs(tmp_path / "pairs.csv", selection.pairs)
    selection.certificate.save(tmp_path / "pairs.json")
    again = NaturalSelection(
        read_pairs(tmp_path / "pairs.csv"), Certificate.load(tmp_path / "pairs.json")
    )
    verify_natural(table, again, per_pair=4)
