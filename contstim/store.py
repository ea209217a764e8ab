"""One SQLite file per study: the score cache, keyed by model fingerprint and sentence.

One process writes it. A second one is refused instead of waiting or corrupting: SQLite's locks are
not to be trusted on network file systems.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from contstim.arrays import FloatArray

_APPLICATION_ID = 0x636F6E74  # "cont", so that another program's database is not mistaken for ours
_SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE model (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE,
    convention TEXT NOT NULL
) STRICT;
CREATE TABLE score (
    model INTEGER NOT NULL REFERENCES model (id),
    sentence TEXT NOT NULL,
    log_prob REAL NOT NULL,
    PRIMARY KEY (model, sentence)
) STRICT, WITHOUT ROWID;
"""
_MOST_VARIABLES = 500


class Store:
    """A study's database, open for writing by this process alone; use it in a `with` statement.

    Raises:
        StoreError: another process writes it, it is damaged, or it is something else's database.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=0.2, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(_explain(self.path, error)) from error
        try:
            self._claim(is_new=self._recognise())
        except sqlite3.Error as error:
            self.close()
            raise StoreError(_explain(self.path, error)) from error
        except StoreError:
            self.close()
            raise

    def _recognise(self) -> bool:
        """Whether the file is new; refuses one that is not ours before anything is written."""
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        tables, program, version = (
            self._connection.execute(question).fetchone()[0]
            for question in (
                "SELECT count(*) FROM sqlite_schema",
                "PRAGMA application_id",
                "PRAGMA user_version",
            )
        )
        if tables and program != _APPLICATION_ID:
            raise StoreError(f"{self.path} is a database of another program; name another file.")
        if tables and version != _SCHEMA_VERSION:
            raise StoreError(
                f"{self.path} was made by another version of contstim (its layout is {version}, "
                f"this one reads {_SCHEMA_VERSION}); name another file."
            )
        return not tables

    def _claim(self, *, is_new: bool) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute("BEGIN EXCLUSIVE")
        if is_new:
            for statement in filter(str.strip, _SCHEMA.split(";")):
                self._connection.execute(statement)
            self._connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            self._connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        self._connection.execute("COMMIT")

    def log_probs(self, fingerprint: str, sentences: Sequence[str]) -> FloatArray:
        """Stored log-probabilities of sentences, (n,), nats; nan where there is none yet.

        Raises:
            StoreError: the file is damaged.
        """
        found: dict[str, float] = {}
        try:
            for start in range(0, len(sentences), _MOST_VARIABLES):
                found.update(self._look_up(fingerprint, sentences[start : start + _MOST_VARIABLES]))
        except sqlite3.Error as error:
            raise StoreError(_explain(self.path, error)) from error
        return np.array([found.get(s, np.nan) for s in sentences], dtype=np.float64)

    def _look_up(self, fingerprint: str, sentences: Sequence[str]) -> sqlite3.Cursor:
        marks = ",".join("?" * len(sentences))
        return self._connection.execute(
            "SELECT sentence, log_prob FROM score JOIN model ON model.id = score.model "
            f"WHERE fingerprint = ? AND sentence IN ({marks})",
            (fingerprint, *sentences),
        )

    def save(
        self, fingerprint: str, convention: str, sentences: Sequence[str], log_probs: FloatArray
    ) -> None:
        """Keep log-probabilities (n,), nats, in one transaction: all of them or none.

        Raises:
            StoreError: the disk is full or the file cannot be written.
        """
        try:
            self._connection.execute("BEGIN")
            self._connection.execute(
                "INSERT OR IGNORE INTO model (fingerprint, convention) VALUES (?, ?)",
                (fingerprint, convention),
            )
            self._connection.executemany(
                "INSERT OR REPLACE INTO score SELECT id, ?, ? FROM model WHERE fingerprint = ?",
                [(s, p, fingerprint) for s, p in zip(sentences, log_probs.tolist(), strict=True)],
            )
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise StoreError(_explain(self.path, error)) from error

    def close(self) -> None:
        """Release the file."""
        self._connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _explain(path: Path, error: Exception) -> str:
    if "locked" in str(error):
        return (
            f"{path} is in use by another process. One process writes a study's store: wait for "
            f"it, or name another file."
        )
    if "not a database" in str(error) or "malformed" in str(error):
        return f"{path} is not a readable study store ({error}). Move it away to start anew."
    return f"Cannot use {path} as a study store: {error}."
