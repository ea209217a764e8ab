"""Participants join, resume, answer, complete and withdraw; each action is one transaction.

The web address that a participant opens may contain the participant's ID. It may also contain a
token, which proves that the experimenter issued this ID.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

from contstim.errors import InputError, StoreError
from contstim.experiments.collection.database import (
    digest,
    equal_secrets,
    open_readable,
    stored_key,
    withdrawal_mark,
    writable_connection,
)
from contstim.experiments.collection.requests import ParticipantRequest, RequestRefusal
from contstim.experiments.collection.tables import PARTICIPANTS, code_of
from contstim.experiments.platforms.jspsych.study import SIGNED, STUDY, VISIT, check_web_address
from contstim.experiments.responses.table import SIMULATED_NAME
from contstim.files.documents import read_text
from contstim.options import Help
from contstim.wording import find_duplicates, quantity

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from contstim.experiments.collection.requests import JoinRequest, SaveRequest


@dataclass(frozen=True)
class StudyOptions:
    """Options that the researcher sets for a study.

    A participant drops out after `dropout` minutes without a request. Participants who dropped out
    count for the maximum `participants`, but not for the maximum `per_group`. If `redirect` is
    None, the server uses the redirect of the exported experiment. With `accept_platform_ids`,
    participants need no token if their web address contains the ID that a recruiting platform gave
    them.
    """

    code: Annotated[
        str | None,
        Help(
            "The completion code; by default the code of the export. Without an exported code and "
            "without --redirect, each participant gets an individual code."
        ),
    ] = None
    redirect: Annotated[
        str | None,
        Help(
            "Web address to which participants are sent when all answers are saved, such as "
            "Prolific's completion link."
        ),
    ] = None
    dropout: Annotated[
        float,
        Help(
            "After this number of minutes without an answer, another participant may take the "
            "participant's place in the group.",
            at_least=0.1,
        ),
    ] = 30
    participants: Annotated[
        int, Help("Maximum number of participants; 0 closes the study.", at_least=0)
    ] = 10_000
    per_group: Annotated[
        int,
        Help(
            "Maximum number of participants of each group. In a study with waves of participants, "
            "use the value of people_per_list.",
            flag="--participants-per-group",
            at_least=1,
        ),
    ] = 10_000
    accept_platform_ids: Annotated[
        bool,
        Help(
            "Admit each ID of Prolific, SONA or MTurk once; participants can resume only in the "
            "same browser."
        ),
    ] = False
    rehearsal: Annotated[
        bool,
        Help(
            "Admit artificial participants, for a test. Use a database without answers of human "
            "participants."
        ),
    ] = False


@dataclass(frozen=True)
class Application:
    """A request to take part, the applicant's identity, and the facts that decide on admission.

    Attributes:
        groups: groups of the study, in their order.
        now: time of the request, seconds since 1970.
        fields: identity fields in the web address; only fields that the study stores.
        person: text that identifies the person; empty if the address has no identity.
        has_token: whether the address has a valid token.
    """

    groups: Collection[str]
    request: JoinRequest
    options: StudyOptions
    now: float
    fields: Mapping[str, str]
    person: str
    has_token: bool


def identify(
    request: JoinRequest, stored: Collection[str], key: str
) -> tuple[dict[str, str], str, bool]:
    """Return the identity in a request: `fields`, `person` and `has_token` of an `Application`.

    Identity fields that the study does not store are ignored. `key` is the hexadecimal key that
    signs the addresses of participants.

    Raises:
        RequestRefusal: if the token does not belong to the identity.
    """
    platform = request.platform or {}
    fields = {name: platform[name] for name in stored if platform.get(name)}
    if request.token is not None:
        identity = platform.get(SIGNED) or ""
        if not equal_secrets(link_token(key, identity), request.token):
            raise RequestRefusal(
                403, "The token in the address does not belong to the participant."
            )
        return fields, f"token\x1f{SIGNED}\x1f{identity}", True
    constant_fields = {name: value for name, value in fields.items() if name not in VISIT}
    has_identity = bool(constant_fields.keys() - {STUDY})
    person = "\x1f".join(map("\x1f".join, constant_fields.items())) if has_identity else ""
    return fields, person, False


_ANSWER = ("trial_id", "rating", "left", "position", "rt_ms")  # returned to a resuming page
_LONGEST_QUESTIONNAIRE = 256 * 1024  # characters


def join(connection: sqlite3.Connection, application: Application) -> dict[str, Any]:
    """Add a participant, or resume the participant whose token or nonce is in the request.

    A nonce is a random text of the browser. For the result, see `resume`.

    If the request names no group, the participant joins the group with the fewest participants. If
    several groups have the fewest participants, the participant joins the first of these groups.

    Raises:
        RequestRefusal: if there is no such group, the study is full, or the applicant may not join
            or resume; see `is_open`.
    """
    groups, request, now = application.groups, application.request, application.now
    if request.group is not None and request.group not in groups:
        raise RequestRefusal(422, f"This group does not exist; the groups are {', '.join(groups)}.")
    name, stored_name = _find_known(connection, application)
    if stored_name is not None:
        return resume(connection, ParticipantRequest(participant=stored_name), now)
    group = _group_with_place(connection, application, [request.group] if request.group else groups)
    if group is None:
        sentence = "This study has all the participants it needs. Thank you."
        raise RequestRefusal(403, sentence, full=True)
    seed = secrets.randbelow(2**31)
    number = connection.execute(
        "INSERT INTO participant "
        "(participant, study_group, seed, joined, seen, simulated, device, viewport) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
        (name, group, seed, now, now, bool(request.simulated), request.device, request.viewport),
    ).fetchone()[0]
    if application.person:
        row = (number, application.person, json.dumps(application.fields))
        connection.execute("INSERT INTO identity VALUES (?, ?, ?)", row)
    return {"participant": name, "group": group, "seed": seed, "answered": []}


def is_open(connection: sqlite3.Connection, application: Application) -> bool:
    """Return True if the applicant can take part or resume.

    Raises:
        RequestRefusal: if the applicant has withdrawn, lacks a required token, began in another
            browser, or is artificial and the server admits only people.
    """
    _, stored_name = _find_known(connection, application)
    group = _group_with_place(connection, application, application.groups)
    return stored_name is not None or group is not None


def _find_known(connection: sqlite3.Connection, application: Application) -> tuple[str, str | None]:
    """Return the applicant's name for joining, and the stored name for resuming.

    The name for joining is random (`_random_name`). The stored name is None if the applicant has
    not joined yet.
    """
    request, options, person = application.request, application.options, application.person
    if request.simulated and not options.rehearsal:
        raise RequestRefusal(
            403, "This server does not accept artificial participants. Start it with --rehearsal."
        )
    is_admitted = options.accept_platform_ids and SIGNED not in application.fields
    if not (application.has_token or is_admitted or not person):
        raise RequestRefusal(
            403,
            "This address contains your ID, but not the token that confirms it. Please use "
            "the complete address that you received.",
        )
    name = _random_name(application, stored_key(connection, "secret"))
    marks = [withdrawal_mark(connection, text) for text in filter(None, (person, name))]
    placeholders = ", ".join("?" * len(marks))
    if connection.execute(f"SELECT 1 FROM study WHERE name IN ({placeholders})", marks).fetchone():
        raise withdrawn_refusal()
    row = connection.execute(
        "SELECT participant, simulated FROM participant LEFT JOIN identity USING (number) "
        "WHERE participant = ? OR person = ?",
        (name, person),
    ).fetchone()
    if row is None:
        return name, None
    stored_name, is_artificial = row
    if not (application.has_token or stored_name == name):
        raise RequestRefusal(
            403, "You have begun this study in another browser. Please continue there."
        )
    if request.simulated and not is_artificial:
        raise RequestRefusal(403, "This participant is a person, not an artificial participant.")
    return name, str(stored_name)


def _random_name(application: Application, secret: str) -> str:
    """Return a name that looks random; the same nonce and person always give the same name."""
    kind = SIMULATED_NAME if application.request.simulated else "p"
    if application.request.nonce is None:
        return f"{kind}{secrets.token_hex(8)}"
    source = f"{application.request.nonce}\x1f{application.person}"
    return f"{kind}{digest(secret, 'name', source)[:16]}"


def _group_with_place(
    connection: sqlite3.Connection, application: Application, groups: Collection[str]
) -> str | None:
    """Return the group with the fewest participants; if several have the fewest, the first of them.

    Participants who finished count. Other participants count if they have not dropped out and did
    not fail the check of the instructions. Participants who dropped out count again when they
    resume.

    The result is None if the study or each of these groups has the maximum number of participants.
    """
    options = application.options
    (number,) = connection.execute("SELECT count(*) FROM participant").fetchone()
    rows = connection.execute(
        "SELECT study_group, count(*) FROM participant "
        "WHERE completed IS NOT NULL OR (seen >= ? AND NOT failed) GROUP BY study_group",
        (application.now - 60 * options.dropout,),
    )
    filled = dict.fromkeys(groups, 0) | dict(rows.fetchall())
    group = min(groups, key=filled.__getitem__)
    is_full = number >= options.participants or filled[group] >= options.per_group
    return None if is_full else group


def withdrawn_refusal() -> RequestRefusal:
    """Create the refusal of requests by withdrawn participants."""
    sentence = "You have withdrawn from this study. Your answers were deleted."
    return RequestRefusal(410, sentence, withdrawn=True)


def resume(
    connection: sqlite3.Connection, request: ParticipantRequest, now: float
) -> dict[str, Any]:
    """Return the state of a resuming participant, for the browser.

    The state consists of the participant's random name, the group, a seed, and the stored answers
    in order of presentation. The seed determines the order of trials and the sides of sentences.

    Raises:
        RequestRefusal: if the participant withdrew.
    """
    number, group, seed = _update_participant(connection, request, now)
    rows = connection.execute(
        "SELECT trial_id, rating, left_sentence, position, rt_ms FROM response "
        "WHERE number = ? ORDER BY position, trial_id",
        (number,),
    )
    answered = [dict(zip(_ANSWER, row, strict=True)) for row in rows]
    return {"participant": request.participant, "group": group, "seed": seed, "answered": answered}


def _update_participant(
    connection: sqlite3.Connection, request: ParticipantRequest, now: float
) -> tuple[int, str, int]:
    """Update a participant's record from a request; return number, group and seed.

    Each request contains the current values of `second_tabs` (a count) and `failed` (yes or no).
    The page never decreases these values, but requests may be repeated or arrive out of order. So
    the highest value of each is stored. Answers to further questions are added to the stored
    answers, unless the stored answers are already longer than `_LONGEST_QUESTIONNAIRE`.
    """
    row: tuple[int, str, int] | None = connection.execute(
        "UPDATE participant SET seen = ?, second_tabs = max(second_tabs, ?), "
        "failed = max(failed, ?), "
        "questions = iif(length(questions) > ?, questions, json_patch(questions, ?)) "
        "WHERE participant = ? RETURNING number, study_group, seed",
        (
            *(now, request.second_tabs, request.failed, _LONGEST_QUESTIONNAIRE),
            *(json.dumps(request.questions), request.participant),
        ),
    ).fetchone()
    if row is None:  # the secret was valid, so the participant must have existed
        raise withdrawn_refusal()
    return row


def save(
    connection: sqlite3.Connection,
    trials: Mapping[str, frozenset[str]],
    request: SaveRequest,
    now: float,
) -> list[str]:
    """Store a participant's first answer to each trial, and return the request's trial_ids.

    `trials` is group → identifiers of its trials.

    Raises:
        RequestRefusal: if a trial is not in the participant's group; no answer is stored then.
    """
    number, group, _ = _update_participant(connection, request, now)
    if not all(answer.trial_id in trials[group] for answer in request.responses):
        raise RequestRefusal(422, f"Group {group} has no such trial.")
    # Pages send unconfirmed answers again; repeated answers are ignored
    connection.executemany(
        "INSERT INTO response (number, received, trial_id, rating, left_sentence, position, rt_ms, "
        "input, blurs, away_ms) VALUES (:number, :received, :trial_id, :rating, :left, :position, "
        ":rt_ms, :input, :blurs, :away_ms) ON CONFLICT DO NOTHING",
        [{"number": number, "received": now, **dict(answer)} for answer in request.responses],
    )
    return list(dict.fromkeys(answer.trial_id for answer in request.responses))


def complete(
    connection: sqlite3.Connection,
    trials: Mapping[str, frozenset[str]],
    request: ParticipantRequest,
    now: float,
) -> None:
    """Record that a participant has finished.

    Raises:
        RequestRefusal: if a trial of the group has no stored answer.
    """
    number, group, _ = _update_participant(connection, request, now)
    (saved,) = connection.execute(
        "SELECT count(*) FROM response WHERE number = ?", (number,)
    ).fetchone()
    if missing := len(trials[group]) - saved:
        raise RequestRefusal(409, f"{missing} answers have not arrived yet.", missing=missing)
    # Pages may repeat this request; the first time of completion is stored
    connection.execute(
        "UPDATE participant SET completed = coalesce(completed, ?) WHERE number = ?", (now, number)
    )


def participant_links(database: Path, identities: Path, url: str) -> list[tuple[str, str]]:
    """Return each participant's web address, which contains the participant's ID and its token.

    Args:
        database: path of the database; the signing key is in a file next to it.
        identities: text file with an ID on each line; blank lines are skipped.
        url: address of the page, without ID and token.

    Returns:
        Pairs of ID and address, in the order of the file.

    Raises:
        InputError: if the file cannot be read; if it has no ID, or an ID twice; or if the key or
            the address cannot be used.
    """
    check_web_address(url)
    ids = [line for line in map(str.strip, read_text(identities).split("\n")) if line]
    repeated = find_duplicates(ids)
    if repeated or not ids:
        problem = f"{repeated[0]!r} twice" if repeated else "no ID"
        raise InputError(f"{identities} must have a different ID on each line, got {problem}.")
    key, sign = link_key(database), "&" if "?" in url else "?"
    queries = [{SIGNED: identity, "token": link_token(key, identity)} for identity in ids]
    return [(query[SIGNED], f"{url}{sign}{urlencode(query)}") for query in queries]


def link_token(key: str, identity: str) -> str:
    """Return the token for a participant's address; only owners of the key can compute it."""
    return digest(key, "link", identity)


