"""Writing files whole or not at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from contstim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEVICES = Path("/dev")
_STREAMS = (Path("/dev/fd"), Path("/proc/self/fd"))
_LONGEST_NAME = 200  # bytes, which leave room in 255 for what a partial file's name adds
_OWNER_ONLY = 0o600


@contextmanager
def writing(path: Path | str, *, private: bool = False) -> Iterator[Path]:
    """A file beside the target to write into; it takes the target's place when all is written.

    So an interrupted run leaves the old file or none, never a part of one. Missing folders are
    made. What a link points to is replaced, not the link, and the new file has the old one's
    permissions. A device or a pipe, such as `/dev/null` or `/dev/stdout`, is written into.

    Args:
        path: the target.
        private: whether its owner alone may read it, because it holds a secret.

    Raises:
        InputError: the file cannot be written there, or a text for it is not valid Unicode.
    """
    target = Path(path)
    try:
        if not target.name or target.is_dir():
            raise IsADirectoryError(None, "it is a folder")
        if is_device(target):
            with _copied_into(target) as partial:
                yield partial
        else:
            with _replacing(target, private=private) as partial:
                yield partial
    except OSError as error:
        raise InputError(f"Cannot write {target}: {error.strerror or error}.") from error
    except UnicodeEncodeError as error:
        raise InputError(
            f"Cannot write {target}: {error.object[error.start : error.end]!r} cannot be written "
            f"as UTF-8. Was a name or a text given in another encoding?"
        ) from error


def is_device(path: Path | str) -> bool:
    """True if a path is that of a device, a pipe or an open stream.

    Raises:
        OSError: the name is too long, or a link leads to itself.
    """
    path = Path(path)
    if path in (_DEVICES / "stdout", _DEVICES / "stderr") or path.parent in _STREAMS:
        return True  # also where it leads to a file, into which others write, too
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def refuse_device(path: Path | str) -> None:
    """Refuse a device, such as `/dev/zero`, which has no end, in place of a file to be read.

    Raises:
        OSError: it is a device, or nothing is there.
    """
    mode = Path(path).stat().st_mode
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise OSError(None, "it is a device, not a file")


def is_file(path: Path | str) -> bool:
    """True if there is such a file; False if the name is longer than the file system takes."""
    try:
        return Path(path).is_file()
    except OSError:
        return False


def path_inside(folder: Path | str, name: str) -> Path:
    """The path of a file or folder that a text names, within a folder that it does not leave.

    Names that somebody else wrote, as in a study file that is handed on, become paths here only.

    Args:
        folder: which need not be there yet.
        name: as the text has it; with slashes, a path from the folder.

    Raises:
        InputError: the name is empty or absolute, has `..`, a backslash or a null character, or
            there is a link on its way that leads out of the folder.
    """
    path, own = Path(folder) / name, Path(folder).absolute()
    parts = Path(name).parts  # none of "" and "."
    if not parts or Path(name).is_absolute() or {"..", "\\", "\0"} & {*name, *parts}:
        raise InputError(
            f"{name!r} does not name a file within {own}: such a name has no '..', backslash or "
            "null character, and does not begin with '/'. Choose another name."
        )
    try:
        inside = Path(folder).resolve() in path.resolve().parents
    except (OSError, RuntimeError):  # links in a circle
        inside = False
    if not inside:
        raise InputError(
            f"{name!r} is a link that leads out of {own}, or stands behind one. Put the file or "
            "folder itself in the place of the link."
        )
    return path


def write_text(path: Path | str, text: str, *, private: bool = False) -> None:
    """Write a UTF-8 text with Unix line ends; see `writing`.

    Raises:
        InputError: see `writing`.
    """
    with writing(path, private=private) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def _replacing(target: Path, *, private: bool) -> Iterator[Path]:
    if target.is_symlink():
        # Renaming onto the link itself would put a file in its place
        target = Path(os.path.realpath(target))
    if target.parent == _DEVICES and not target.exists():
        raise OSError(None, "that folder is for devices")
    target.parent.mkdir(parents=True, exist_ok=True)
    # Hidden, and named for its process; a long name gives way to its hash, which leaves room.
    written = os.fsencode(target.name)
    name = target.name if len(written) <= _LONGEST_NAME else hashlib.sha256(written).hexdigest()
    partial = target.parent / f".{name}.{os.getpid()}.partial"
    try:
        partial.touch(mode=_OWNER_ONLY if private else 0o666)  # whatever mode a writer would give
        mode = (target if target.exists() and not private else partial).stat().st_mode
        yield partial
        partial.chmod(stat.S_IMODE(mode))
        # One step on every POSIX system: readers see the old file or the whole new one
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _copied_into(device: Path) -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        # A device cannot be renamed onto, and a pipe not written twice: the whole first, then a
        # copy
        whole = Path(folder) / "whole"
        yield whole
        with whole.open("rb") as source, device.open("wb") as target:
            shutil.copyfileobj(source, target)
