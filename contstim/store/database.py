"""The SQLite file itself: opened by one process, recognised as ours, never half-written.

A second process is refused instead of waiting or corrupting: SQLite's locks are not to be trusted
on network file systems.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from contstim.errors import StoreError
from contstim.files.documents import shortened
from contstim.store.times import times_beside

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from contstim.files.arrays import FloatArray

APPLICATION_ID = 0x636F6E74  # "cont", so that another program's database is not mistaken for ours
LAYOUT = 7
"""Number of the layout, which a file bears; raised when a table changes."""


def make_tables(connection: sqlite3.Connection, package: str, kind: int, layout: int) -> None:
    """Make the tables of a package's `tables.sql`, then let the file bear its numbers.

    Args:
        connection: to a new database, within a transaction.
        package: where the statements stand.
        kind: its application_id.
        layout: its user_version.
    """
    # One by one, for a script would end the transaction
    for statement in resources.files(package).joinpath("tables.sql").read_text().split(";\n"):
        connection.execute(statement)
    # Last, in the same transaction: a file that bears our numbers has all of its tables
    connection.execute(f"PRAGMA application_id = {kind}")
    connection.execute(f"PRAGMA user_version = {layout}")


class Store:
    """A study's database with its scores, open for writing by this process alone.

    Use it in a `with` statement. `TripletStore` keeps triplets in the same file. Other processes
    cannot read it meanwhile: locks are not reliable on network file systems, and SQLite's log needs
    memory that is shared on one machine. What they may want to see is written to tables instead.

    Attributes:
        path: the file.
        times: measured times of work, in a file beside it.

    Raises:
        StoreError: another process writes it, it is damaged, or it is something else's database.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.times = times_beside(self.path)
        self._is_new = not self.path.exists()
        self._makes_folder = not self.path.parent.exists()
        with self._explaining():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # isolation_level=None: Python would else begin transactions of its own in between ours
            self._connection = sqlite3.connect(self.path, timeout=0.2, isolation_level=None)
        try:
            with self._explaining():
                self._claim()
        except StoreError:
            self.close()
            raise
        # What is written from here on is work; the tables that _claim made are not
        self._changes = self._connection.total_changes

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise StoreError(_explain(self.path, error)) from error

    def _claim(self) -> None:
        """Take the file for this process; others' are refused before anything is written."""

        def value(question: str) -> Any:
            return self._connection.execute(question).fetchone()[0]

        # Before the first reading: the lock that it takes is then held until the file is closed
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        is_ours, layout = value("SELECT count(*) FROM sqlite_schema"), value("PRAGMA user_version")
        if is_ours and value("PRAGMA application_id") != APPLICATION_ID:
            raise StoreError(f"{self.path} is a database of another program; name another file.")
        if is_ours and layout != LAYOUT:
            raise StoreError(
                f"{self.path} was made by another version of contstim (its layout is {layout}, "
                f"this one reads {LAYOUT}); name another file."
            )
        # SQLite finds damage where it reads, so all is read before it is written
        if is_ours and (verdict := value("PRAGMA quick_check(1)")) != "ok":
            raise sqlite3.DatabaseError(f"malformed: {shortened(verdict)}")
        # A write-ahead log that is synchronised at checkpoints: a power cut may cost the last
        # transactions, never the consistency of the file, and a save does not wait for the disk
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        # Here a second process is refused at the latest: the lock is taken even where there is
        # nothing to make
        self._connection.execute("BEGIN EXCLUSIVE")
        if not is_ours:
            make_tables(self._connection, "contstim.store", APPLICATION_ID, LAYOUT)
        self._connection.execute("COMMIT")

    def rows(self, question: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows that answer an SQL question.

        Raises:
            StoreError: the file is damaged.
        """
        with self._explaining():
            return self._connection.execute(question, values).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All that is written within the `with` statement, or nothing of it.

        Raises:
            StoreError: the disk is full or the file cannot be written.
        """
        with self._explaining():
            try:
                self._connection.execute("BEGIN")
                yield self._connection
                self._connection.execute("COMMIT")
            finally:
                # Also after an error that is not SQLite's, such as an interrupt within the `with`
                # statement
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def log_probs(self, fingerprint: str, sentences: Sequence[str]) -> FloatArray:
        """Stored log-probabilities of sentences, (n,), nats; nan where there is none yet.

        Raises:
            StoreError: the file is damaged.
        """
        # Keyed by text: Sentence.text, or the words before and after of a continuation
        question = (
            "SELECT sentence, log_prob FROM score JOIN model ON model.id = score.model "
            "WHERE fingerprint = ? AND sentence IN (SELECT value FROM json_each(?))"
        )
        stored = dict(self.rows(question, (fingerprint, json.dumps([*sentences]))))
        return np.array([stored.get(s, np.nan) for s in sentences], dtype=np.float64)

    def save(
        self, fingerprint: str, convention: str, sentences: Sequence[str], log_probs: FloatArray
    ) -> None:
        """Keep log-probabilities (n,), nats, in one transaction: all of them or none.

        Raises:
            StoreError: the disk is full or the file cannot be written.
        """
        with self.transaction() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO model (fingerprint, convention) VALUES (?, ?)",
                (fingerprint, convention),
            )
            # The model's id is looked up in the statement: SELECT id, ?, ? is a row of the three
            # columns
            connection.executemany(
                "INSERT OR REPLACE INTO score SELECT id, ?, ? FROM model WHERE fingerprint = ?",
                [(s, p, fingerprint) for s, p in zip(sentences, log_probs.tolist(), strict=True)],
            )

    def close(self) -> None:
        """Release the file, and write the measured times beside it."""
        self.times.save()
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
            for path in (self.path, self.times.path):
                path.unlink(missing_ok=True)
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
