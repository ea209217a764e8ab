"""The SQLite file of a study.

One process at a time uses the file. Other processes get an error, even if they only read. There are
two reasons. SQLite's locks are not reliable on network file systems. And processes that share
SQLite's write-ahead log must run on one machine, because the log needs shared memory.
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

    from contstim.files.arrays import FloatArray

APPLICATION_ID = 0x636F6E74  # "cont"; other programs' files have other numbers
LAYOUT = 9
"""Version of the tables, stored in the file; increase it when a table changes."""


def make_tables(connection: sqlite3.Connection, package: str, kind: int, layout: int) -> None:
    """Create the tables of a package's `tables.sql` within a transaction.

    `kind` becomes SQLite's application_id of the file, and `layout` becomes the user_version.
    """
    # `executescript` would end the transaction
    for statement in resources.files(package).joinpath("tables.sql").read_text().split(";\n"):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {kind}")
    connection.execute(f"PRAGMA user_version = {layout}")


class Store:
    """A study's database with its scores, open for this process only; use it in a `with` statement.

    `TripletStore` stores triplets in the same file.

    Attributes:
        times: measured times of work, in a file next to the database.

    Raises:
        StoreError: if the file is in use by another process, is damaged, cannot be opened, or was
            made by another program or another version of contstim.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.times = times_beside(self.path)
        self._is_new = not self.path.exists()
        self._makes_folder = not self.path.parent.exists()
        with self._explaining():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # With isolation_level=None, Python begins no transactions by itself
            self._connection = sqlite3.connect(self.path, timeout=0.2, isolation_level=None)
        try:
            with self._explaining():
                self._claim()
        except StoreError:
            self.close()
            raise
        # The changes that SQLite has counted so far created the tables. If the count increases,
        # results have been stored
        self._changes = self._connection.total_changes

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise StoreError(_explain(self.path, error)) from error

    def _claim(self) -> None:
        """Check that this version of contstim made the file, and lock it for this process."""

        def value(query: str) -> Any:
            return self._connection.execute(query).fetchone()[0]

        # In this mode, SQLite keeps the lock that the next read acquires until the file is closed
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        is_ours, layout = value("SELECT count(*) FROM sqlite_schema"), value("PRAGMA user_version")
        if is_ours and value("PRAGMA application_id") != APPLICATION_ID:
            raise StoreError(f"{self.path} is a database of another program. Name another file.")
        if is_ours and layout != LAYOUT:
            raise StoreError(
                f"{self.path} was made by another version of contstim (its layout is "
                f"{layout}, this version reads {LAYOUT}). Move it to another folder, or set "
                "another `store`."
            )
        # SQLite detects damage only when it reads, so read everything now
        if is_ours and (verdict := value("PRAGMA quick_check(1)")) != "ok":
            raise sqlite3.DatabaseError(f"malformed: {shortened(verdict)}")
        # For speed, transactions do not wait for the disk. A power failure may lose the last
        # transactions, but does not damage the file
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        # This statement fails if another process uses the file
        self._connection.execute("BEGIN EXCLUSIVE")
        if not is_ours:
            make_tables(self._connection, "contstim.store", APPLICATION_ID, LAYOUT)
        self._connection.execute("COMMIT")

    def rows(self, question: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of an SQL query.

        Raises:
            StoreError: if the file is damaged.
        """
        with self._explaining():
            return self._connection.execute(question, values).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Write all changes within the `with` statement; after an error or interrupt, write none.

        Raises:
            StoreError: if the disk is full or the file cannot be written.
        """
        # As a context manager, the connection commits or rolls back
        with self._explaining(), self._connection:
            self._connection.execute("BEGIN")
            yield self._connection

    def log_probs(self, fingerprint: str, sentences: Sequence[str]) -> FloatArray:
        """Return stored log-probabilities of sentences, shape (n,), nats; nan if not stored.

        Raises:
            StoreError: if the file is damaged.
        """
        # The column `sentence` contains Sentence.text or, for continuations, Continuation.text
        query = (
            "SELECT sentence, log_prob FROM score JOIN model ON model.id = score.model "
            "WHERE fingerprint = ? AND sentence IN (SELECT value FROM json_each(?))"
        )
        stored = dict(self.rows(query, (fingerprint, json.dumps([*sentences]))))
        return np.array([stored.get(s, np.nan) for s in sentences], dtype=np.float64)

    def save(
        self, fingerprint: str, convention: str, sentences: Sequence[str], log_probs: FloatArray
    ) -> None:
        """Store log-probabilities, shape (n,), nats, in one transaction.

        Raises:
            StoreError: if the disk is full or the file cannot be written.
        """
        with self.transaction() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO model (fingerprint, convention) VALUES (?, ?)",
                (fingerprint, convention),
            )
            connection.executemany(
                "INSERT OR REPLACE INTO score SELECT id, ?, ? FROM model WHERE fingerprint = ?",
                [(s, p, fingerprint) for s, p in zip(sentences, log_probs.tolist(), strict=True)],
            )

    def close(self) -> None:
        """Release the file, and write the measured times next to it."""
        self.times.save()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error_class: type[BaseException] | None, *_: object) -> None:
        is_unused = self._is_new and self._connection.total_changes == self._changes
        self.close()
        # After an error, remove the files if this run created them and stored no results
        if error_class is not None and is_unused:
            for path in (self.path, self.times.path):
                path.unlink(missing_ok=True)
            if self._makes_folder and not any(self.path.parent.iterdir()):
                self.path.parent.rmdir()


def _explain(path: Path, error: Exception) -> str:
    # Most SQLite errors have the same class, so only the messages distinguish them
    if "locked" in str(error):
        return (
            f"{path} is in use by another process. Only one process at a time can use a store. "
            "Wait until that process has ended, or name another file."
        )
    if "not a database" in str(error) or "malformed" in str(error):
        return (
            f"{path} is not a readable study store ({error}). Move it to another folder to "
            "start again."
        )
    if "full" in str(error) or "disk I/O" in str(error):
        return (
            f"{path} cannot be written ({error}): the disk may be full, or the size of files may "
            "be limited (ulimit -f). Free space, and run the same command again."
        )
    return f"Cannot use {path} as a study store: {error}."
