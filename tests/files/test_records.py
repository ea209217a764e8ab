"""Records of outputs, against checksums by hashlib and fixed dates."""

import hashlib
import json
import re
from importlib import metadata
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.files import records
from contstim.files.documents import FORMAT
from contstim.files.files import checksum, files_of
from contstim.files.records import Record, now, path_from, recorded_as, write_record
from contstim.files.tables import columns_of, write_table
from contstim.items.stimuli import Pair, read_pairs
from tests.optimization.selection.tables import choose, random_table


def _sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def test_record_lists_checksums_of_inputs_and_outputs(tmp_path: Path) -> None:
    """Witness: hashlib. Paths are relative to the record, not to the working folder."""
    (tmp_path / "out").mkdir()
    source, table = tmp_path / "text.txt", tmp_path / "out" / "scores.csv"
    proof = tmp_path / "out" / "proof.json"
    for path, content in ((source, b"a\n"), (table, b"b\n"), (proof, b"{}")):
        path.write_bytes(content)
    path = write_record(table, [source, "-", None, "/dev/null"], [proof], seed=3)
    record = json.loads(path.read_text())
    assert record["inputs"] == {"../text.txt": _sha256(b"a\n")}
    assert record["outputs"] == {"scores.csv": _sha256(b"b\n"), "proof.json": _sha256(b"{}")}
    assert (record["seed"], record["date"]) == (3, "2023-11-14T22:13:20Z")
    assert {"system", "machine", "processors"} <= record["environment"].keys()


def test_devices_and_databases_have_no_checksum(tmp_path: Path) -> None:
    """Devices may be infinite, and an edited record may name one."""
    with pytest.raises(InputError, match="Cannot read /dev/zero: it is a device"):
        checksum("/dev/zero")
    (tmp_path / "a.sqlite").write_bytes(b"")
    record = json.loads(write_record(tmp_path / "a.sqlite", (), None).read_text())
    assert record["outputs"] == {}


def test_date_is_the_current_time_unless_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert now() > "2026-01-01T00:00:00Z"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert now() == "1970-01-01T00:00:00Z"


def test_record_may_name_another_command(tmp_path: Path) -> None:
    with recorded_as(["contstim", "run"]):
        record = json.loads(write_record(tmp_path / "a").read_text())
    assert record["command"] == ["contstim", "run"]
    next_record = json.loads(write_record(tmp_path / "a").read_text())
    assert next_record["command"] != ["contstim", "run"]


def test_checksum_of_a_folder_covers_names_and_contents(tmp_path: Path) -> None:
    """Witness: hashlib. Records, which contain dates, and hidden files do not count."""
    (tmp_path / "sub").mkdir()
    for name in ("b.txt", "sub/a.txt", ".hidden", "b.txt.meta.json", "training.json"):
        (tmp_path / name).write_text(name)
    assert files_of(tmp_path) == ["b.txt", "sub/a.txt"]
    lines = f"b.txt {_sha256(b'b.txt')}\nsub/a.txt {_sha256(b'sub/a.txt')}\n"
    assert checksum(tmp_path) == _sha256(lines.encode())
    (tmp_path / "b.txt").rename(tmp_path / "c.txt")
    assert checksum(tmp_path) != _sha256(lines.encode())


def test_versions_list_installed_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries of extras that are not installed are omitted."""

    def version(library: str) -> str:
        if library == "kenlm":
            raise metadata.PackageNotFoundError(library)
        return "1.0"

    monkeypatch.setattr(metadata, "version", version)
    records._library_version.cache_clear()
    try:
        assert {*records._LIBRARIES} - {*records.versions()} == {"kenlm"}
    finally:
        records._library_version.cache_clear()


def test_other_drives_have_full_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_as_on_windows(*_paths: object) -> str:
        raise ValueError("path is on mount 'D:', start on mount 'C:'")

    monkeypatch.setattr("os.path.relpath", fail_as_on_windows)
    assert path_from(tmp_path, tmp_path / "more.txt") == (tmp_path / "more.txt").as_posix()


def test_newer_format_is_refused_by_all_readers(tmp_path: Path) -> None:
    """In a record, and in the record of a table."""
    table = tmp_path / "pairs.csv"
    selection = choose(random_table(), per_pair=1)
    write_table(table, columns_of(Pair, selection.pairs))
    record = write_record(table)
    content = json.loads(record.read_text())
    assert content["format"] == FORMAT
    record.write_text(json.dumps(content | {"format": FORMAT + 1}))
    message = f"has the format {FORMAT + 1}, but this version of contstim reads {FORMAT}"
    with pytest.raises(InputError, match=f"{re.escape(str(record))} {message}"):
        Record.from_file(record)
    with pytest.raises(InputError, match=f"{re.escape(str(table))} {message}"):
        read_pairs(table)
    record.write_text("{")  # `contstim verify` reports damaged records
    assert read_pairs(table) == selection.pairs
