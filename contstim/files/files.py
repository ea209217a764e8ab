"""Write files atomically, name files in errors, compute checksums, and lock files."""

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

from contstim.errors import ContstimError, InputError, StoreError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


_DEVICES = Path("/dev")
_MAX_NAME_BYTES = 200  # names may have 255 bytes, and a temporary name is longer than the target's


@contextmanager
def writing(path: Path | str, *, private: bool = False) -> Iterator[Path]:
    """Write a file atomically: yield a temporary path, which replaces the target on success.

    If the run is interrupted, the target is unchanged. Missing folders are created. If the target
    is a link, the linked file is replaced. The new file has the permissions of the old file. If
    `private` is true, only the owner may read the new file. If the target is a device or a pipe,
    such as `/dev/stdout`, the content is copied to the target.

    Raises:
        InputError: if the target cannot be written, or the text cannot be encoded as UTF-8.
    """
    target = Path(path)
    try:
        if not target.name or target.is_dir():
            raise IsADirectoryError(None, "it is a folder")
        with (
            _copy_to_device(target) if is_device(target) else _replace_file(target, private=private)
        ) as partial:
            yield partial
    except OSError as error:
        raise InputError(f"Cannot write {target}: {error.strerror or error}.") from error
    except UnicodeEncodeError as error:
        raise InputError(
            f"Cannot write {target}: {error.object[error.start : error.end]!r} cannot be "
            "written as UTF-8. Use UTF-8 for names and texts."
        ) from error


def is_device(path: Path | str) -> bool:
    """Return True if a path is a device, a pipe or an open stream.

    Raises:
        OSError: if the name is too long, or links form a circle.
    """
    path = Path(path)
    is_stream = path in (_DEVICES / "stdout", _DEVICES / "stderr")
    if is_stream or path.parent in (_DEVICES / "fd", Path("/proc/self/fd")):
        # If the stream is redirected to a file, other programs may write to this file at the same
        # time. So the file must not be replaced
        return True
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def reading(source: object, error: type[ContstimError] = InputError) -> Iterator[None]:
    """Replace errors of reading and decoding by errors of the class `error`, which name the source.

    Raises:
        ContstimError: if the source cannot be read or decoded.
    """
    try:
        yield
    except OSError as reason:
        raise error(f"Cannot read {source}: {reason.strerror or reason}.") from reason
    except UnicodeDecodeError as reason:
        encoding, byte = reason.encoding.upper(), reason.start + 1
        raise error(f"{source} is not {encoding} (byte {byte}). Save it in UTF-8.") from reason


@contextmanager
def decoding(path: Path | str, kind: str) -> Iterator[None]:
    """Convert the errors of a reader of a binary file to the error "PATH is not KIND: …".

    Raises:
        InputError: if the reader raises an error.
    """
    with reading(path):
        try:
            yield
        except OSError:
            raise
        except Exception as error:  # damaged files cause errors of nearly any class
            reason = str(error) or type(error).__name__
            raise InputError(f"{path} is not {kind}: {reason}.") from error


def refuse_device(path: Path | str) -> None:
    """Refuse devices and pipes as inputs, because reading them may never end.

    Raises:
        OSError: if the path is a device, a pipe or a socket, or does not exist.
    """
    mode = Path(path).stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(None, "it is a device or a pipe, not a file")


def is_file(path: Path | str) -> bool:
    """Return whether a path is a file; a path with too long a name is not a file."""
    return os.path.isfile(path)  # noqa: PTH113 (raises no error for long names)


def is_folder(path: Path | str) -> bool:
    """Return whether a path is a folder; a path with too long a name is not a folder."""
    return os.path.isdir(path)  # noqa: PTH112 (raises no error for long names)


def path_inside(folder: Path | str, name: str) -> Path:
    """Return the path of a name in a folder, and refuse names that lead out of the folder.

    Use this function for all names from files that other people may have written, for example from
    shared study files. A name may be a relative path with slashes.

    Raises:
        InputError: if the name is empty or absolute, has `..`, a backslash or a null character, or
            contains a link that leads out of the folder.
    """
    path, root = Path(folder) / name, Path(folder).absolute()
    parts = Path(name).parts  # empty for "" and "."
    if not parts or Path(name).is_absolute() or {"..", "\\", "\0"} & {*name, *parts}:
        raise InputError(
            f"{name!r} must be a file in {root}: the name must not contain '..', a backslash "
            "or a null character, or begin with '/'. Choose another name."
        )
    try:
        inside = Path(folder).resolve() in path.resolve().parents
    except (OSError, RuntimeError):  # links in a circle
        inside = False
    if not inside:
        raise InputError(
            f"{name!r} is, or is inside, a link that leads out of {root}. Replace the link by the "
            "file or folder."
        )
    return path


