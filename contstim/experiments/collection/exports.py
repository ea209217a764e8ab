"""Tables of a server's database: responses.csv and participants.csv."""

from __future__ import annotations

import io
import math
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from contstim.documents import shortened
from contstim.errors import StoreError
from contstim.experiments.collection.database import open_readable, simulated_column
from contstim.experiments.collection.keys import Keys
from contstim.experiments.responses.table import Response, response_columns
from contstim.tables import write_csv

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from contstim.tables import Column


@dataclass(frozen=True)
class Snapshot:
    """Database as it is exported.

    Attributes:
        database: which a server may go on writing.
        since: seconds since 1970 after which somebody was seen who takes part still.
    """

    database: Path
    since: float = math.inf


def collected_responses(database: Path) -> tuple[Response, ...]:
    """Every answer in the database, participant after participant in the order of presentation.

    Participants have the names that the server drew for them, which say nothing about who they are.

    Raises:
        StoreError: there is no such database, or it is damaged.
    """
    with closing(open_readable(database)) as connection:
        try:
            # A damaged page may read as fewer rows: better no table than part of it
            (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if state != "ok":
                raise sqlite3.DatabaseError(shortened(state))
            marks = simulated_column(connection)
            rows = connection.execute(
                "SELECT participant, CAST(study_group AS INTEGER), trial_id, rating, "
                f"left_sentence, position, rt_ms, {marks} FROM response "
                "JOIN participant USING (number) ORDER BY number, position, trial_id"
            ).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise StoreError(f"Cannot read {database}, which is damaged: {error}.") from error
    return tuple(
        Response(
            *(name, group, trial, rating, left, position),
            math.nan if rt_ms is None else rt_ms,
            simulated=bool(simulated),
        )
        for name, group, trial, rating, left, position, rt_ms, simulated in rows
    )


def responses_csv(snapshot: Snapshot) -> str:
    """The text of responses.csv."""
    return _csv(response_columns(collected_responses(snapshot.database)))


def participants_csv(snapshot: Snapshot) -> str:
    """The text of participants.csv: a row for everybody who joined.

    Columns: participant, group, seed, state (complete, active, left), answered, simulated (true or
    false), joined, seen and completed (UTC), and hashes of prolific_pid, study_id and session_id.
    """
    with closing(open_readable(snapshot.database)) as connection:
        keys = Keys.read(connection)
        marks = simulated_column(connection)
        rows = connection.execute(_PARTICIPANTS.format(simulated=marks)).fetchall()
    return _csv(
        {
            "participant": [row["participant"] for row in rows],
            "group": [int(row["study_group"]) for row in rows],
            "seed": [row["seed"] for row in rows],
            "state": [
                "complete"
                if row["completed"] is not None
                else ("active" if row["seen"] >= snapshot.since else "left")
                for row in rows
            ],
            "answered": [row["answered"] for row in rows],
            "simulated": [str(bool(row["marked"])).lower() for row in rows],
            **{name: [_utc(row[name]) for row in rows] for name in ("joined", "seen", "completed")},
            **{f"{n}_hash": [keys.hashed(n, row[n] or "") for row in rows] for n in _IDENTITIES},
        }
    )


_IDENTITIES = ("prolific_pid", "study_id", "session_id")
_PARTICIPANTS = """
    SELECT participant.*, {simulated} AS marked, prolific_pid, study_id, session_id,
        (SELECT count(*) FROM response WHERE response.number = participant.number) AS answered
    FROM participant LEFT JOIN identity USING (number) ORDER BY participant.number
"""


def _utc(seconds: float | None) -> str:
    """A time as text; empty where there is none."""
    if seconds is None:
        return ""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _csv(columns: Mapping[str, Column]) -> str:
    text = io.StringIO(newline="")
    write_csv(text, columns)
    return text.getvalue()
