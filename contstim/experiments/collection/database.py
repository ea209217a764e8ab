"""The database of answers: tables, keys, and the one writer, which commits many requests at once.

What a request waits for is on disk when its answer leaves: SQLite syncs its write-ahead log at
every commit, so neither SIGKILL nor a power cut takes back what was acknowledged. A sync costs
milliseconds; everything that arrives during one shares the next.
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

APPLICATION_ID = 0x636F6E63  # "conc", so that a study's store is not mistaken for this
LAYOUT = 4

BUSY_SECONDS = 5.0
_MOST_AT_ONCE = 500  # requests in a commit
_LOCKED_BYTE = (1 << 31) - 1  # of the database: beyond its content and SQLite's own locks


def stored_key(connection: sqlite3.Connection, name: str) -> str:
    """What a database was made with: its study's fingerprint, or a random key, hexadecimal.

    From `secret` participants' secrets and completion codes follow; identities are hashed with
    `salt`.
    """
    found = connection.execute("SELECT value FROM study WHERE name = ?", (name,)).fetchone()
    return str(found[0])


def digest(key: str, field: str, value: str) -> str:
    """Code that follows from a value, and tells nobody without the key anything about it."""
    # a sign that no field's name holds: so no two fields and values give one text
    return hmac.new(bytes.fromhex(key), f"{field}\x1f{value}".encode(), sha256).hexdigest()[:32]


def completion_code(secret: str, participant: str) -> str:
    """A code for one participant, short enough to be copied by hand."""
    return digest(secret, "code", participant)[:10].upper()


def withdrawal_mark(connection: sqlite3.Connection, text: str) -> str:
    """Key in the table `study` by which a name or identity that withdrew is recognised."""
    return f"withdrawn {digest(stored_key(connection, 'secret'), 'withdrawn', text)}"


def equal_secrets(first: str, second: str) -> bool:
    """True if two texts are equal, in a time that does not tell where they differ."""
    return hmac.compare_digest(first.encode(errors="replace"), second.encode(errors="replace"))


class Recorder:
    """A server's database, locked against other servers and written by one thread.

    Args:
        path: of the database; made where there is none.
        fingerprint: of the study that is asked.
        server: who writes it, for whoever is refused meanwhile.

    Raises:
        StoreError: the file is not such a database, belongs to another study, has several names, is
            another server's (names it), or cannot be used.
    """

    def __init__(self, path: Path, fingerprint: str, server: str = "") -> None:
        self.path = path
        try:
            with ExitStack() as opened:
                file = opened.enter_context(_opened(path))
                self._connection = opened.enter_context(connected(path))
                _lock(path, file)  # by now it lasts, see there
                _begin(self._connection, path, fingerprint, server)
                self._secret = stored_key(self._connection, "secret")
                self._files = {file: _identity(file) for file in (path, Path(f"{path}-wal"))}
                self._opened = opened.pop_all()
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"Cannot use {path} as the database of answers: {error}.") from error
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread = Thread(target=self._write, name="recorder", daemon=True)
        self._thread.start()

    def participant_secret(self, participant: str) -> str:
        """Secret that a participant's browser must show; computed from the key, never stored."""
        return digest(self._secret, "secret", participant)

    def completion_code(self, participant: str) -> str:
        """The participant's own code."""
        return completion_code(self._secret, participant)

    async def run(
        self,
        work: Callable[Concatenate[sqlite3.Connection, Arguments], T],
        *args: Arguments.args,
        **named: Arguments.kwargs,
    ) -> T:
        """Do the work, and return its result once all that it wrote is on disk.

        If the work raises, nothing that it wrote is kept, and its error is raised here.
        """
        done: Future[T] = Future()
        self._jobs.put((lambda connection: work(connection, *args, **named), done))
        return await asyncio.wrap_future(done)

    def check(self) -> None:
        """Make sure that what is written goes to the database that has this name.

        An open file can be deleted or replaced: writing then goes on without an error, into
        something that is gone as soon as it is closed.

        Raises:
            StoreError: it has been deleted, moved, replaced or made read-only.
        """
        for file, opened in self._files.items():
            now = None
            with suppress(OSError):
                now = _identity(file)
            if now != opened:
                raise StoreError(
                    f"{file} has been deleted, moved, replaced or made read-only while the server "
                    "ran. Nothing is taken until it is put back."
                )

    def close(self) -> None:
        """Finish what was begun, and release the file."""
        self._jobs.put(None)
        self._thread.join()
        self._opened.close()

    def _write(self) -> None:
        jobs: list[Job | None] = []
        while None not in jobs:  # which `close` puts last
            jobs = [self._jobs.get()]
            with suppress(Empty):  # what arrived during the last commit shares this one
                while len(jobs) < _MOST_AT_ONCE:
                    jobs.append(self._jobs.get_nowait())
            self._commit([job for job in jobs if job is not None])

    def _commit(self, jobs: list[Job]) -> None:
        # who has given up meanwhile is left out
        jobs = [job for job in jobs if job[1].set_running_or_notify_cancel()]
        if not jobs:
            return
        outcomes: list[tuple[Any, BaseException | None]] = []
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            outcomes = [_attempt(self._connection, work) for work, _ in jobs]
            self._connection.execute("COMMIT")
            self.check()
        except (sqlite3.Error, StoreError) as error:  # such as a full disk: nobody hears "saved"
            outcomes = [(None, error)] * len(jobs)
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        for (_, done), (result, failure) in zip(jobs, outcomes, strict=True):
            if failure is None:
                done.set_result(result)
            else:
                done.set_exception(failure)


