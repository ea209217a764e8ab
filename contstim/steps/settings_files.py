"""Files that settings name, of which a record has checksums."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any


def files_of_settings(settings: Any) -> tuple[list[Path], list[Path]]:
    """Files that a dataclass of settings has to be read, and those that it has to be written.

    A field that ends in `_out` names a file to write, as options of that ending do.
    """
    read: list[Path] = []
    written: list[Path] = []
    for field in fields(settings):
        value = getattr(settings, field.name)
        paths = value if isinstance(value, tuple) else (value,)
        files = written if field.name.endswith("_out") else read
        files += [path for path in paths if isinstance(path, Path)]
    return read, written
