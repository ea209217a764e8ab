"""Participants join, come back, answer and complete: each function is one request's transaction."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contstim.experiments.collection.requests import ParticipantRequest, RequestRefusal
from contstim.experiments.platforms.jspsych.study import STUDY, VISIT
from contstim.experiments.responses.table import SIMULATED_NAME

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Mapping

    from contstim.experiments.collection.requests import JoinRequest, SaveRequest


@dataclass(frozen=True)
class StudyOptions:
    """Options of whoever runs a study.

    Attributes:
        dropout: minutes without a sign of life after which a participant's place is free again.
        participants: in all; further ones are refused.
        code: handed out on completion; None: that of the exported experiment, or one for each
            participant if there is no redirect either.
        redirect: where the browser goes after completion; None: where the experiment says.
    """

    dropout: float = 30
    participants: int = 10_000
    code: str | None = None
    redirect: str | None = None


_ANSWER = ("trial_id", "rating", "left", "position", "rt_ms")  # which the page goes on with
_KEPT = (*_ANSWER, "input", "blurs", "away_ms")
_LONGEST_QUESTIONNAIRE = 256 * 1024  # characters


def join(
    connection: sqlite3.Connection,
    groups: Collection[str],
    asked: JoinRequest,
    options: StudyOptions,
    now: float,
) -> dict[str, Any]:
    """A new participant, or the one whom the platform sent before; see `resume`.

    An artificial one is marked so for good, by the name too where it is new.

    Args:
        connection: within a transaction.
        groups: in the order in which empty ones are filled.
        asked: a group, who somebody is on a platform, and whether the participant is artificial.
        options: how long a silent participant's place is kept, and how many there may be.
        now: seconds since 1970.

    Raises:
        RequestRefusal: there is no such group, or the study is full.
    """
    simulated = bool(asked.simulated)
    if asked.group is not None and asked.group not in groups:
        raise RequestRefusal(422, f"There is no such group; there are {', '.join(groups)}.")
    fields, person, known = _identified(connection, asked)
    if known is not None:
        connection.execute(  # not all of their answers are a person's any more
            "UPDATE participant SET simulated = max(simulated, ?) WHERE participant = ?",
            (simulated, known),
        )
        return resume(connection, ParticipantRequest(participant=known), now)
    if not is_open(connection, asked, options):
        sentence = "This study has all the participants it needs. Thank you."
        raise RequestRefusal(403, sentence, full=True)
    name = f"{SIMULATED_NAME if simulated else 'p'}{secrets.token_hex(8)}"
    seed = secrets.randbelow(2**31)
    group = asked.group or least_filled(connection, groups, now - 60 * options.dropout)
    number = connection.execute(
        "INSERT INTO participant "
        "(participant, study_group, seed, joined, seen, simulated, device, viewport) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
        (name, group, seed, now, now, simulated, asked.device, asked.viewport),
    ).fetchone()[0]
    if person is not None:
        row = (number, person, json.dumps(fields))
        connection.execute("INSERT INTO identity VALUES (?, ?, ?)", row)
    return {"participant": name, "group": group, "seed": seed, "answered": []}


def is_open(connection: sqlite3.Connection, asked: JoinRequest, options: StudyOptions) -> bool:
    """True if somebody can take part, or go on."""
    if _identified(connection, asked)[2] is not None:
        return True
    (number,) = connection.execute("SELECT count(*) FROM participant").fetchone()
    return bool(number < options.participants)


def _identified(
    connection: sqlite3.Connection, asked: JoinRequest
) -> tuple[dict[str, str], str | None, str | None]:
    """Fields that are kept, what of them is the same at each visit, and the participant's name.

    Who has no such fields is known by the nonce of the request, as long as it is repeated.
    """
    fields = asked.platform or {}
    # The name of the platform's study alone says nobody
    own = {name: value for name, value in fields.items() if name not in VISIT}
    person = "\x1f".join(map("\x1f".join, own.items())) if own.keys() - {STUDY} else asked.nonce
    known = connection.execute(
        "SELECT participant FROM participant JOIN identity USING (number) WHERE person = ?",
        (person,),
    ).fetchone()
    return fields, person, None if known is None else known[0]


def least_filled(connection: sqlite3.Connection, groups: Iterable[str], since: float) -> str:
    """The first group with fewest people who have finished or were seen since then.

    Who dropped out or failed the check of the instructions is not counted, so their place is given
    to somebody else; who comes back after all is counted again.
    """
    filled = dict(
        connection.execute(
            "SELECT study_group, count(*) FROM participant "
            "WHERE completed IS NOT NULL OR (seen >= ? AND NOT failed) GROUP BY study_group",
            (since,),
        ).fetchall()
    )
    return min(groups, key=lambda group: filled.get(group, 0))


def resume(connection: sqlite3.Connection, asked: ParticipantRequest, now: float) -> dict[str, Any]:
    """A participant who comes back, as the browser is told.

    The random name that everybody outside the database sees, the group whose trials are shown, the
    seed of order and sides, and the answers that are kept, in the order of presentation.

    Raises:
        RequestRefusal: there is no participant of this name.
    """
    number, group, seed = _told(connection, asked, now)
    rows = connection.execute(
        "SELECT trial_id, rating, left_sentence, position, rt_ms FROM response "
        "WHERE number = ? ORDER BY position, trial_id",
        (number,),
    )
    answered = [dict(zip(_ANSWER, row, strict=True)) for row in rows]
    return {"participant": asked.participant, "group": group, "seed": seed, "answered": answered}


def _told(
    connection: sqlite3.Connection, asked: ParticipantRequest, now: float
) -> tuple[int, str, int]:
    """Number, group and seed of a participant, of whom is noted what the request tells.

    Requests are repeated and overtake one another, so each tells everything, and nothing is taken
    back: greater numbers stand, and answers to further questions are added.
    """
    row: tuple[int, str, int] | None = connection.execute(
        "UPDATE participant SET seen = ?, second_tabs = max(second_tabs, ?), "
        "failed = max(failed, ?), "
        "questions = iif(length(questions) > ?, questions, json_patch(questions, ?)) "
        "WHERE participant = ? RETURNING number, study_group, seed",
        (
            *(now, asked.second_tabs, asked.failed, _LONGEST_QUESTIONNAIRE),
            *(json.dumps(asked.questions), asked.participant),
        ),
    ).fetchone()
    if row is None:
        raise RequestRefusal(403, "Participant and secret do not belong together.")
    return row


def save(
    connection: sqlite3.Connection,
    trials: Mapping[str, frozenset[str]],
    asked: SaveRequest,
    now: float,
) -> list[str]:
    """Keep a participant's answers, the first one to each trial; the trials that are kept.

    Args:
        connection: within a transaction.
        trials: group → identifiers of its trials.
        asked: who answers, and what.
        now: seconds since 1970.

    Raises:
        RequestRefusal: a trial is not in the participant's group; then no answer is kept.
    """
    number, group, _ = _told(connection, asked, now)
    if not all(answer.trial_id in trials[group] for answer in asked.responses):
        raise RequestRefusal(422, f"There is no such trial in group {group}.")
    # Pages repeat what they have not heard of: the first answer to a trial stands
    connection.executemany(
        "INSERT INTO response (number, received, trial_id, rating, left_sentence, position, rt_ms, "
        "input, blurs, away_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [(number, now, *(getattr(answer, name) for name in _KEPT)) for answer in asked.responses],
    )
    return list(dict.fromkeys(answer.trial_id for answer in asked.responses))


def complete(
    connection: sqlite3.Connection,
    trials: Mapping[str, frozenset[str]],
    asked: ParticipantRequest,
    now: float,
) -> None:
    """Note that a participant has finished.

    Raises:
        RequestRefusal: answers are missing.
    """
    number, group, _ = _told(connection, asked, now)
    (saved,) = connection.execute(
        "SELECT count(*) FROM response WHERE number = ?", (number,)
    ).fetchone()
    if missing := len(trials[group]) - saved:
        raise RequestRefusal(409, f"{missing} answers have not arrived yet.", missing=missing)
    # Who asks again, because the code was lost on the way, has finished when they first asked
    connection.execute(
        "UPDATE participant SET completed = coalesce(completed, ?) WHERE number = ?", (now, number)
    )
