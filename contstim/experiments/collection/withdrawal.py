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
    open_readable,
    stored_key,
)
from contstim.experiments.collection.tables import PARTICIPANTS, code_of
from contstim.experiments.platforms.jspsych.study import STUDY, VISIT
from contstim.wording import counted

if TYPE_CHECKING:
    from pathlib import Path


def whose_code(database: Path, code: str) -> str:
    """Sentence on the participant who got a personal completion code.

    Raises:
        InputError: nobody got it.
        StoreError: there is no such database, or it is damaged.
    """
    with closing(open_readable(database)) as connection:
        secret = stored_key(connection, "secret")
        for row in connection.execute(PARTICIPANTS):
            if (own := code_of(secret, row)) and own == code.strip().upper():
                return _about(row)
    raise InputError(f"{code!r} is nobody's completion code in {database}.")


def withdraw(database: Path, who: str, day: str) -> str:
    """Delete a participant's answers and identity, also while a server runs; says what is gone.

    What stays is that one person more withdrew on that day.

    Args:
        database: of the server.
        who: an ID on a platform, or a completion code or name of participants.csv.
        day: of today.

    Raises:
        InputError: nobody is called so, or several participants are.
        StoreError: the database cannot be used.
    """
    with closing(open_readable(database)) as readable:
        secret, wanted = stored_key(readable, "secret"), who.strip()
        rows = readable.execute(PARTICIPANTS).fetchall()
    called = [(row, _names(secret, row)) for row in rows]
    found = [(row, names[wanted]) for row, names in called if wanted in names]
    if not found:
        raise InputError(
            f"{who!r} is nobody in {database}. Give a person's ID on a platform, as long as "
            "identities are kept, or the completion code or name in participants.csv."
        )
    if len(found) > 1:
        several = "; ".join(f"the {kind} of {_about(row)}" for row, kind in found)
        raise InputError(
            f"{who!r} is not one person in {database}: {several}. Give the name of the one who "
            "withdraws; participants.csv tells them apart by all that is known of them."
        )
    ((row, kind),) = found
    try:
        busy = _delete(database, row["participant"], day)
    except sqlite3.Error as error:
        raise StoreError(f"Nothing is deleted from {database}: {error}.") from error
    log = " The database's log may hold them until the server stops." if busy else ""
    # Without the name, which is to stand in no file any more
    return f"Deleted: the participant whose {kind} it is: {_standing(row)}.{log}"


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


def _names(secret: str, row: sqlite3.Row) -> dict[str, str]:
    """Everything that a participant may be called, and the kind of name that it is."""
    # Not the running number, which may be somebody else's ID, nor the platform's study or visit
    fields = json.loads(row["fields"]).items()
    ids = {value: name for name, value in fields if name not in {STUDY, *VISIT}}
    names = ids | {row["participant"]: "name", code_of(secret, row): "completion code"}
    return {name: kind for name, kind in names.items() if name}


def _about(row: sqlite3.Row) -> str:
    """Name, number, and how far somebody came."""
    return f"{row['participant']} ({_standing(row)})"


def _standing(row: sqlite3.Row) -> str:
    """Number and group of somebody, and how far they came."""
    finished = "complete" if row["completed"] else "not complete"
    artificial = ", artificial" if row["simulated"] else ""
    return (
        f"number {row['number']}, group {row['study_group']}, "
        f"{counted(row['answered'], 'answer')}, {finished}{artificial}"
    )
