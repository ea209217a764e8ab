"""Checksums of files and folders, by which changes are noticed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.files import refuse_device

if TYPE_CHECKING:
    from collections.abc import Collection


def checksum(path: Path | str, leave_out: Collection[str] = ()) -> str:
    """`sha256:` and the digest of a file, or of a folder: its files' names and contents.

    Of a folder, hidden files do not count, which are partial or private, nor do records, which
    hold dates.

    Args:
        path: of the file or folder.
        leave_out: files of the folder that do not count, either, such as texts to be edited.

    Raises:
        InputError: the file cannot be read.
    """
    path = Path(path)
    try:
        if path.is_dir():
            names = (name for name in files_of(path) if name not in leave_out)
            lines = (f"{name} {checksum(path / name)}\n" for name in names)
            return f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"
        refuse_device(path)
        with path.open("rb") as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error


def files_of(folder: Path | str) -> list[str]:
    """The files of a folder and its subfolders that count, by their paths in it, in order."""
    folder = Path(folder)
    names = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(
        name.as_posix()
        for name in names
        if not is_record(name) and not any(part.startswith(".") for part in name.parts)
    )


def is_record(path: Path | str) -> bool:
    """True if a file is, by its name, a record of how another came about."""
    name = Path(path).name
    return name.endswith(".meta.json") or name == "training.json"
