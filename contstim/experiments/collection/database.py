"""The database of answers: tables, keys, and the server's only writing thread.

The data of a request are on disk before the server responds to the request. SQLite syncs its
write-ahead log at every commit, so neither SIGKILL nor a power cut can undo an acknowledged
request. A sync takes milliseconds. All requests that arrive during a sync are written together by
the next sync.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
import sqlite3
import stat
import sys
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from contstim.errors import StoreError
from contstim.store.database import make_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Work: TypeAlias = Callable[[sqlite3.Connection], Any]
    Job: TypeAlias = tuple[Work, Future[Any]]

T = TypeVar("T")
Arguments = ParamSpec("Arguments")

APPLICATION_ID = 0x636F6E63  # "conc"; a study's score store has another identifier
LAYOUT = 4

BUSY_SECONDS = 5.0
_MAX_BATCH = 500  # requests in a commit
_LOCKED_BYTE = (1 << 31) - 1  # position beyond the file's content and SQLite's own locks


def stored_key(connection: sqlite3.Connection, name: str) -> str:
    """Read the value `name` from the table `study` of the database.

    `secret` and `salt` are random hexadecimal keys. Participants' secrets and completion codes are
    derived from `secret`. Identities are hashed with `salt`. `fingerprint` identifies the study's
    groups and trials. `server` describes the server that opened the database last.
    """
    return str(connection.execute("SELECT value FROM study WHERE name = ?", (name,)).fetchone()[0])


def digest(key: str, field: str, value: str) -> str:
    """Return a keyed hash of a value; the hash reveals nothing without the key."""
    # No field name contains the separator, so different pairs of field and value give different
    # texts
    return hmac.new(bytes.fromhex(key), f"{field}\x1f{value}".encode(), sha256).hexdigest()[:32]


def completion_code(secret: str, participant: str) -> str:
    """Return a participant's completion code, short enough to be copied by hand."""
    return digest(secret, "code", participant)[:10].upper()


def withdrawal_mark(connection: sqlite3.Connection, text: str) -> str:
    """Return the name of the row in the table `study` that marks `text` as withdrawn.

    `text` is the name or the identity of a participant who has withdrawn.
    """
    return f"withdrawn {digest(stored_key(connection, 'secret'), 'withdrawn', text)}"


def equal_secrets(first: str, second: str) -> bool:
    """Return whether two texts are equal; the time does not depend on where the texts differ."""
    return hmac.compare_digest(first.encode(errors="replace"), second.encode(errors="replace"))


class Recorder:
    """A server's database, locked against other servers and written by one thread.

    `server` describes this server in the error messages of other servers. `extends` takes the
    fingerprint of another study, and returns whether this study has all groups of the other study.

    Raises:
        StoreError: if the file is not a database of answers, belongs to another study, has hard
            links, or cannot be used; or if another server uses it (the message names the server).
    """

    def __init__(
        self,
        path: Path,
        fingerprint: str,
        server: str = "",
        extends: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.path = path
        try:
            with ExitStack() as resources:
                path.parent.mkdir(parents=True, exist_ok=True)
                # Only the owner may read the file, because it contains identities. SQLite gives its
                # log the same permissions.
                file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
                resources.callback(os.close, file)
                _require_one_name(path)
                self._connection = resources.enter_context(writable_connection(path))
                _lock(path, file)  # only after SQLite has locked the file; see `_lock`
                _initialize(self._connection, path, fingerprint, server, extends)
                self._secret = stored_key(self._connection, "secret")
                self._files = {file: _identity(file) for file in (path, Path(f"{path}-wal"))}
                self._resources = resources.pop_all()
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"Cannot use {path} as the database of answers: {error}.") from error
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread = Thread(target=self._write, name="recorder", daemon=True)
        self._thread.start()

    def participant_secret(self, participant: str) -> str:
        """Return the secret that a participant's browser must send; it is derived from the name."""
        return digest(self._secret, "secret", participant)

    def completion_code(self, participant: str) -> str:
        """Return the individual completion code of a participant."""
        return completion_code(self._secret, participant)

    async def run(
        self,
        work: Callable[Concatenate[sqlite3.Connection, Arguments], T],
        *args: Arguments.args,
        **options: Arguments.kwargs,
    ) -> T:
        """Run `work`, and return its result when everything that `work` wrote is on disk.

        If `work` raises an error, nothing that `work` wrote is stored, and this function raises the
        error.
        """
        done: Future[T] = Future()
        self._jobs.put((lambda connection: work(connection, *args, **options), done))
        return await asyncio.wrap_future(done)

    def check(self) -> None:
        """Check that the database on disk is still the open database.

        If an open file is deleted or replaced, writing continues without an error. But the written
        data are lost when the server stops.

        Raises:
            StoreError: if a file has been deleted, moved, replaced or made read-only.
        """
        for file, identity in self._files.items():
            now = None
            with suppress(OSError):
                now = _identity(file)
            if now != identity:
                raise StoreError(
                    f"{file} has been deleted, moved, replaced or made read-only while the "
                    "server ran. No answers are accepted until the file is restored."
                )

    def close(self) -> None:
        """Finish all pending requests, and close the file."""
        self._jobs.put(None)
        self._thread.join()
        self._resources.close()

    def _write(self) -> None:
        jobs: list[Job | None] = []
        while None not in jobs:  # `close` adds None as the last job
            jobs = [self._jobs.get()]
            with suppress(Empty):  # all jobs that arrived during the last commit share the next one
                while len(jobs) < _MAX_BATCH:
                    jobs.append(self._jobs.get_nowait())
            self._commit([job for job in jobs if job is not None])

    def _commit(self, jobs: list[Job]) -> None:
        jobs = [job for job in jobs if job[1].set_running_or_notify_cancel()]
        if not jobs:
            return
        outcomes: list[tuple[Any, BaseException | None]] = []
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            outcomes = [_run_in_savepoint(self._connection, work) for work, _ in jobs]
            self._connection.execute("COMMIT")
            self.check()
        except (sqlite3.Error, StoreError) as error:  # for example, the disk is full
            outcomes = [(None, error)] * len(jobs)
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        for (_, done), (result, failure) in zip(jobs, outcomes, strict=True):
            if failure is None:
                done.set_result(result)
            else:
                done.set_exception(failure)