def _attempt(connection: sqlite3.Connection, work: Work) -> tuple[Any, BaseException | None]:
    """One request's share of a transaction: all of it, or none."""
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
    """Identity of a file, and whether its owner may write."""
    about = file.stat()
    return about.st_dev, about.st_ino, bool(about.st_mode & stat.S_IWUSR)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """A database's file, made where there is none; left open for as long as it is connected.

    Raises:
        StoreError: the file has several names.
        OSError: it cannot be used.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Identities are in it: for its owner alone, and so are SQLite's other files beside it
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _require_one_name(path)
        yield file
    finally:
        os.close(file)


@contextmanager
def connected(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that writes; it has read, and so holds a lock of SQLite until it is closed."""
    connection = sqlite3.connect(
        path, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False
    )
    with closing(connection):
        if _has_tables(connection):
            _recognise(connection, path)  # before anything of somebody else's file is changed
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("PRAGMA foreign_keys = ON")
        _has_tables(connection)
        yield connection


def _lock(path: Path, file: int) -> None:
    """Keep other servers from a database, by whatever name they call it.

    The lock is on the file, not on its name, and ends with the process, however that ends.

    Raises:
        StoreError: another server has it.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(file, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            # Of SQLite's own kind, beside its bytes. SQLite lets go of all locks of a process, this
            # one among them, when no connection needs one; in WAL mode an open one always does. A
            # lock by `flock` would not go, but would shut SQLite itself out on macOS.
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _LOCKED_BYTE)
    except (BlockingIOError, PermissionError):  # the one of POSIX, the other of Windows
        raise StoreError(
            f"{path} is in use: {_server_of(path)} keeps answers there. Name another database."
        ) from None


def _server_of(path: Path) -> str:
    """The server that a database names, as far as it can be read under this name."""
    with suppress(StoreError, sqlite3.Error), closing(open_readable(path)) as connection:
        return stored_key(connection, "server")
    return "another server"


def _has_tables(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])


def _begin(connection: sqlite3.Connection, path: Path, fingerprint: str, server: str) -> None:
    """Make the tables of a new database, and name its server.

    Raises:
        StoreError: it belongs to another study.
    """
    connection.execute("BEGIN IMMEDIATE")
    if not _has_tables(connection):
        make_tables(connection, "contstim.experiments.collection", APPLICATION_ID, LAYOUT)
        keys = {name: secrets.token_hex(32) for name in ("secret", "salt")}
        values = {"fingerprint": fingerprint, **keys}
        connection.executemany("INSERT INTO study VALUES (?, ?)", values.items())
    connection.execute("INSERT OR REPLACE INTO study VALUES ('server', ?)", (server,))
    if stored_key(connection, "fingerprint") != fingerprint:
        raise StoreError(
            f"{path} holds answers to other trials than this study's. Name another database."
        )
    connection.execute("COMMIT")


def open_readable(path: Path) -> sqlite3.Connection:
    """The database as it is at the first question, while a server may go on writing.

    Raises:
        StoreError: there is no such database, or the file has several names.
    """
    try:
        if path.exists() and not Path(f"{path}-wal").exists():  # else it is the name in use
            _require_one_name(path)
        uri = f"{path.resolve().as_uri()}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=BUSY_SECONDS)
        _recognise(connection, path)
        connection.row_factory = sqlite3.Row
        connection.execute("BEGIN")
    except sqlite3.Error as error:
        raise StoreError(f"Cannot read {path} as a database of answers: {error}.") from error
    return connection


def _require_one_name(path: Path) -> None:
    """Refuse hard links: the log of the last answers belongs to a name, not to a file.

    Under another name the answers of that log would be missed.
    """
    names = path.stat().st_nlink
    if names > 1:
        raise StoreError(f"{path} has {names} names (hard links), and may be in use under another.")


def _recognise(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse what is no database of answers of this layout.

    Raises:
        StoreError: it is something else, or of another version.
    """
    (kind,) = connection.execute("PRAGMA application_id").fetchone()
    (layout,) = connection.execute("PRAGMA user_version").fetchone()
    if kind != APPLICATION_ID:
        raise StoreError(f"{path} is not a database of answers.")
    if layout != LAYOUT:
        raise StoreError(
            f"{path} is a database of answers of another version of contstim: it has layout "
            f"{layout}, this version reads and writes {LAYOUT}. Read it with the version that "
            "wrote it, or name another database."
        )
