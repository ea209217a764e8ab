"""Writing files whole or not at all."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def writing(path: Path | str) -> Iterator[Path]:
    """A file beside the target to write into; it takes the target's place when all is written.

    So an interrupted run leaves the old file or none, never a part of one. Missing folders are
    made.

    Raises:
        InputError: the file cannot be written there.
    """
    target = Path(path)
    partial = target.parent / f".{target.name}.{os.getpid()}.partial"
    try:
        if not target.name or target.is_dir():
            raise IsADirectoryError(None, "it is a folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        partial.replace(target)
    except OSError as error:
        raise InputError(f"Cannot write {target}: {error.strerror or error}.") from error
    finally:
        if is_file(partial):
            partial.unlink()


def is_file(path: Path | str) -> bool:
    """Whether there is such a file; not where the name is longer than the file system takes."""
    try:
        return Path(path).is_file()
    except OSError:
        return False


def write_text(path: Path | str, text: str) -> None:
    """Write a UTF-8 text with Unix line ends.

    Raises:
        InputError: see `writing`.
    """
    with writing(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")