def _run_in_savepoint(
    connection: sqlite3.Connection, work: Work
) -> tuple[Any, BaseException | None]:
    connection.execute("SAVEPOINT request")
    try:
        result = work(connection)
    except Exception as error:
        connection.execute("ROLLBACK TO request")
        return None, error
    finally:
        connection.execute("RELEASE request")
    return result, None


def _identity(file: Path) -> tuple[int, int, bool]:
    """Return device and inode of a file, and whether its owner may write."""
    status = file.stat()
    return status.st_dev, status.st_ino, bool(status.st_mode & stat.S_IWUSR)


@contextmanager
def writable_connection(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a connection for writing, which holds a SQLite lock until the `with` block ends."""
    connection = sqlite3.connect(
        path, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False
    )
    with closing(connection):
        if _has_tables(connection):
            _require_layout(connection, path)  # checked before a file is changed
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON"):
            connection.execute(f"PRAGMA {pragma}")
        # Each commit changes the file itself, not only the log. So studies that read the file
        # notice new answers.
        connection.execute("PRAGMA wal_autocheckpoint = 1")
        connection.execute("PRAGMA foreign_keys = ON")
        _has_tables(connection)  # reads once, which acquires the lock
        yield connection


def _lock(path: Path, file: int) -> None:
    """Lock a database file against other servers until the process ends.

    The lock is valid for all names (hard links) of the file.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(file, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            # Like SQLite, this function sets a POSIX lock, but on another byte. When no connection
            # needs a lock, SQLite releases all POSIX locks of the process, including the lock of
            # this function. In WAL mode, an open connection always needs a lock, so the lock of
            # this function is kept. On macOS, a `flock` lock would exclude SQLite itself.
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _LOCKED_BYTE)
    except (BlockingIOError, PermissionError):  # raised by POSIX and by Windows
        raise StoreError(
            f"{path} is in use by {_read_server(path)}. Name another database."
        ) from None


def _read_server(path: Path) -> str:
    with suppress(StoreError, sqlite3.Error), closing(open_readable(path)) as connection:
        return stored_key(connection, "server")
    return "another server"


def _has_tables(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])


def _initialize(
    connection: sqlite3.Connection,
    path: Path,
    fingerprint: str,
    server: str,
    extends: Callable[[str], bool],
) -> None:
    connection.execute("BEGIN IMMEDIATE")
    if not _has_tables(connection):
        make_tables(connection, "contstim.experiments.collection", APPLICATION_ID, LAYOUT)
        keys = {name: secrets.token_hex(32) for name in ("secret", "salt")}
        values = {"fingerprint": fingerprint, **keys}
        connection.executemany("INSERT INTO study VALUES (?, ?)", values.items())
    connection.execute("INSERT OR REPLACE INTO study VALUES ('server', ?)", (server,))
    stored = stored_key(connection, "fingerprint")
    if stored != fingerprint and extends(stored):  # a later wave of participants has added groups
        connection.execute("UPDATE study SET value = ? WHERE name = 'fingerprint'", (fingerprint,))
    elif stored != fingerprint:
        raise StoreError(
            f"{path} contains answers to trials of another study. Name another database."
        )
    connection.execute("COMMIT")


def open_readable(path: Path) -> sqlite3.Connection:
    """Open a snapshot of the database, which a server may continue to write.

    Raises:
        StoreError: if the file is not a database of answers, has the layout of another version, or
            has hard links and no write-ahead log next to it.
    """
    try:
        # If a write-ahead log is next to the file, a server uses the file under this name
        if path.exists() and not Path(f"{path}-wal").exists():
            _require_one_name(path)
        uri = f"{path.resolve().as_uri()}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=BUSY_SECONDS)
        _require_layout(connection, path)
        connection.row_factory = sqlite3.Row
        connection.execute("BEGIN")
    except sqlite3.Error as error:
        raise StoreError(f"Cannot read {path} as a database of answers: {error}.") from error
    return connection


def _require_one_name(path: Path) -> None:
    """Refuse files with hard links.

    SQLite finds the write-ahead log by the name of the file. If the file were opened under another
    name, the answers in the log would be missing.
    """
    names = path.stat().st_nlink
    if names > 1:
        raise StoreError(
            f"{path} has {names} names (hard links), and may be in use under another name."
        )


def _require_layout(connection: sqlite3.Connection, path: Path) -> None:
    (kind,) = connection.execute("PRAGMA application_id").fetchone()
    (layout,) = connection.execute("PRAGMA user_version").fetchone()
    if kind != APPLICATION_ID:
        raise StoreError(f"{path} is not a database of answers.")
    if layout != LAYOUT:
        raise StoreError(
            f"{path} is a database of answers of another version of contstim: its layout is "
            f"{layout}, but this version needs {LAYOUT}. Read this database with that version, "
            "or name another database."
        )
