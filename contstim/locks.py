"""Locks between processes."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

from contstim.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LOCKED_BYTE = 1 << 30  # Windows locks bytes, not files: one far from the text, which others read


@contextmanager
def file_lock(path: Path, holder: str) -> Iterator[str | None]:
    """Try to hold a lock that is the operating system's: it ends with the process, however it ends.

    Args:
        path: the file of the lock, which says who holds it.
        holder: who this process is, for whoever is refused.

    Yields:
        None where this process has the lock now; else who holds it, empty if that is not known.

    Raises:
        StoreError: the file cannot be used.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file, acquired = _open_and_lock(path)
        if acquired:
            file.truncate(0)
            file.write(holder)
            file.flush()
    except OSError as error:
        raise StoreError(
            f"Cannot use the lock {path}: {error.strerror or error}. Its folder must be one that "
            "you may write: copy what is in it to another."
        ) from error
    with file:
        if not acquired:
            file.seek(0)
            yield file.read().strip()
            return
        try:
            yield None
        finally:
            with suppress(OSError):  # Windows does not remove an open file
                path.unlink()


def lock_holder(path: Path) -> str | None:
    """Who holds a lock now, empty if that is not known; None where nobody does. Writes nothing."""
    try:
        with path.open("r+", encoding="utf-8") as file:  # network file systems lock no other
            # Of a process that was killed the file stays, and the lock does not
            return None if _acquire(file) else file.read().strip()
    except OSError:  # there is none
        return None


def _open_and_lock(path: Path) -> tuple[IO[str], bool]:
    """A file, and whether this process has its lock now."""
    while True:
        file = path.open("a+", encoding="utf-8")
        if not _acquire(file):
            return file, False
        # Whoever had the lock before may have removed the file between our opening and locking it
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file, True
        file.close()


def _acquire(file: IO[str]) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(_LOCKED_BYTE)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # the one of POSIX, the other of Windows
        return False
    return True
