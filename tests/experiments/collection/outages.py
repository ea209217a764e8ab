"""Servers that are killed while participants answer.

What participants were told is saved, by their own journals, is then compared with the database.
"""

import json
import math
import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from signal import SIGINT
from threading import Thread

import httpx2

from contstim.experiments.collection.participants import withdraw
from contstim.experiments.design.artificial import ArtificialParticipants
from contstim.experiments.responses.table import UNRATED
from contstim.testing.participants import Journal, RunSettings, take_part
from tests.experiments.collection.servers import CollectProcess, answer


@dataclass(frozen=True)
class Outcome:
    """What an outage did."""

    outages: int  # how many there were while participants answered
    # Answers that participants were told are saved, at each outage and in the end
    acknowledged: tuple[int, ...]
    lost: int  # of these, how many the database lacks or holds otherwise
    duplicates: int  # answers beyond the first of a participant to a trial
    rows: int  # answers in the database in the end
    withdrawn: int = 0  # people who joined, answered and withdrew between the outages
    # What still stood of them in a file of the database after the server's end
    traces: tuple[str, ...] = ()


def under_kills(
    server: CollectProcess,
    people: ArtificialParticipants,
    run: RunSettings,
    kills: int,
    seed: int,
    *,
    withdrawals: float = 1 / 3,
) -> Outcome:
    """Kill the server at random moments; start it again at once.

    Before a share of the kills somebody joins, answers and withdraws: by an ID, a name or a code.
    """
    chance = random.Random(seed)
    marks: list[str] = []

    def outage() -> None:
        if chance.random() < withdrawals:
            marks.extend(_withdrawal(server, len(marks)))
        time.sleep(chance.uniform(0.05, 0.8))
        server.stop()
        time.sleep(chance.uniform(0.0, 0.2))
        server.start()
        server.wait_until_it_answers()

    found = _under(outage, server, people, run, kills)
    server.stop(SIGINT)
    files = [path.read_bytes() for path in server.database.parent.glob(f"{server.database.name}*")]
    left = tuple(mark for mark in marks if any(mark.encode() in file for file in files))
    return replace(found, withdrawn=len(marks) // 3, traces=left)


def _withdrawal(server: CollectProcess, number: int) -> tuple[str, str, str]:
    """Take part, and be gone; marks by which the person would be found again."""
    who, said = f"leaver-{number}-id", f"leaver-{number}-remark"
    with httpx2.Client(base_url=server.url, trust_env=False, timeout=60) as http:
        study = http.get("/study.json").json()
        wish = {"platform": {"PROLIFIC_PID": who, "STUDY_ID": "s"}}
        joined = http.post("/api/participants", json=wish).json()
        known = {name: joined[name] for name in ("participant", "secret")}
        known["questions"] = {"remarks": said}
        own = [trial["trial_id"] for trial in study["groups"][joined["group"]]]
        given = [answer(trial, rating=1, position=n) for n, trial in enumerate(own, start=1)]
        by_code = number % 9 == 6
        sent = given if by_code else given[:2]
        http.post("/api/responses", json={**known, "responses": sent}).raise_for_status()
        if by_code:
            who_is_it = http.post("/api/complete", json=known).json()["code"]
        else:
            who_is_it = who if number % 9 == 0 else joined["participant"]
    withdraw(server.database, who_is_it, "2026-11-28")
    return joined["participant"], who, said


def _under(
    outage: Callable[[], None],
    server: CollectProcess,
    people: ArtificialParticipants,
    run: RunSettings,
    times: int,
) -> Outcome:
    journal = server.database.with_suffix(".journal")
    failures: list[BaseException] = []

    def answer_all() -> None:
        try:
            take_part(people, run, journal)
        except BaseException as error:
            failures.append(error)

    answering = Thread(target=answer_all)
    answering.start()
    counts: list[int] = []
    lost = done = 0
    while done < times and _under_way(answering, journal):
        outage()
        done += answering.is_alive()
        told = acknowledged(journal, people, run)  # before what is held is read
        counts.append(len(told))
        lost += len(told - {*held(server.database)})
    answering.join()
    if failures:
        raise failures[0]
    told, rows = acknowledged(journal, people, run), held(server.database)
    final = lost + len(told - {*rows})
    doubled = len(rows) - len({row[:2] for row in rows})
    return Outcome(done, (*counts, len(told)), final, doubled, len(rows))


def _under_way(answering: Thread, journal: Path) -> bool:
    """Wait until participants are told something again; False if they are done."""
    before = _times_told(journal)
    while answering.is_alive() and _times_told(journal) <= before:
        time.sleep(0.02)
    return answering.is_alive()


def _times_told(journal: Path) -> int:
    return journal.read_text().count('"number": ') if journal.exists() else 0


Answer = tuple[str, str, int | None, int, int, float | None, str | None, int | None, float | None]


def acknowledged(path: Path, people: ArtificialParticipants, run: RunSettings) -> set[Answer]:
    """What participants were told is saved: participant, trial, rating, left, position, …."""
    if not path.exists():
        return set()
    copy = path.with_suffix(".copy")
    copy.write_bytes(path.read_bytes())
    first = json.loads(copy.read_text().partition("\n")[0] or '{"run": {}}')["run"]
    with closing(Journal(copy, first)) as journal:
        numbers = range(1, run.participants + 1)
        return {
            (
                *(one.participant, one.trial_id, None if one.rating == UNRATED else one.rating),
                *(one.left, one.position, _known(one.rt_ms)),
                *(one.input or None, one.blurs, _known(one.away_ms)),
            )
            for number in numbers
            for one in journal.copy(number).acknowledged(people, number)
        }


def _known(milliseconds: float) -> float | None:
    return None if math.isnan(milliseconds) else milliseconds


def held(database: Path) -> list[Answer]:
    """What the database holds, in the same form."""
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(
            "SELECT participant, trial_id, rating, left_sentence, position, rt_ms, input, blurs, "
            "away_ms FROM response JOIN participant USING (number)"
        ).fetchall()
