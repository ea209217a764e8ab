"""Participants join, come back, answer and complete: each function is one request's transaction."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contstim.experiments.collection.requests import RequestRefusal
from contstim.experiments.responses.table import SIMULATED_NAME

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.experiments.collection.requests import PlatformIdentity, ReceivedAnswer


@dataclass(frozen=True)
class Participant:
    """A row of the table of participants.

    Attributes:
        number: in the order of joining, from 1.
        participant: the random name that everybody outside the database sees.
        group: whose trials are shown.
        seed: of order and sides.
    """

    number: int
    participant: str
    group: str
    seed: int


_PARTICIPANT = "SELECT number, participant, study_group, seed FROM participant"


@dataclass(frozen=True)
class AdmissionPolicy:
    """Who may take part, and in which group.

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
        identity: PlatformIdentity | None,
        now: float,
        *,
        simulated: bool = False,
    ) -> Participant:
        """A new participant, or the one whom the platform sent before.

        An artificial one is marked so for good, by the name too where it is new.

        Raises:
            RequestRefusal: there is no such group, or the study is full.
        """
        if group is not None and group not in self.groups:
            names = ", ".join(self.groups)
            raise RequestRefusal(422, f"There is no such group; there are {names}.")
        if identity is not None and identity.prolific_pid:
            row = connection.execute(
                f"{_PARTICIPANT} JOIN identity USING (number) "
                "WHERE prolific_pid = ? AND study_id = ?",
                (identity.prolific_pid, identity.study_id or ""),
            ).fetchone()
            if row is not None:
                returning = Participant(*row)
                touch(connection, returning, now)
                connection.execute(  # not all of their answers are a person's any more
                    "UPDATE participant SET simulated = max(simulated, ?) WHERE number = ?",
                    (simulated, returning.number),
                )
                return returning
        if connection.execute("SELECT count(*) FROM participant").fetchone()[0] >= self.most:
            raise RequestRefusal(403, "This study has all the participants it needs. Thank you.")
        name = f"{SIMULATED_NAME if simulated else 'p'}{secrets.token_hex(8)}"
        seed = secrets.randbelow(2**31)
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
                (number, identity.prolific_pid, identity.study_id or "", identity.session_id or ""),
            )
        return Participant(number, name, chosen, seed)


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


def find(connection: sqlite3.Connection, participant: str) -> Participant:
    """The participant of this name.

    Raises:
        RequestRefusal: there is none.
    """
    row = connection.execute(f"{_PARTICIPANT} WHERE participant = ?", (participant,)).fetchone()
    if row is None:
        raise RequestRefusal(403, "Participant and secret do not belong together.")
    return Participant(*row)


def touch(connection: sqlite3.Connection, participant: Participant, now: float) -> None:
    """Note that somebody was here."""
    connection.execute(
        "UPDATE participant SET seen = ? WHERE number = ?", (now, participant.number)
    )


def saved_answers(connection: sqlite3.Connection, participant: Participant) -> list[dict[str, Any]]:
    """The answers that the database holds of a participant, in the order of presentation."""
    names = ("trial_id", "rating", "left", "position", "rt_ms")
    rows = connection.execute(
        "SELECT trial_id, rating, left_sentence, position, rt_ms FROM response "
        "WHERE number = ? ORDER BY position, trial_id",
        (participant.number,),
    )
    return [dict(zip(names, row, strict=True)) for row in rows]


def save(
    connection: sqlite3.Connection,
    trials: Mapping[str, frozenset[str]],
    name: str,
    answers: Sequence[ReceivedAnswer],
    now: float,
) -> list[str]:
    """Keep a participant's answers, the first one to each trial; the trials that are kept.

    Args:
        connection: within a transaction.
        trials: group → identifiers of its trials.
        name: of the participant.
        answers: at least one.
        now: seconds since 1970.

    Raises:
        RequestRefusal: a trial is not in the participant's group; then no answer is kept.
    """
    participant = find(connection, name)
    if not all(answer.trial_id in trials[participant.group] for answer in answers):
        raise RequestRefusal(422, f"There is no such trial in group {participant.group}.")
    # Pages repeat what they have not heard of: the first answer to a trial stands
    connection.executemany(
        "INSERT INTO response VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [
            (participant.number, a.trial_id, a.rating, a.left, a.position, a.rt_ms, now)
            for a in answers
        ],
    )
    touch(connection, participant, now)
    return list(dict.fromkeys(answer.trial_id for answer in answers))


def complete(
    connection: sqlite3.Connection,
    trials: Mapping[str, frozenset[str]],
    name: str,
    now: float,
) -> None:
    """Note that a participant has finished.

    Raises:
        RequestRefusal: answers are missing.
    """
    participant = find(connection, name)
    saved = connection.execute(
        "SELECT count(*) FROM response WHERE number = ?", (participant.number,)
    ).fetchone()[0]
    missing = len(trials[participant.group]) - saved
    if missing:
        raise RequestRefusal(409, f"{missing} answers have not arrived yet.", missing=missing)
    # Who asks again, because the code was lost on the way, has finished when they first asked
    connection.execute(
        "UPDATE participant SET seen = ?, completed = coalesce(completed, ?) WHERE number = ?",
        (now, now, participant.number),
    )
