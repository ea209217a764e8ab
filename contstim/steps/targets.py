"""Paths that a step writes, its record and its store among them: each has one owner."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.files.documents import shortened
from contstim.files.files import is_device
from contstim.files.records import record_path
from contstim.options import Aside, Writes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contstim.steps.step import Step


def identity(path: Path | str) -> Path:
    """A path that is equal for all names of one file: without links, `..` and upper case.

    Case does not count on many file systems, and neither does the form of accented letters.
    """
    return Path(unicodedata.normalize("NFC", os.path.realpath(path)).casefold())


def store_paths(store: Path) -> tuple[Path, ...]:
    """The files of a store: the database, those next to it, and its record."""
    endings = ("", "-wal", "-shm", "-journal", ".times.json")
    return (*(Path(f"{store}{ending}") for ending in endings), record_path(store))


def targets(step: Step[Any]) -> Iterator[tuple[str, Path]]:
    """Every path that a step writes, with the name of its field; devices are left out."""
    for field, value in step.values():
        if isinstance(field.note, Writes) and value is not None:
            for ending in field.note.endings:
                yield field.name, Path(f"{value}{ending}")


def check_targets(step: Step[Any]) -> None:
    """Refuse outputs that are an input, another output, a record, or a file of the store.

    Raises:
        InputError: names both, and the path.
    """
    owners: dict[Path, str] = {}

    def claim(owner: str, path: Path) -> None:
        first_owner = owners.setdefault(identity(path), owner)
        if first_owner != owner:
            raise InputError(
                f"{owner} and {first_owner} must be different files, got {path} for both. Name "
                "another file."
            )

    for name, path in targets(step):
        try:
            is_device(path)
        except OSError as error:
            raise InputError(
                f"`{name}` must be a path that can be written, got {shortened(str(path))}: "
                f"{error.strerror}. Choose another name."
            ) from error
    record, store = step.record_path(), step.store_path()
    for path in () if store is None else store_paths(store):
        claim("the store", path)
    if record is not None:
        claim("the record of the output", record)
    for name, path in targets(step):
        if not is_device(path):
            _refuse_record(name, path)
            claim(f"`{name}`", path)
    for field, value in step.values():
        if not isinstance(field.note, Aside | Writes):
            for path in value if isinstance(value, tuple) else (value,):
                if isinstance(path, Path) and str(path) != "-":
                    _claim_input(owners, f"`{field.name}`", path)
    for path in step.reads():
        _claim_input(owners, "an input", path)


def _claim_input(owners: dict[Path, str], name: str, path: Path) -> None:
    # Two inputs may be one file
    if owner := owners.get(identity(path)):
        raise InputError(f"{owner} would overwrite {name}, {path}. Name another output.")


def _refuse_record(name: str, path: Path) -> None:
    if path.name.endswith(".meta.json"):
        raise InputError(
            f"`{name}` must not end in .meta.json, which is for records, got {path}. Name "
            "another file."
        )


def check_writable(step: Step[Any]) -> None:
    """Refuse outputs whose folder is a file, or may not be written.

    Raises:
        InputError: names the field and the folder.
    """
    for name, path in targets(step):
        if not is_device(path):
            _check_folder(name, path)


def _check_folder(name: str, path: Path) -> None:
    folder = next(parent for parent in path.absolute().parents if os.path.lexists(parent))
    if not folder.is_dir():
        raise InputError(
            f"Cannot write {path}: {folder} is a file, not a folder. Name another `{name}`."
        )
    if not os.access(folder, os.W_OK):
        raise InputError(f"Cannot write {path}: {folder} is not writable. Name another `{name}`.")
