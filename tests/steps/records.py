"""Read the inputs and outputs that the record of an output lists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from contstim.files.files import checksum
from contstim.files.records import record_path


def record_of(output: Path) -> dict[str, Any]:
    """Return the record of an output, after comparing its checksums with the files."""
    path = record_path(output)
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for name, digest in {**record["inputs"], **record["outputs"]}.items():
        assert checksum(path.parent / name, record.get("to_edit", ())) == digest
    return record


def files_of(output: Path) -> tuple[set[str], set[str]]:
    """Return the input files and the output files in the record of an output."""
    record = record_of(output)
    return set(record["inputs"]), set(record["outputs"])
