"""Who joins which group, and comes back. Each function is one request's share of a transaction."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contstim.experiments.collection.messages import Refusal

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from contstim.experiments.collection.messages import Identity


@dataclass(frozen=True)
class Person:
    """A participant as the database knows them."""

    number: int
    participant: str
    group: str
    seed: int


@dataclass(frozen=True)
class Reception:
    """Who may take part.

    Attributes:
        groups: in the order in which empty ones are filled.
        patience: seconds without a sign of life after which a participant's place is free again.
        most: participants in all; further ones are refused.
    """

    groups: tuple[str, ...]
    patience: float = 1800.0
    most: int = 10_000

    def join(
        self,
        connection: sqlite3.Connection,
        group: str | None,
        identity: Identity | None,
        now: float,
        *,
        simulated: bool = False,
    ) -> Person:
        """A new participant, or the one whom the platform sent before.

        An artificial one is marked so for good.

        Raises:
            Refusal: there is no such group, or the study is full.
        """
        if group is not None and group not in self.groups:
            raise Refusal(422, f"There is no such group; there are {', '.join(self.groups)}.")
        known = _known(connection, identity)
        if known is not None:
            touch(connection, known, now)
            if simulated:
                mark(connection, known)
            return known
        if connection.execute("SELECT count(*) FROM participant").fetchone()[0] >= self.most:
            raise Refusal(403, "This study has all the participants it needs. Thank you.")
        name, seed = f"p{secrets.token_hex(8)}", secrets.randbelow(2**31)
        chosen = group or least_filled(connection, self.groups, now - self.patience)
        number = connection.execute(
            "INSERT INTO participant (participant, study_group, seed, joined, seen, simulated) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (name, chosen, seed, now, now, simulated),
        ).lastrowid
        assert number is not None
        if identity is not None and identity.prolific_pid:
            connection.execute(
                "INSERT INTO identity VALUES (?, ?, ?, ?)",
                (number, identity.prolific_pid, identity.study_id, identity.session_id),
            )
        return Person(number, name, chosen, seed)


def least_filled(connection: sqlite3.Connection, groups: Iterable[str], since: float) -> str:
    """The first group with fewest people who have finished or were seen since then.

    Who dropped out is not counted, so their place is given to somebody else; who comes back after
    all is counted again.
    """
    filled = dict(
        connection.execute(
            "SELECT study_group, count(*) FROM participant "
            "WHERE completed IS NOT NULL OR seen >= ? GROUP BY study_group",
            (since,),
        ).fetchall()
    )
    return min(groups, key=lambda group: filled.get(group, 0))


def find(connection: sqlite3.Connection, participant: str) -> Person:
    """The participant of this name.

    Raises:
        Refusal: there is none.
    """
    row = connection.execute(f"{_PERSON} WHERE participant = ?", (participant,)).fetchone()
    if row is None:
        raise Refusal(403, "Participant and secret do not belong together.")
    return Person(*row)


def touch(connection: sqlite3.Connection, person: Person, now: float) -> None:
    """Note that somebody was here."""
    connection.execute("UPDATE participant SET seen = ? WHERE number = ?", (now, person.number))


def mark(connection: sqlite3.Connection, person: Person) -> None:
    """Note that not all of somebody's answers are a person's."""
    connection.execute("UPDATE participant SET simulated = 1 WHERE number = ?", (person.number,))


def answered(connection: sqlite3.Connection, person: Person) -> list[dict[str, Any]]:
    """What the server holds of a participant, in the order of presentation."""
    names = ("trial_id", "rating", "left", "position", "rt_ms")
    rows = connection.execute(
        "SELECT trial_id, rating, left_sentence, position, rt_ms FROM response "
        "WHERE number = ? ORDER BY position, trial_id",
        (person.number,),
    )
    return [dict(zip(names, row, strict=True)) for row in rows]


_PERSON = "SELECT number, participant, study_group, seed FROM participant"


def _known(connection: sqlite3.Connection, identity: Identity | None) -> Person | None:
    if identity is None or not identity.prolific_pid:
        return None
    row = connection.execute(
        f"{_PERSON} JOIN identity USING (number) WHERE prolific_pid = ? AND study_id = ?",
        (identity.prolific_pid, identity.study_id),
    ).fetchone()
    return None if row is None else Person(*row)
