"""A folder that is filled all at once or not at all."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from contstim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A new folder to write into, whose files move into the target when all are written.

    Until then nothing of the target is touched, and what fails leaves nothing behind, not even the
    folders made for it. Other files of the target stay as they are.

    Raises:
        InputError: the folder, or a file in it, cannot be written.
    """
    target = folder.resolve()
    made = None
    try:
        if target.exists() and not target.is_dir():
            raise NotADirectoryError(None, "it is not a folder")
        made = _make_folder(target.parent)
        work = _work_folder(target)
        try:
            work.mkdir()
            yield work
            _move(work, target)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        made = None
    except OSError as error:
        raise InputError(f"Cannot write {folder}: {error.strerror or error}.") from error
    finally:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)


def _work_folder(target: Path) -> Path:
    """Inside the target where there is one, so that moving stays within a file system."""
    place = target if target.is_dir() else target.parent
    return place / f".{os.getpid()}.partial"


def _make_folder(folder: Path) -> Path | None:
    """Make a folder; the outermost one that was missing, None where there was none."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing[-1] if missing else None


def _move(work: Path, target: Path) -> None:
    if not target.exists():
        work.rename(target)
        return
    for path in sorted(work.rglob("*")):
        place = target / path.relative_to(work)
        if path.is_dir():
            place.mkdir(exist_ok=True)
        else:
            path.replace(place)
