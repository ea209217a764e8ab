"""Files: written whole or not at all, told apart by checksums, locked between processes."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING

from contstim.errors import InputError, StoreError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from contstim.errors import ContstimError

_DEVICES = Path("/dev")
_STREAMS = (Path("/dev/fd"), Path("/proc/self/fd"))
_LONGEST_NAME = 200  # bytes, which leave room in 255 for what a partial file's name adds
_OWNER_ONLY = 0o600
_LOCKED_BYTE = 1 << 30  # Windows locks bytes, not files: one far from the text, which others read


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


@contextmanager
def reading(source: object, error: type[ContstimError] = InputError) -> Iterator[None]:
    """Raise what goes wrong with a file, or with the text in it, as an error that names it.

    Args:
        source: the file, or where the text is from.
        error: kind of the error.

    Raises:
        ContstimError: of that kind; the file cannot be read or is not UTF-8 (names the byte).
    """
    try:
        yield
    except OSError as reason:
        raise error(f"Cannot read {source}: {reason.strerror or reason}.") from reason
    except UnicodeDecodeError as reason:
        encoding, byte = reason.encoding.upper(), reason.start + 1
        raise error(f"{source} is not {encoding} (byte {byte}). Save it in UTF-8.") from reason


@contextmanager
def decoding(path: Path | str, what: str) -> Iterator[None]:
    """Raise errors of a reader of binary files, which are of many kinds, as ours.

    Args:
        path: the file.
        what: what it must be, after "is not".

    Raises:
        InputError: the file cannot be read, or is something else.
    """
    with reading(path):
        try:
            yield
        except OSError:
            raise
        except Exception as error:  # damaged files raise nearly anything
            reason = str(error) or type(error).__name__
            raise InputError(f"{path} is not {what}: {reason}.") from error


def refuse_device(path: Path | str) -> None:
    """Refuse a device or a pipe in place of a file to be read: it may have no end, or no beginning.

    Raises:
        OSError: it is a device, a pipe or a socket, or nothing is there.
    """
    mode = Path(path).stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(None, "it is a device or a pipe, not a file")


def is_file(path: Path | str) -> bool:
    """True if there is such a file; False if the name is longer than the file system takes."""
    try:
        return Path(path).is_file()
    except OSError:
        return False


def is_folder(path: Path | str) -> bool:
    """True if there is such a folder; False if the name is longer than the file system takes."""
    try:
        return Path(path).is_dir()
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
    with reading(path):
        if path.is_dir():
            names = (name for name in files_of(path) if name not in leave_out)
            lines = (f"{name} {checksum(path / name)}\n" for name in names)
            return f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"
        refuse_device(path)
        with path.open("rb") as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def files_of(folder: Path | str) -> list[str]:
    """The files of a folder and its subfolders that count, by their paths in it, in order."""
    folder = Path(folder)
    names = (path.relative_to(folder) for path in visible_files(folder))
    return sorted(name.as_posix() for name in names if not is_record(name))


def visible_files(folder: Path) -> list[Path]:
    """The files of a folder and its subfolders, in order, without hidden ones."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def is_record(path: Path | str) -> bool:
    """True if a file is, by its name, a record of how another came about."""
    name = Path(path).name
    return name.endswith(".meta.json") or name == "training.json"


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
