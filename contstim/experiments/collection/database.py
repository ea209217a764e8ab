"""The database of answers: its tables, how it is opened, and which server may write it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.errors import StoreError
from contstim.experiments.collection.keys import Keys
from contstim.locks import file_lock

if TYPE_CHECKING:
    from collections.abc import Iterator

APPLICATION_ID = 0x636F6E63  # "conc", so that a study's store is not mistaken for this
LAYOUT = 2
WITHOUT_SIMULATED = 1
"""The layout before artificial participants were marked: `MARKING` is what it lacks."""

MARKING = "ALTER TABLE participant ADD COLUMN simulated INTEGER NOT NULL DEFAULT 0"

TABLES = (
    # What holds for the whole database: keys, and the fingerprint of what is asked.
    "CREATE TABLE study (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
    # Times are seconds since 1970, UTC.
    """CREATE TABLE participant (
        number INTEGER PRIMARY KEY,
        participant TEXT NOT NULL UNIQUE,
        study_group TEXT NOT NULL,
        seed INTEGER NOT NULL,
        joined REAL NOT NULL,
        seen REAL NOT NULL,
        completed REAL,
        simulated INTEGER NOT NULL DEFAULT 0
    ) STRICT""",
    # Who somebody is on a recruiting platform stands apart, so that it can be deleted by itself.
    """CREATE TABLE identity (
        number INTEGER PRIMARY KEY REFERENCES participant (number),
        prolific_pid TEXT NOT NULL,
        study_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        UNIQUE (prolific_pid, study_id)
    ) STRICT""",
    """CREATE TABLE response (
        number INTEGER NOT NULL REFERENCES participant (number),
        trial_id TEXT NOT NULL,
        rating INTEGER NOT NULL CHECK (rating BETWEEN 1 AND 6),
        left_sentence INTEGER NOT NULL CHECK (left_sentence IN (1, 2)),
        position INTEGER NOT NULL CHECK (position >= 1),
        rt_ms REAL,
        received REAL NOT NULL,
        PRIMARY KEY (number, trial_id)
    ) STRICT, WITHOUT ROWID""",
)

_BUSY_SECONDS = 5.0


def open_writable(path: Path, fingerprint: str) -> tuple[sqlite3.Connection, Keys]:
    """A database to write, with all its tables; and its keys.

    Args:
        path: made where there is none.
        fingerprint: of the study that is asked.

    Raises:
        StoreError: the file is not such a database, has several names, or belongs to another study.
        OSError: the file cannot be used.
        sqlite3.Error: likewise.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)  # identities are in it; SQLite's other files take the same mode
    _require_one_name(path)
    connection = sqlite3.connect(
        path, isolation_level=None, timeout=_BUSY_SECONDS, check_same_thread=False
    )
    if not _is_empty(connection):
        _recognise(connection, path)  # before anything of somebody else's file is changed
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("PRAGMA foreign_keys = ON")

    connection.execute("BEGIN IMMEDIATE")
    if _is_empty(connection):
        for statement in TABLES:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {LAYOUT}")
        Keys.draw().write(connection)
        connection.execute("INSERT INTO study VALUES ('fingerprint', ?)", (fingerprint,))
    elif _layout(connection) == WITHOUT_SIMULATED:  # a study goes on after an update
        connection.execute(MARKING)
        connection.execute(f"PRAGMA user_version = {LAYOUT}")
    connection.execute("COMMIT")
    stored = connection.execute("SELECT value FROM study WHERE name = 'fingerprint'").fetchone()[0]
    if stored != fingerprint:
        raise StoreError(
            f"{path} holds answers to other trials than this study's. Name another file with "
            "--database, or collect in the folder that it belongs to."
        )
    return connection, Keys.read(connection)


def open_readable(path: Path) -> sqlite3.Connection:
    """The database as it is at the first question, while a server may go on writing.

    Raises:
        StoreError: there is no such database, or the file has several names.
    """
    try:
        if path.exists() and not Path(f"{path}-wal").exists():  # else it is the name in use
            _require_one_name(path)
        uri = f"{path.resolve().as_uri()}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_BUSY_SECONDS)
        _recognise(connection, path)
        connection.row_factory = sqlite3.Row
        connection.execute("BEGIN")
    except sqlite3.Error as error:
        raise StoreError(f"Cannot read {path} as a database of answers: {error}.") from error
    return connection


@contextmanager
def server_lock(database: Path, url: str) -> Iterator[None]:
    """Keep other servers from a database while this one runs.

    Args:
        database: which need not exist.
        url: of the server, for whoever is refused.

    Raises:
        StoreError: another server holds the lock (names it), or the file cannot be used.
    """
    path = Path(f"{database.resolve()}.lock")  # one lock, however the database is named
    with file_lock(path, f"the server at {url} (process {os.getpid()})") as holder:
        if holder is not None:
            raise StoreError(
                f"{database} is in use: {holder or 'another server'} keeps answers there. Stop "
                "that server first, or name another file with --database."
            )
        yield


def simulated_column(connection: sqlite3.Connection) -> str:
    """Column that says whether a participant is artificial; 0 where a database does not say."""
    return "0" if _layout(connection) == WITHOUT_SIMULATED else "participant.simulated"


def _require_one_name(path: Path) -> None:
    """Refuse hard links: locks, and the log of the last answers, belong to a name, not to a file.

    With two names two servers would write one file, and the answers of a log would be missed.
    """
    names = path.stat().st_nlink
    if names > 1:
        raise StoreError(
            f"{path} has {names} names (hard links), and may be in use under another. Delete the "
            "others, or make copies of them, while no server runs."
        )


def _is_empty(connection: sqlite3.Connection) -> bool:
    return not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]


def _layout(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _recognise(connection: sqlite3.Connection, path: Path) -> None:
    program = connection.execute("PRAGMA application_id").fetchone()[0]
    layout = _layout(connection)
    if program != APPLICATION_ID or layout not in (WITHOUT_SIMULATED, LAYOUT):
        raise StoreError(
            f"{path} is not a database of answers that this version of contstim reads; name "
            "another file."
        )
