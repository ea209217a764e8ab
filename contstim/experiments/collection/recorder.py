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
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from contstim.errors import StoreError
from contstim.experiments.collection.database import open_writable

if TYPE_CHECKING:
    from collections.abc import Callable

    Work: TypeAlias = Callable[[sqlite3.Connection], Any]
    Job: TypeAlias = tuple[Work, Future[Any]]

T = TypeVar("T")
_MOST_AT_ONCE = 500  # requests in a commit


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
            self._connection, self.keys = open_writable(path, fingerprint)
            self._files = {file: _identity(file) for file in (path, Path(f"{path}-wal"))}
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"Cannot use {path} as the database of answers: {error}.") from error
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread = Thread(target=self._write, name="recorder", daemon=True)
        self._thread.start()

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do the work, and return its result once all that it wrote is on disk.

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


def _identity(file: Path) -> tuple[int, int, bool]:
    """Identity of a file, and whether its owner may write."""
    about = file.stat()
    return about.st_dev, about.st_ino, bool(about.st_mode & stat.S_IWUSR)


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
