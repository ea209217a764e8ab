"""What the record of a step's output says of files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from contstim.files.files import checksum
from contstim.files.records import record_path


def record_of(output: Path) -> dict[str, Any]:
    """The record of an output, after its checksums were compared with the files."""
    path = record_path(output)
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for name, digest in {**record["inputs"], **record["outputs"]}.items():
        assert checksum(path.parent / name, record.get("to_edit", ())) == digest
    return record


def files_of(output: Path) -> tuple[set[str], set[str]]:
    """Files that were read for an output, and that were written with it."""
    record = record_of(output)
    return set(record["inputs"]), set(record["outputs"])