def link_key(database: Path) -> str:
    """Read the key that signs participants' web addresses; it is in a file next to the database.

    Returns:
        The hexadecimal key. If the file is missing, it is created with a new key.

    Raises:
        InputError: if the file cannot be used or contains no key.
    """
    file = Path(f"{database}.key")
    key = stored_secret(file, secrets.token_hex(32))
    if not re.fullmatch("[0-9a-f]{64}", key):
        raise InputError(
            f"{file} must contain 64 hexadecimal digits. Restore this file from a backup, or "
            "delete this file and write the addresses again with --links."
        )
    return key


def stored_secret(file: Path, new: str) -> str:
    """Read a secret from a file that only its owner can read.

    If the file is missing, it is created with the secret `new`.

    Raises:
        InputError: if the file cannot be used.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as opened:
                opened.write(new + "\n")
        return file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"Cannot use {file}, which holds a secret: {error}.") from error


def whose(database: Path, who: str) -> str:
    """Describe the participant with this ID, code or name.

    With the same arguments, `withdraw` would delete this participant.
    """
    row, kind = _find_participant(database, who)
    return f"The {kind} of {row['participant']} ({_describe_progress(row)})."


def withdraw(database: Path, who: str, day: str) -> str:
    """Delete a participant's answers and identity, and describe the deleted data in a sentence.

    `who` is the participant's ID, completion code or name. The server may be running.

    The database keeps the number of withdrawals on `day`. The database also keeps keyed hashes of
    the name and the identity. Because of these hashes, the participant cannot take part again on
    the same page or with the same web address.

    Raises:
        InputError: if no participant or more than one has this ID, completion code or name.
        StoreError: if the database cannot be used.
    """
    row, kind = _find_participant(database, who)
    try:
        with writable_connection(database) as connection:
            busy = _delete(connection, row["number"], day)
    except sqlite3.Error as error:
        raise StoreError(f"No answers were deleted from {database}: {error}.") from error
    log = (
        " The log of the database may contain the deleted data until the server stops."
        if busy
        else ""
    )
    # The message does not contain the name, which must not remain in any log
    return f"Deleted the participant with this {kind}: {_describe_progress(row)}.{log}"


def _find_participant(database: Path, who: str) -> tuple[sqlite3.Row, str]:
    """Return the only participant with this ID, code or name, and what matched.

    For example, `completion code` is returned if `who` is the participant's completion code.
    """
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
            "of one participant; participants.csv describes all participants."
        )
    return matches[0]


def _delete(connection: sqlite3.Connection, number: int, day: str) -> bool:
    """Delete a participant in one transaction; return True if the log could not be emptied."""
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
    """Return each text that identifies a participant → its kind, such as `completion code`."""
    # The column `number` is left out, because it may equal the ID of another participant. The
    # platform's IDs of study and visit do not identify a person.
    fields = json.loads(row["fields"]).items()
    excluded_fields = {STUDY, *VISIT}
    ids = {v: "ID" if n == "participant" else n for n, v in fields if n not in excluded_fields}
    code = code_of(secret, row)
    names = ids | dict.fromkeys((code, code.lower()), "completion code")
    names[row["participant"]] = "name"
    return {name: kind for name, kind in names.items() if name}


def _describe_progress(row: sqlite3.Row) -> str:
    finished = "complete" if row["completed"] else "not complete"
    artificial = ", artificial" if row["simulated"] == "true" else ""
    answered = quantity(row["answered"], "answer")
    return f"number {row['number']}, group {row['group']}, {answered}, {finished}{artificial}"
