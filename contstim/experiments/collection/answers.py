"""Ratings as they come, and completion. Each function is one request's share of a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.experiments.collection.messages import Refusal
from contstim.experiments.collection.people import find, touch

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from contstim.experiments.collection.messages import Rated
    from contstim.experiments.collection.people import Person


def save(
    connection: sqlite3.Connection,
    trials: Mapping[str, frozenset[str]],
    participant: str,
    rated: Sequence[Rated],
    now: float,
) -> list[str]:
    """Keep a participant's answers, the first one of each trial; the trials that are kept.

    Raises:
        Refusal: a trial is none of the participant's group; then no answer is kept.
    """
    person = find(connection, participant)
    if not all(one.trial_id in trials[person.group] for one in rated):
        raise Refusal(422, f"There is no such trial in group {person.group}.")
    connection.executemany(
        "INSERT INTO response VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [
            (person.number, one.trial_id, one.rating, one.left, one.position, one.rt_ms, now)
            for one in rated
        ],
    )
    touch(connection, person, now)
    return list(dict.fromkeys(one.trial_id for one in rated))


def complete(
    connection: sqlite3.Connection,
    trials: Mapping[str, frozenset[str]],
    participant: str,
    now: float,
) -> Person:
    """Note that a participant has finished.

    Raises:
        Refusal: answers are missing.
    """
    person = find(connection, participant)
    kept = connection.execute(
        "SELECT count(*) FROM response WHERE number = ?", (person.number,)
    ).fetchone()[0]
    missing = len(trials[person.group]) - kept
    if missing:
        raise Refusal(409, f"{missing} answers have not arrived yet.", missing=missing)
    connection.execute(
        "UPDATE participant SET seen = ?, completed = coalesce(completed, ?) WHERE number = ?",
        (now, now, person.number),
    )
    return person
