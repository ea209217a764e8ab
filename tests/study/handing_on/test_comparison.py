"""Results made anew against archived ones: small files of which it is plain how they differ."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.study.handing_on.comparison import (
    ArchiveComparison,
    FileOutcome,
    compare_with_archive,
)
from contstim.study.handing_on.manifest import ArchivedFile, Manifest, check_supplied
from contstim.study.study_file import read_study

STUDY = 'title = "None"\n'
_RECORD = {"date": "1", "seconds": 3, "kept": 4, "outputs": {"a.csv": "sha256:1"}}


def listed(name: str, content: str) -> ArchivedFile:
    data = content.encode()
    return ArchivedFile(name, hashlib.sha256(data).hexdigest(), len(data))


def compared(folder: Path, name: str, old: str, new: str | None) -> ArchiveComparison:
    for place, text in (("archived-results", old), ("results", new)):
        if text is not None:
            path = folder / place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    files = (listed("study.toml", STUDY),)
    manifest = Manifest("None", "study.toml", "", "0", files, (listed(name, old),), (), (), (), ())
    (folder / "archive.json").write_text(manifest.json, encoding="utf-8")
    comparison = compare_with_archive(read_study(folder))
    assert comparison is not None
    return comparison


@pytest.mark.parametrize(
    ("name", "old", "new", "outcome", "difference"),
    [
        ("a.csv", "x,y\n1,a\n", "x,y\n1,a\n", FileOutcome.SAME, ""),
        ("a.csv", "x,y\n1,a\n", None, FileOutcome.MISSING, ""),
        (
            "a.csv",
            "x,y\n1.0,a\n2.0,b\nnan,c\n",
            "x,y\n1.5,a\n2.25,c\nnan,c\n",
            FileOutcome.DIFFERENT,
            "x: 2 numbers, by 0.5 at most; y: 1 text",
        ),
        ("a.csv", "x\n1\n2\n", "x\n1\n", FileOutcome.DIFFERENT, "1 row in place of 2"),
        (
            "a.csv",
            "x\n1\n",
            "z\n1\n",
            FileOutcome.DIFFERENT,
            "without the columns x; with the columns z",
        ),
        (
            "a.txt",
            "one\ntwo\n",
            "one\nTwo\n",
            FileOutcome.DIFFERENT,
            "1 line, the first of them line 2",
        ),
        (
            "a.json",
            json.dumps(_RECORD),
            json.dumps({**_RECORD, "date": "2", "seconds": 9, "outputs": {"a.csv": "sha256:2"}}),
            FileOutcome.SAME_RESULT,
            "",
        ),
        (
            "a.json",
            json.dumps({"pairs": [_RECORD]}),
            json.dumps({"pairs": [{**_RECORD, "kept": 5}]}),
            FileOutcome.DIFFERENT,
            "in pairs.kept",
        ),
        ("a.png", "1", "2", FileOutcome.DIFFERENT, "other bytes"),
    ],
)
def test_it_says_how_files_differ_and_in_what(
    tmp_path: Path, name: str, old: str, new: str | None, outcome: FileOutcome, difference: str
) -> None:
    comparison = compared(tmp_path, name, old, new)
    (file,) = comparison.files
    assert (file.outcome, file.difference) == (outcome, difference)
    table = not name.endswith((".json", ".png"))
    assert comparison.tables_differ == (
        table and outcome not in (FileOutcome.SAME, FileOutcome.SAME_RESULT)
    )


def test_a_file_that_is_not_in_the_archive_is_compared_by_its_checksum(tmp_path: Path) -> None:
    compared(tmp_path, "a.csv", "x\n1\n", "x\n2\n")
    (tmp_path / "archived-results" / "a.csv").unlink()
    comparison = compare_with_archive(read_study(tmp_path))
    assert comparison is not None
    assert [file.outcome for file in comparison.files] == [FileOutcome.UNREADABLE]
    assert comparison.tables_differ


def test_a_study_that_was_changed_is_not_compared(tmp_path: Path) -> None:
    compared(tmp_path, "a.csv", "x\n1\n", "x\n2\n")
    (tmp_path / "study.toml").write_text('title = "Another"\n', encoding="utf-8")
    assert compare_with_archive(read_study(tmp_path)) is None


def test_a_damaged_list_is_refused(tmp_path: Path) -> None:
    (tmp_path / "archive.json").write_text('{"title": 3}', encoding="utf-8")
    with pytest.raises(InputError, match="is not the list of an archive"):
        check_supplied(tmp_path)
