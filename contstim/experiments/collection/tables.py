"""The tables responses.csv and participants.csv of a database, and the database's import."""

from __future__ import annotations

import io
import json
import math
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from contstim.errors import StoreError
from contstim.experiments.collection.database import (
    completion_code,
    digest,
    open_readable,
    stored_key,
)
from contstim.experiments.platforms.jspsych.study import PROLIFIC
from contstim.experiments.platforms.platform import Platform, Reader
from contstim.experiments.responses.alignment import Imported
from contstim.experiments.responses.questionnaire import QuestionAnswer
from contstim.experiments.responses.table import UNRATED, Response, escape_formula, response_columns
from contstim.files.documents import shortened
from contstim.files.tables import write_csv
from contstim.items.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from contstim.files.tables import Column
    from contstim.items.stimuli import Trial


def import_collected(files: Sequence[Path], trials: Sequence[Trial]) -> Imported:
    """Read the database of `contstim collect`, even while its server runs.

    Example: `contstim import collected experiment.sqlite --trials trials.csv --out responses.csv`

    Raises:
        StoreError: if the file is not a database of answers, or is damaged.
    """
    (database,) = files
    scale = trials[0].scale if trials else Scale.CONFIDENCE
    responses = [replace(answer, scale=scale) for answer in collected_responses(database)]
    return Imported(tuple(trials), tuple(responses), questions=collected_questions(database))


def collected_responses(database: Path) -> tuple[Response, ...]:
    """Read every answer in the database, by participant and in order of presentation.

    The server gave participants random names, which identify nobody.

    Raises:
        StoreError: if the file is not a database of answers, or is damaged.
    """
    with closing(open_readable(database)) as connection:
        try:
            # Check first: SQLite may return fewer rows from a damaged page, without an error
            (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if state != "ok":
                raise sqlite3.DatabaseError(shortened(state))
            # If the file ends within a page, SQLite reads the missing bytes as zeros
            (page,) = connection.execute("PRAGMA page_size").fetchone()
            if database.stat().st_size % page:
                raise sqlite3.DatabaseError("its end is missing")
            rows = connection.execute(
                'SELECT participant, CAST(study_group AS INTEGER) AS "group", trial_id, rating, '
                'left_sentence AS "left", position, rt_ms, simulated, input, blurs, away_ms, '
                "received FROM response JOIN participant USING (number) "
                "ORDER BY number, position, trial_id"
            ).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise StoreError(f"Cannot read {database}, which is damaged: {error}.") from error
    unknown = {"rating": UNRATED, "rt_ms": math.nan}
    return tuple(
        Response(
            **unknown
            | {name: cell for name, cell in dict(row).items() if cell is not None}
            | {"simulated": bool(row["simulated"]), "received": _utc(row["received"])}
        )
        for row in rows
    )


def collected_questions(database: Path) -> tuple[QuestionAnswer, ...]:
    """Read each participant's answers to questions other than the trials."""
    with closing(open_readable(database)) as connection:
        rows = connection.execute(
            "SELECT participant, questions FROM participant ORDER BY number"
        ).fetchall()
    return tuple(
        QuestionAnswer(participant, *answer)
        for participant, answers in rows
        for answer in json.loads(answers).items()
    )


def responses_csv(database: Path) -> str:
    """Return the content of responses.csv."""
    return _csv(response_columns(collected_responses(database)))


PARTICIPANTS = """
    SELECT number, participant, CAST(study_group AS INTEGER) AS "group", seed,
        CASE WHEN completed IS NOT NULL THEN 'complete' WHEN failed THEN 'failed'
            WHEN seen >= ? THEN 'active' ELSE 'left' END AS state,
        (SELECT count(*) FROM response WHERE response.number = participant.number) AS answered,
        iif(simulated, 'true', 'false') AS simulated, joined, seen, completed, '' AS code,
        device, viewport, second_tabs, coalesce(fields, '{}') AS fields
    FROM participant LEFT JOIN identity USING (number) ORDER BY participant.number
"""
_TIMES = ("joined", "seen", "completed")


def participants_csv(database: Path, since: float, *, plain: bool = False) -> str:
    """Return the content of participants.csv: a row for each participant.

    The columns are `number`, `participant`, `group`, `seed`, `state`, `answered`, `simulated`,
    `joined`, `seen`, `completed`, `code`, `device`, `viewport` and `second_tabs`. After these, each
    identity field, such as a recruiting platform's ID, has a column.

    `state` is `complete`, `failed` (the participant failed the questions on the instructions),
    `active` or `left`. `answered` is the number of answers. `joined`, `seen` (the last request) and
    `completed` are times in UTC. `code` is the individual completion code. The page shows this code
    unless the study has a code or link for all participants. `second_tabs` counts how often the
    page was opened in another tab.

    Args:
        database: path of the database, which a server may continue to write.
        since: time, seconds since 1970. An unfinished participant is active if the last request
            came at this time or later.
        plain: whether identities are plain text; otherwise they are hashed.
    """
    with closing(open_readable(database)) as connection:
        salt, secret = (stored_key(connection, name) for name in ("salt", "secret"))
        cursor = connection.execute(PARTICIPANTS, (since,))
        names = [name for name, *_ in cursor.description if name != "fields"]
        rows = [
            {**dict(row), "code": code_of(secret, row)} | {name: _utc(row[name]) for name in _TIMES}
            for row in cursor
        ]
    identities = [json.loads(row["fields"]) for row in rows]
    fields = dict.fromkeys([*PROLIFIC, *(name for identity in identities for name in identity)])
    suffix = "plain" if plain else "hash"
    return _csv(
        {name: [row[name] for row in rows] for name in names}
        | {
            # A hash cannot be reversed. Hashes of the same identity differ between databases,
            # because each database has its own salt.
            f"{name.lower()}_{suffix}": [
                escape_formula(value) if plain or not value else digest(salt, name.lower(), value)
                for value in (identity.get(name, "") for identity in identities)
            ]
            for name in fields
        }
    )


def code_of(secret: str, row: sqlite3.Row) -> str:
    """Return a participant's individual completion code; empty before completion."""
    return completion_code(secret, row["participant"]) if row["completed"] else ""


def _utc(seconds: float | None) -> str:
    return "" if seconds is None else datetime.fromtimestamp(int(seconds), UTC).isoformat()


def _csv(columns: Mapping[str, Column]) -> str:
    text = io.StringIO(newline="")
    write_csv(text, columns)
    return text.getvalue()


PLATFORM = Platform(
    "collected",
    reader=Reader(import_collected, files="The database of `collect`, or a backup.", several=False),
)
