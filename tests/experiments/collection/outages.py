"""Servers that are killed during data collection.

The responses that participants' journals record as acknowledged are compared with the database.
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
    """Counts of a run with outages."""

    outages: int  # outages before the last participant finished
    acknowledged: tuple[int, ...]  # acknowledged responses after each outage, and at the end
    lost: int  # acknowledged responses that the database lacks or stores differently
    duplicates: int  # additional responses of a participant to the same trial
    rows: int  # responses in the database at the end
    withdrawn: int = 0  # participants who withdrew between outages
    # Texts of withdrawn participants that remain in files of the database
    traces: tuple[str, ...] = ()


def run_with_kills(
    server: CollectProcess,
    people: ArtificialParticipants,
    run: RunSettings,
    kills: int,
    seed: int,
    *,
    withdrawals: float = 1 / 3,
) -> Outcome:
    """Kill the server at random moments and restart it at once.

    Before a share of the kills, a participant joins, responds and withdraws: by ID, name or code.
    """
    rng = random.Random(seed)
    withdrawn_texts: list[str] = []

    def outage() -> None:
        if rng.random() < withdrawals:
            withdrawn_texts.extend(_withdraw_participant(server, len(withdrawn_texts)))
        time.sleep(rng.uniform(0.05, 0.8))
        server.stop()
        time.sleep(rng.uniform(0.0, 0.2))
        server.start()
        server.wait_until_it_answers()

    outcome = _run_with_outages(outage, server, people, run, kills)
    server.stop(SIGINT)
    files = [path.read_bytes() for path in server.database.parent.glob(f"{server.database.name}*")]
    traces = tuple(text for text in withdrawn_texts if any(text.encode() in file for file in files))
    return replace(outcome, withdrawn=len(withdrawn_texts) // 3, traces=traces)


def _withdraw_participant(server: CollectProcess, number: int) -> tuple[str, str, str]:
    """Take part and withdraw; return the texts that would identify the participant."""
    platform_id, remark = f"leaver-{number}-id", f"leaver-{number}-remark"
    with httpx2.Client(base_url=server.url, trust_env=False, timeout=60) as http:
        study = http.get("/study.json").json()
        request = {"platform": {"PROLIFIC_PID": platform_id, "STUDY_ID": "s"}}
        joined = http.post("/api/participants", json=request).json()
        body = {name: joined[name] for name in ("participant", "secret")}
        body["questions"] = {"remarks": remark}
        trials = [trial["trial_id"] for trial in study["groups"][joined["group"]]]
        batch = [answer(trial, rating=1, position=n) for n, trial in enumerate(trials, start=1)]
        by_code = number % 9 == 6
        sent_answers = batch if by_code else batch[:2]
        http.post("/api/responses", json={**body, "responses": sent_answers}).raise_for_status()
        if by_code:
            identity = http.post("/api/complete", json=body).json()["code"]
        else:
            identity = platform_id if number % 9 == 0 else joined["participant"]
    withdraw(server.database, identity, "2026-11-28")
    return joined["participant"], platform_id, remark


def _run_with_outages(
    outage: Callable[[], None],
    server: CollectProcess,
    people: ArtificialParticipants,
    run: RunSettings,
    kills: int,
) -> Outcome:
    journal = server.database.with_suffix(".journal")
    failures: list[BaseException] = []

    def answer_all() -> None:
        try:
            take_part(people, run, journal)
        except BaseException as error:
            failures.append(error)

    thread = Thread(target=answer_all)
    thread.start()
    counts: list[int] = []
    lost = n_outages = 0
    while n_outages < kills and _wait_for_reply(thread, journal):
        outage()
        n_outages += thread.is_alive()
        receipts = read_acknowledged(journal, people, run)  # read before the database
        counts.append(len(receipts))
        lost += len(receipts - {*read_stored(server.database)})
    thread.join()
    if failures:
        raise failures[0]
    receipts, rows = (read_acknowledged(journal, people, run), read_stored(server.database))
    total_lost = lost + len(receipts - {*rows})
    duplicates = len(rows) - len({row[:2] for row in rows})
    return Outcome(n_outages, (*counts, len(receipts)), total_lost, duplicates, len(rows))


def _wait_for_reply(thread: Thread, journal: Path) -> bool:
    """Wait until the journal records another reply; return False once all participants are done."""
    n_replies = _count_replies(journal)
    while thread.is_alive() and _count_replies(journal) <= n_replies:
        time.sleep(0.02)
    return thread.is_alive()


def _count_replies(journal: Path) -> int:
    return journal.read_text().count('"number": ') if journal.exists() else 0


Answer = tuple[str, str, int | None, int, int, float | None, str | None, int | None, float | None]


def read_acknowledged(path: Path, people: ArtificialParticipants, run: RunSettings) -> set[Answer]:
    """Return the acknowledged responses: participant, trial, rating, left, position, …."""
    if not path.exists():
        return set()
    copy = path.with_suffix(".copy")
    copy.write_bytes(path.read_bytes())
    run_record = json.loads(copy.read_text().partition("\n")[0] or '{"run": {}}')["run"]
    with closing(Journal(copy, run_record)) as journal:
        numbers = range(1, run.participants + 1)
        return {
            (
                *(r.participant, r.trial_id, None if r.rating == UNRATED else r.rating),
                *(r.left, r.position, _replace_nan(r.rt_ms)),
                *(r.input or None, r.blurs, _replace_nan(r.away_ms)),
            )
            for number in numbers
            for r in journal.acknowledged(people, number)
        }


def _replace_nan(milliseconds: float) -> float | None:
    return None if math.isnan(milliseconds) else milliseconds


def read_stored(database: Path) -> list[Answer]:
    """Return the responses in the database, in the same form."""
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(
            "SELECT participant, trial_id, rating, left_sentence, position, rt_ms, input, blurs, "
            "away_ms FROM response JOIN participant USING (number)"
        ).fetchall()
