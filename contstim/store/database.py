"""The SQLite file itself: opened by one process, recognised as ours, never half-written.

A second process is refused instead of waiting or corrupting: SQLite's locks are not to be trusted
on network file systems.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from contstim.documents import shortened
from contstim.errors import StoreError
from contstim.store.layout import APPLICATION_ID, LAYOUT, STATEMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType


class Database:
    """A study's database, open for writing by this process alone; use it in a `with` statement.

    Raises:
        StoreError: another process writes it, it is damaged, or it is something else's database.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._is_new = not self.path.exists()
        self._makes_folder = not self.path.parent.exists()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # isolation_level=None: Python would else begin transactions of its own in between ours
            self._connection = sqlite3.connect(self.path, timeout=0.2, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(_explain(self.path, error)) from error
        try:
            is_ours = self._recognise()
            if is_ours:  # SQLite finds damage where it reads, so all is read before it is written
                (verdict,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
                if verdict != "ok":
                    raise sqlite3.DatabaseError(f"malformed: {shortened(verdict)}")
            self._claim(make_tables=not is_ours)
            # What is written from here on is work; the tables that _claim made are not
            self._changes = self._connection.total_changes
        except sqlite3.Error as error:
            self.close()
            raise StoreError(_explain(self.path, error)) from error
        except StoreError:
            self.close()
            raise

    def _recognise(self) -> bool:
        """True if it is ours, False if new; others are refused before anything is written."""
        # Before the first reading: the lock that it takes is then held until the file is closed
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        tables, program, layout = (
            self._connection.execute(question).fetchone()[0]
            for question in (
                "SELECT count(*) FROM sqlite_schema",
                "PRAGMA application_id",
                "PRAGMA user_version",
            )
        )
        if tables and program != APPLICATION_ID:
            raise StoreError(f"{self.path} is a database of another program; name another file.")
        if tables and layout != LAYOUT:
            raise StoreError(
                f"{self.path} was made by another version of contstim (its layout is {layout}, "
                f"this one reads {LAYOUT}); name another file."
            )
        return bool(tables)

    def _claim(self, *, make_tables: bool) -> None:
        # A write-ahead log that is synchronised at checkpoints: a power cut may cost the last
        # transactions, never the consistency of the file, and a save does not wait for the disk
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        # Here a second process is refused at the latest: the lock is taken even where there is
        # nothing to make
        self._connection.execute("BEGIN EXCLUSIVE")
        if make_tables:
            for statement in STATEMENTS:
                self._connection.execute(statement)
            # Last, in the same transaction: a file that bears our number has all of its tables
            self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self._connection.execute(f"PRAGMA user_version = {LAYOUT}")
        self._connection.execute("COMMIT")

    def rows(self, question: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows that answer an SQL question.

        Raises:
            StoreError: the file is damaged.
        """
        try:
            return self._connection.execute(question, values).fetchall()
        except sqlite3.Error as error:
            raise StoreError(_explain(self.path, error)) from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All that is written within the `with` statement, or nothing of it.

        Raises:
            StoreError: the disk is full or the file cannot be written.
        """
        try:
            self._connection.execute("BEGIN")
            yield self._connection
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise StoreError(_explain(self.path, error)) from error
        finally:
            # Also after an error that is not SQLite's, such as an interrupt within the `with`
            # statement
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Release the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        is_unused = self._is_new and self._connection.total_changes == self._changes
        self.close()
        # Nothing stays of a file that was made for work that failed before it had a result.
        if error is not None and is_unused:
            self.path.unlink(missing_ok=True)
            if self._makes_folder and not any(self.path.parent.iterdir()):
                self.path.parent.rmdir()


def _explain(path: Path, error: Exception) -> str:
    # By the text: most of SQLite's errors share one class
    if "locked" in str(error):
        return (
            f"{path} is in use by another process. One process writes a study's store: wait for "
            f"it, or name another file."
        )
    if "not a database" in str(error) or "malformed" in str(error):
        return f"{path} is not a readable study store ({error}). Move it away to start anew."
    if "full" in str(error) or "disk I/O" in str(error):
        return (
            f"{path} cannot be written ({error}): the disk may be full, or files may not be as "
            "large (ulimit -f). Make room, and run the same command again."
        )
    return f"Cannot use {path} as a study store: {error}."
