"""What a certificate holds, and that it survives the way through a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contstim.errors import InputError
from contstim.files.tables import columns_of, write_table
from contstim.items.stimuli import Pair, Triplet, read_pairs, read_triplets
from contstim.optimization.selection.question import (
    NaturalCertificate,
    NaturalSelection,
    SelectionCertificate,
    TripletCertificate,
    TripletSelection,
)
from contstim.optimization.selection.verification import verify_natural, verify_triplets
from tests.optimization.selection.tables import choose, random_table, repetitive_table
from tests.optimization.selection.test_triplets import COUNTED, TAGS, selected


def test_certificates_are_json_with_the_promised_fields(tmp_path: Path) -> None:
    rule: dict[str, Any] = {"no_repeats": True, "repeatable": frozenset({"the"})}
    found: list[SelectionCertificate] = [
        choose(repetitive_table(), per_pair=2).certificate,
        choose(repetitive_table(), per_pair=2, **rule).certificate,
        selected()[1].certificate,
    ]
    path = tmp_path / "new" / "c.json"
    for certificate in found:
        certificate.save(path)
        facts = json.loads(path.read_text())
        promised = "objective bound status solver version tie_rule candidates seconds".split()
        assert list(facts)[: len(promised)] == promised
        assert facts["seconds"] > 0
        assert type(certificate).load(path) == certificate


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"question": null, "models": [], "n": 1}'])
@pytest.mark.parametrize("kind", [NaturalCertificate, TripletCertificate])
def test_other_files_are_no_certificates(
    tmp_path: Path, content: str, kind: type[SelectionCertificate]
) -> None:
    (tmp_path / "c.json").write_text(content)
    with pytest.raises(InputError, match=r"c\.json.* is not"):
        kind.load(tmp_path / "c.json")
    with pytest.raises(InputError, match="Cannot read"):
        kind.load(tmp_path / "nowhere.json")


def test_selections_read_back_from_files_verify(tmp_path: Path) -> None:
    table = random_table()
    pairs = choose(table, per_pair=4)
    write_table(tmp_path / "pairs.csv", columns_of(Pair, pairs.pairs))
    pairs.certificate.save(tmp_path / "pairs.json")
    certificate = NaturalCertificate.load(tmp_path / "pairs.json")
    verify_natural(table, NaturalSelection(read_pairs(tmp_path / "pairs.csv"), certificate))

    rules: dict[str, Any] = {"token_balance": 2.0, "word_cap": 30}
    triplets, found = selected(**rules, objective="readable", tags=TAGS)
    write_table(tmp_path / "triplets.csv", columns_of(Triplet, found.triplets))
    found.certificate.save(tmp_path / "triplets.json")
    again = TripletSelection(
        read_triplets(tmp_path / "triplets.csv"),
        TripletCertificate.load(tmp_path / "triplets.json"),
    )
    assert again == found
    verify_triplets(triplets, again, tokens=COUNTED)
