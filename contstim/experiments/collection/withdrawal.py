"""One person's rows in a database of answers: whose a name or code is, and who withdraws."""

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
from contstim.wording import counted

if TYPE_CHECKING:
    from pathlib import Path


def whose(database: Path, who: str) -> str:
    """Sentence on the participant whose ID, completion code or name this is; see `withdraw`."""
    row, kind = _found(database, who)
    return f"The {kind} of {row['participant']} ({_standing(row)})."


def withdraw(database: Path, who: str, day: str) -> str:
    """Delete a participant's answers and identity, also while a server runs; says what is gone.

    What stays is that one person more withdrew on that day, and keyed hashes of the name and the
    identity, so that the same page or address cannot take part again.

    Args:
        database: of the server.
        who: an ID on a platform, or a completion code or name of participants.csv.
        day: of today.

    Raises:
        InputError: nobody is called so, or several participants are.
        StoreError: the database cannot be used.
    """
    row, kind = _found(database, who)
    try:
        with connected(database) as connection:
            busy = _delete(connection, row["number"], day)
    except sqlite3.Error as error:
        raise StoreError(f"Nothing is deleted from {database}: {error}.") from error
    log = " The database's log may hold them until the server stops." if busy else ""
    # Without the name, which is to stand in no file any more
    return f"Deleted: the participant whose {kind} it is: {_standing(row)}.{log}"


def _found(database: Path, who: str) -> tuple[sqlite3.Row, str]:
    """The one participant who is called so, and the kind of name that it is."""
    if not who.strip():
        raise InputError(
            f"The participant must have a name, got {who!r}. Give an ID on a platform, or a "
            "completion code or name in participants.csv."
        )
    with closing(open_readable(database)) as readable:
        secret, wanted = stored_key(readable, "secret"), who.strip()
        rows = readable.execute(PARTICIPANTS, (0,)).fetchall()
    found = [(row, kind) for row in rows if (kind := _names(secret, row).get(wanted))]
    if not found:
        raise InputError(
            f"{who!r} is nobody in {database}. Give a person's ID on a platform, as long as "
            "identities are kept, or the completion code or name in participants.csv."
        )
    if len(found) > 1:
        several = "; ".join(f"the {k} of {r['participant']} ({_standing(r)})" for r, k in found)
        raise InputError(
            f"{who!r} is not one person in {database}: {several}. Give the name of the one who is "
            "meant; participants.csv tells them apart by all that is known of them."
        )
    return found[0]


def _delete(connection: sqlite3.Connection, number: int, day: str) -> bool:
    """Delete rows in one transaction; true if the log of changes could not be emptied."""
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


def _names(secret: str, row: sqlite3.Row) -> dict[str, str]:
    """Everything that a participant may be called, and the kind of name that it is."""
    # Not the running number, which may be somebody else's ID, nor the platform's study or visit
    fields = json.loads(row["fields"]).items()
    others = {STUDY, *VISIT}
    ids = {v: "ID" if n == "participant" else n for n, v in fields if n not in others}
    code = code_of(secret, row)
    names = ids | dict.fromkeys((code, code.lower()), "completion code")
    names[row["participant"]] = "name"
    return {name: kind for name, kind in names.items() if name}


def _standing(row: sqlite3.Row) -> str:
    """Number and group of somebody, and how far they came."""
    finished = "complete" if row["completed"] else "not complete"
    artificial = ", artificial" if row["simulated"] == "true" else ""
    answered = counted(row["answered"], "answer")
    return f"number {row['number']}, group {row['group']}, {answered}, {finished}{artificial}"