def write_text(path: Path | str, text: str, *, private: bool = False) -> None:
    """Write a UTF-8 text with Unix line ends; see `writing` for arguments and errors."""
    with writing(path, private=private) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def _replace_file(target: Path, *, private: bool) -> Iterator[Path]:
    if target.is_symlink():
        # Otherwise the link would be replaced, not the linked file
        target = Path(os.path.realpath(target))
    if target.parent == _DEVICES and not target.exists():
        raise OSError(None, "that folder is for devices")
    target.parent.mkdir(parents=True, exist_ok=True)
    encoded = os.fsencode(target.name)
    name = target.name if len(encoded) <= _MAX_NAME_BYTES else hashlib.sha256(encoded).hexdigest()
    partial = target.parent / f".{name}.{os.getpid()}.partial"
    try:
        # Create the file with its mode, so that other users can never read a private file
        partial.touch(mode=0o600 if private else 0o666)
        mode = (target if target.exists() and not private else partial).stat().st_mode
        yield partial
        partial.chmod(stat.S_IMODE(mode))
        # Atomic on POSIX systems: readers see the old or the complete new file
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _copy_to_device(device: Path) -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        complete = Path(folder) / "whole"
        yield complete
        with complete.open("rb") as source, device.open("wb") as target:
            shutil.copyfileobj(source, target)


def checksum(path: Path | str, leave_out: Collection[str] = ()) -> str:
    """Return the SHA-256 checksum of a file or folder: `sha256:` and hexadecimal digits.

    The checksum of a folder depends on the names and contents of its files. Hidden files are
    skipped, because they are temporary or private. Records (`is_record`) are skipped, because they
    contain dates. `leave_out` names further files to skip.

    Raises:
        InputError: if a file cannot be read.
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
    """Return the sorted relative paths of a folder's files, without hidden files and records."""
    folder = Path(folder)
    names = (path.relative_to(folder) for path in visible_files(folder))
    return sorted(name.as_posix() for name in names if not is_record(name))


def visible_files(folder: Path) -> list[Path]:
    """Return the sorted files of a folder and its subfolders, without hidden files and folders."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def is_record(path: Path | str) -> bool:
    """Return True if a path has the name of a record: a JSON file about how an output was made."""
    name = Path(path).name
    return name.endswith(".meta.json") or name == "training.json"


@contextmanager
def file_lock(path: Path, holder: str) -> Iterator[str | None]:
    """Hold a lock of the operating system in the `with` statement, if no other process holds it.

    The system releases the lock even if the process dies.

    Args:
        path: lock file, which is removed at the end.
        holder: description of this process, which the lock file shows to other processes.

    Yields:
        None if this process has acquired the lock. Otherwise, the description of the process that
        holds the lock; empty if unknown.

    Raises:
        StoreError: if the lock file cannot be used.
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
            f"Cannot use the lock file {path}: {error.strerror or error}. Make its folder "
            "writable, or copy the study to another folder."
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
    """Return the description of the process that holds a lock; None if no process holds it.

    The description can be empty.
    """
    try:
        with path.open("r+", encoding="utf-8") as file:  # network file systems need "r+"
            return None if _acquire(file) else file.read().strip()
    except OSError:  # no lock file
        return None


def _open_and_lock(path: Path) -> tuple[IO[str], bool]:
    while True:
        file = path.open("a+", encoding="utf-8")
        if not _acquire(file):
            return file, False
        # Between `open` and `_acquire`, the previous holder may have removed the file. Then another
        # process could create and lock a new file, so open the file again
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file, True
        file.close()


def _acquire(file: IO[str]) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(1 << 30)  # Windows locks bytes, not files; this byte is far beyond the text
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # raised on POSIX and on Windows, respectively
        return False
    return True
