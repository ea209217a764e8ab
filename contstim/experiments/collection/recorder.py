"""The database's one writer, which commits many requests at once.

What a request waits for is on disk when its answer leaves: SQLite syncs its write-ahead log at
every commit, so neither SIGKILL nor a power cut takes back what was acknowledged. A sync costs
milliseconds; everything that arrives during one shares the next.
"""

from __future__ import annotations

import asyncio
import sqlite3
import stat
from concurrent.futures import Future
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from contstim.errors import StoreError
from contstim.experiments.collection.keys import Keys
from contstim.experiments.collection.layout import (
    APPLICATION_ID,
    LAYOUT,
    MARKING,
    TABLES,
    WITHOUT_SIMULATED,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Work: TypeAlias = Callable[[sqlite3.Connection], Any]
    Job: TypeAlias = tuple[Work, Future[Any]]

T = TypeVar("T")
_MOST_AT_ONCE = 500
_BUSY_SECONDS = 5.0


class Recorder:
    """A server's database, written by one thread.

    Args:
        path: of the database; made where there is none.
        fingerprint: of the study that is asked.

    Raises:
        StoreError: the file is not such a database, belongs to another study, or cannot be used.
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = _open(path)
            self.keys = _prepare(self._connection, path, fingerprint)
            self._files = {file: _identity(file) for file in (path, Path(f"{path}-wal"))}
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"Cannot use {path} as the database of answers: {error}.") from error
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread = Thread(target=self._write, name="recorder", daemon=True)
        self._thread.start()

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What the work returns, once all that it wrote is on disk.

        If the work raises, nothing that it wrote is kept, and its error is raised here.
        """
        done: Future[T] = Future()
        self._jobs.put((work, done))
        return await asyncio.wrap_future(done)

    def check(self) -> None:
        """Make sure that what is written goes to the database that has this name.

        An open file can be deleted or replaced: writing then goes on without an error, into
        something that is gone as soon as it is closed.

        Raises:
            StoreError: it has been deleted, moved, replaced or made read-only.
        """
        for file, opened in self._files.items():
            try:
                now = _identity(file)
            except OSError:
                now = None
            if now != opened:
                raise StoreError(
                    f"{file} has been deleted, moved, replaced or made read-only while the server "
                    "ran. Put it back, or stop the server: nothing is taken until then."
                )

    def close(self) -> None:
        """Finish what was begun, and release the file."""
        self._jobs.put(None)
        self._thread.join()
        self._connection.close()

    def _write(self) -> None:
        while (first := self._jobs.get()) is not None:
            self._commit([first, *self._waiting()])

    def _waiting(self) -> list[Job]:
        jobs: list[Job] = []
        while len(jobs) < _MOST_AT_ONCE:
            try:
                job = self._jobs.get_nowait()
            except Empty:
                break
            if job is None:
                self._jobs.put(None)
                break
            jobs.append(job)
        return jobs

    def _commit(self, jobs: list[Job]) -> None:
        jobs = [job for job in jobs if job[1].set_running_or_notify_cancel()]
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


def read_only(path: Path) -> sqlite3.Connection:
    """The database as it is at the first question, while a server may go on writing.

    Raises:
        StoreError: there is no such database.
    """
    try:
        uri = f"{path.resolve().as_uri()}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_BUSY_SECONDS)
        _recognise(connection, path)
        connection.row_factory = sqlite3.Row
        connection.execute("BEGIN")
    except sqlite3.Error as error:
        raise StoreError(f"Cannot read {path} as a database of answers: {error}.") from error
    return connection


def _open(path: Path) -> sqlite3.Connection:
    path.touch(mode=0o600)  # identities are in it; SQLite's other files take the same mode
    connection = sqlite3.connect(
        path, isolation_level=None, timeout=_BUSY_SECONDS, check_same_thread=False
    )
    if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
        _recognise(connection, path)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def simulated_column(connection: sqlite3.Connection) -> str:
    """What to select for whether a participant is artificial; 0 where a database does not say."""
    return "0" if _layout(connection) == WITHOUT_SIMULATED else "participant.simulated"


def _layout(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _identity(file: Path) -> tuple[int, int, bool]:
    """Which file it is, and whether its owner may write."""
    about = file.stat()
    return about.st_dev, about.st_ino, bool(about.st_mode & stat.S_IWUSR)


def _recognise(connection: sqlite3.Connection, path: Path) -> None:
    program = connection.execute("PRAGMA application_id").fetchone()[0]
    layout = _layout(connection)
    if program != APPLICATION_ID or layout not in (WITHOUT_SIMULATED, LAYOUT):
        raise StoreError(
            f"{path} is not a database of answers that this version of contstim reads; name "
            "another file."
        )


def _prepare(connection: sqlite3.Connection, path: Path, fingerprint: str) -> Keys:
    """Make what is missing; the database's keys."""
    connection.execute("BEGIN IMMEDIATE")
    if not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
        for statement in TABLES:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {LAYOUT}")
        Keys.draw().write(connection)
        connection.execute("INSERT INTO study VALUES ('fingerprint', ?)", (fingerprint,))
    elif _layout(connection) == WITHOUT_SIMULATED:
        connection.execute(MARKING)
        connection.execute(f"PRAGMA user_version = {LAYOUT}")
    connection.execute("COMMIT")
    asked = "SELECT value FROM study WHERE name = 'fingerprint'"
    if connection.execute(asked).fetchone()[0] != fingerprint:
        raise StoreError(
            f"{path} holds answers to other trials than this study's. Name another file with "
            "--database, or collect in the folder that it belongs to."
        )
    return Keys.read(connection)


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
