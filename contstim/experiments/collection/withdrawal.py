"""One person's rows in a database of answers: who has a completion code, and who withdraws."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from contstim.errors import InputError, StoreError
from contstim.experiments.collection.database import (
    BUSY_SECONDS,
    LAST_NUMBER,
    completion_code,
    open_readable,
    stored_key,
)
from contstim.experiments.collection.tables import PARTICIPANTS
from contstim.experiments.platforms.jspsych.study import STUDY
from contstim.wording import counted

if TYPE_CHECKING:
    from pathlib import Path

_OF_MANY = frozenset({STUDY, "hitId"})  # fields that say nobody


def whose_code(database: Path, code: str) -> str:
    """Sentence on the participant who got a personal completion code.

    Raises:
        InputError: nobody got it.
        StoreError: there is no such database, or it is damaged.
    """
    with closing(open_readable(database)) as connection:
        secret = stored_key(connection, "secret")
        for row in connection.execute(PARTICIPANTS):
            if _code(secret, row) == code.strip().upper():
                return _about(row)
    raise InputError(f"{code!r} is nobody's completion code in {database}.")


def withdraw(database: Path, who: str, day: str) -> str:
    """Delete a participant's answers and identity, also while a server runs; says what is gone.

    What stays is that one person more withdrew on that day.

    Args:
        database: of the server.
        who: an ID on a platform, a completion code, a number or a name of participants.csv.
        day: of today.

    Raises:
        InputError: nobody is called so, or several participants are.
        StoreError: the database cannot be used.
    """
    with closing(open_readable(database)) as readable:
        secret, wanted = stored_key(readable, "secret"), who.strip()
        found = [row for row in readable.execute(PARTICIPANTS) if wanted in _names(secret, row)]
    if len(found) != 1:
        raise InputError(
            f"{who!r} is {'; '.join(map(_about, found)) or 'nobody'} in {database}. Give one "
            "person's ID on a platform, completion code, or number or name in participants.csv."
        )
    try:
        busy = _delete(database, found[0]["participant"], day)
    except sqlite3.Error as error:
        raise StoreError(f"Nothing is deleted from {database}: {error}.") from error
    answers = counted(found[0]["answered"], "answer")
    log = " The database's log may hold them until the server stops." if busy else ""
    return f"Deleted: one participant and {answers}.{log}"


def _delete(database: Path, participant: str, day: str) -> bool:
    """Delete rows in one transaction; true if the log of changes could not be emptied."""
    uri = f"{database.resolve().as_uri()}?mode=rw"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=BUSY_SECONDS)
    with closing(connection):
        for pragma in ("secure_delete = ON", "synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN IMMEDIATE")
        # Of every table that speaks of participants, that of participants last
        tables = connection.execute(
            "SELECT t.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c "
            "WHERE t.type = 'table' AND c.name = 'number' ORDER BY t.name = 'participant'"
        ).fetchall()
        select = "SELECT number FROM participant WHERE participant = ?"
        (number,) = connection.execute(select, (participant,)).fetchone()
        # Nobody is ever given the number again
        connection.execute(f"INSERT OR REPLACE INTO study VALUES ('last number', ({LAST_NUMBER}))")
        for (table,) in tables:
            connection.execute(f'DELETE FROM "{table}" WHERE number = ?', (number,))
        connection.execute(
            "INSERT INTO study VALUES (?, '1') "
            "ON CONFLICT DO UPDATE SET value = CAST(value AS INTEGER) + 1",
            (f"withdrawn {day}",),
        )
        connection.execute("COMMIT")
        return bool(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])


def _code(secret: str, row: sqlite3.Row) -> str | None:
    """The code that a participant saw; None before completion."""
    return completion_code(secret, row["participant"]) if row["completed"] else None


def _names(secret: str, row: sqlite3.Row) -> set[str | None]:
    """Everything that a participant may be called."""
    ids = {value for name, value in json.loads(row["fields"]).items() if name not in _OF_MANY}
    return ids | {row["participant"], str(row["number"]), _code(secret, row)}


def _about(row: sqlite3.Row) -> str:
    """Name, number, and how far somebody came."""
    finished = "complete" if row["completed"] else "not complete"
    artificial = ", artificial" if row["simulated"] else ""
    return (
        f"{row['participant']} (number {row['number']}, group {row['study_group']}, "
        f"{counted(row['answered'], 'answer')}, {finished}{artificial})"
    )
