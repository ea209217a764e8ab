"""What the files of weights in a folder hold, read from their headers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_INTEGERS = frozenset({"I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64", "BOOL"})
_LONGEST_HEADER = 100_000_000  # bytes; the format allows no more


def n_stored(location: str) -> int | None:
    """How many numbers the weights in a folder can have at most; None for a name on the hub."""
    folder = Path(location)
    if not folder.is_dir():
        return None
    files = [*folder.glob("*.safetensors"), *folder.glob("*.bin")]
    return 2 * sum(file.stat().st_size for file in files)  # four bits a number at the least


def integer_tensors(location: str) -> list[str]:
    """Names of the tensors that a folder's safetensors files keep as whole numbers."""
    folder = Path(location)
    if not folder.is_dir():
        return []
    return sorted(
        name
        for file in folder.glob("*.safetensors")
        for name, entry in _header(file).items()
        if isinstance(entry, dict) and entry.get("dtype") in _INTEGERS
    )


def _header(file: Path) -> dict[str, Any]:
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if length > _LONGEST_HEADER:
            return {}
        header: dict[str, Any] = json.loads(stream.read(length))
    return header
