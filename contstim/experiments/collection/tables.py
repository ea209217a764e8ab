"""Tables of a server's database, responses.csv and participants.csv; and the database imported."""

from __future__ import annotations

import io
import math
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from contstim.documents import shortened
from contstim.errors import StoreError
from contstim.experiments.collection.database import digest, open_readable, stored_key
from contstim.experiments.platforms.platform import Platform, Reader
from contstim.experiments.responses.alignment import Imported
from contstim.experiments.responses.table import Response, response_columns
from contstim.tables import write_csv

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from contstim.stimuli import Trial
    from contstim.tables import Column


def import_collected(files: Sequence[Path], trials: Sequence[Trial]) -> Imported:
    """Read the database of `contstim collect`, whether its server runs or not.

    Example: `contstim import collected experiment.sqlite --trials trials.csv --out responses.csv`

    Raises:
        StoreError: there is no such database, or it is damaged.
    """
    (database,) = files
    return Imported(tuple(trials), collected_responses(database))


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
            rows = connection.execute(
                "SELECT participant, CAST(study_group AS INTEGER), trial_id, rating, "
                "left_sentence, position, rt_ms, simulated FROM response "
                "JOIN participant USING (number) ORDER BY number, position, trial_id"
            ).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise StoreError(f"Cannot read {database}, which is damaged: {error}.") from error
    return tuple(
        Response(
            *(person, group, trial, rating, left, position),
            math.nan if rt_ms is None else rt_ms,
            bool(simulated),
        )
        for person, group, trial, rating, left, position, rt_ms, simulated in rows
    )


def responses_csv(database: Path) -> str:
    """The text of responses.csv."""
    return _csv(response_columns(collected_responses(database)))


_IDENTITIES = ("prolific_pid", "study_id", "session_id")
_PARTICIPANTS = """
    SELECT participant.*, prolific_pid, study_id, session_id,
        (SELECT count(*) FROM response WHERE response.number = participant.number) AS answered
    FROM participant LEFT JOIN identity USING (number) ORDER BY participant.number
"""


def participants_csv(database: Path, since: float) -> str:
    """The text of participants.csv: a row for everybody who joined.

    Columns: participant, group, seed, state (complete, active, left), answered, simulated (true or
    false), joined, seen and completed (UTC), and hashes of prolific_pid, study_id and session_id.

    Args:
        database: which a server may go on writing.
        since: seconds since 1970 after which somebody was seen who takes part still.
    """
    with closing(open_readable(database)) as connection:
        salt = stored_key(connection, "salt")
        rows = connection.execute(_PARTICIPANTS).fetchall()
    return _csv(
        {
            "participant": [row["participant"] for row in rows],
            "group": [int(row["study_group"]) for row in rows],
            "seed": [row["seed"] for row in rows],
            "state": [_state(row, since) for row in rows],
            "answered": [row["answered"] for row in rows],
            "simulated": [str(bool(row["simulated"])).lower() for row in rows],
            **{name: [_utc(row[name]) for row in rows] for name in ("joined", "seen", "completed")},
            # They cannot be turned back, nor joined with another study's; empty ones stay
            **{
                f"{n}_hash": [digest(salt, n, row[n]) if row[n] else "" for row in rows]
                for n in _IDENTITIES
            },
        }
    )


def _state(row: sqlite3.Row, since: float) -> str:
    if row["completed"] is not None:
        return "complete"
    return "active" if row["seen"] >= since else "left"


def _utc(seconds: float | None) -> str:
    """A time as text; empty where there is none."""
    if seconds is None:
        return ""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _csv(columns: Mapping[str, Column]) -> str:
    text = io.StringIO(newline="")
    write_csv(text, columns)
    return text.getvalue()


PLATFORM = Platform(
    "collected",
    reader=Reader(import_collected, files="The database of `collect`, or a backup.", several=False),
)
"""The database as a platform whose answers are read."""
