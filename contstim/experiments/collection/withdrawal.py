"""Finding a participant by name or code, and deleting their rows from a database of answers."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from contstim.errors import InputError, StoreError
from contstim.experiments.collection.database import (
    connected,
    open_readable,
    stored_key,
    withdrawal_mark,
)
from contstim.experiments.collection.tables import PARTICIPANTS, code_of
from contstim.experiments.platforms.jspsych.study import STUDY, VISIT
from contstim.wording import quantity

if TYPE_CHECKING:
    from pathlib import Path


def whose(database: Path, who: str) -> str:
    """Describe the participant with this ID, completion code or name; see `withdraw`."""
    row, kind = _find_participant(database, who)
    return f"The {kind} of {row['participant']} ({_describe_progress(row)})."


def withdraw(database: Path, who: str, day: str) -> str:
    """Delete a participant's answers and identity, and return a sentence on the deleted data.

    The server may be running. The database still stores the number of withdrawals on that day, and
    keyed hashes of the name and the identity, so that the same page or address cannot take part
    again.

    Args:
        database: path of the server's database.
        who: ID on a platform, or a completion code or name in participants.csv.
        day: today's date.

    Raises:
        InputError: if no participant or several have this name.
        StoreError: if the database cannot be used.
    """
    row, kind = _find_participant(database, who)
    try:
        with connected(database) as connection:
            busy = _delete(connection, row["number"], day)
    except sqlite3.Error as error:
        raise StoreError(f"No answers were deleted from {database}: {error}.") from error
    log = " The log of the database may contain them until the server stops." if busy else ""
    # The message omits the name, which must not remain in any log
    return f"Deleted the participant with this {kind}: {_describe_progress(row)}.{log}"


def _find_participant(database: Path, who: str) -> tuple[sqlite3.Row, str]:
    """Find the only participant with this name, and the kind of name (ID, code, name)."""
    if not who.strip():
        raise InputError(
            f"The name of a participant must not be empty, got {who!r}. Give the platform's "
            "ID, or the completion code or name in participants.csv."
        )
    with closing(open_readable(database)) as readable:
        secret, name = stored_key(readable, "secret"), who.strip()
        rows = readable.execute(PARTICIPANTS, (0,)).fetchall()
    matches = [(row, kind) for row in rows if (kind := _names_of(secret, row).get(name))]
    if not matches:
        raise InputError(
            f"{database} has no participant {who!r}. Give the platform's ID, if identities "
            "are stored, or the completion code or name in participants.csv."
        )
    if len(matches) > 1:
        several = "; ".join(
            f"the {k} of {r['participant']} ({_describe_progress(r)})" for r, k in matches
        )
        raise InputError(
            f"{who!r} matches several participants in {database}: {several}. Give the name "
            "of one of them; participants.csv describes all of them."
        )
    return matches[0]


def _delete(connection: sqlite3.Connection, number: int, day: str) -> bool:
    """Delete rows in one transaction; return true if the log could not be emptied."""
    connection.execute("BEGIN IMMEDIATE")
    names = connection.execute(
        "SELECT participant, person FROM participant LEFT JOIN identity USING (number) "
        "WHERE number = ?",
        (number,),
    ).fetchone()
    marks = [(withdrawal_mark(connection, name), "") for name in names or () if name is not None]
    connection.executemany("INSERT OR REPLACE INTO study VALUES (?, ?)", marks)
    for table in ("identity", "response", "participant"):
        connection.execute(f"DELETE FROM {table} WHERE number = ?", (number,))
    connection.execute(
        "INSERT INTO study VALUES (?, '1') "
        "ON CONFLICT DO UPDATE SET value = CAST(value AS INTEGER) + 1",
        (f"withdrawn {day}",),
    )
    connection.execute("COMMIT")
    return bool(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])


def _names_of(secret: str, row: sqlite3.Row) -> dict[str, str]:
    """Return all names of a participant, with the kind of each."""
    # Not the running number, which may be another's ID, nor the platform's study or visit
    fields = json.loads(row["fields"]).items()
    excluded_fields = {STUDY, *VISIT}
    ids = {v: "ID" if n == "participant" else n for n, v in fields if n not in excluded_fields}
    code = code_of(secret, row)
    names = ids | dict.fromkeys((code, code.lower()), "completion code")
    names[row["participant"]] = "name"
    return {name: kind for name, kind in names.items() if name}


def _describe_progress(row: sqlite3.Row) -> str:
    """Describe a participant by number, group and progress."""
    finished = "complete" if row["completed"] else "not complete"
    artificial = ", artificial" if row["simulated"] == "true" else ""
    answered = quantity(row["answered"], "answer")
    return f"number {row['number']}, group {row['group']}, {answered}, {finished}{artificial}"
