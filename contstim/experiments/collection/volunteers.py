"""Artificial participants who take part over the server's protocol, many at once."""

from __future__ import annotations

import asyncio
import hashlib
import json
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2

from contstim.errors import InputError
from contstim.experiments.collection.client import Journal, Participant, ask
from contstim.experiments.responses import Response

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from contstim.experiments.design.artificial import ArtificialParticipants

_SECONDS_TO_CONNECT = 10.0


@dataclass(frozen=True)
class Visit:
    """How artificial participants take part.

    Attributes:
        url: of the study.
        participants: how many, in all.
        at_once: how many at the same time.
        pause: seconds between two answers of a participant.
        patience: seconds of silence after which to give up.
        table: what messages call the participants' trials.
    """

    url: str
    participants: int
    at_once: int = 50
    pause: float = 0.0
    patience: float = 300.0
    table: str = "the participants'"


def take_part(
    people: ArtificialParticipants,
    visit: Visit,
    journal: Path,
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> tuple[Response, ...]:
    """Let artificial participants join a study, answer every trial, and complete it.

    They join one after another, so that the server deals them to its groups in order, and then
    answer all at once.

    Args:
        people: who they are; their trials must be the study's.
        visit: how they take part.
        journal: keeps what was answered and acknowledged; an interrupted run goes on from it.
        progress: told how many of how many participants have completed.

    Returns:
        Everything that the server acknowledged, as the participants have it.

    Raises:
        InputError: the address is none, the study shows other trials, or the journal cannot be
            used or is of another run.
        WorkerError: the server refuses something, or is silent for too long.
    """
    if not visit.url.startswith(("http://", "https://")):
        raise InputError(
            f"{visit.url!r} is not an address of a server, such as http://127.0.0.1:8000."
        )
    with closing(Journal(journal, _run_of(people, visit))) as copies:
        asyncio.run(_all(people, visit, copies, progress))
        return tuple(
            Response(joined.participant, int(joined.group), **answer, simulated=True)
            for number in range(1, visit.participants + 1)
            for own in [copies.copy(number)]
            for joined in [own.joined]
            if joined is not None
            for answer in own.answers.values()
        )


def _run_of(people: ArtificialParticipants, visit: Visit) -> dict[str, Any]:
    """What answers and acknowledgements depend on."""
    asked = [
        [trial.group, trial.trial_id, str(trial.sentence_1), str(trial.sentence_2), difference]
        for trial, difference in zip(people.trials, people.differences.tolist(), strict=True)
    ]
    return {
        "model": people.model,
        "seed": people.seed,
        "noise": float(people.noise),
        "lapses": float(people.lapses),
        "server": visit.url.rstrip("/"),
        "fingerprint": hashlib.sha256(json.dumps(asked).encode()).hexdigest(),
    }


async def _all(
    people: ArtificialParticipants,
    visit: Visit,
    copies: Journal,
    progress: Callable[[int, int], None],
) -> None:
    doors, done = asyncio.Semaphore(visit.at_once), 0
    numbers = range(1, visit.participants + 1)

    async def one(number: int, participant: Participant) -> None:
        nonlocal done
        async with doors:
            await _answer(people, visit, number, participant)
        done += 1
        progress(done, visit.participants)

    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    base = visit.url.rstrip("/") + "/"
    async with httpx2.AsyncClient(
        base_url=base, limits=limits, timeout=_SECONDS_TO_CONNECT, trust_env=False
    ) as http:
        await _check_trials(http, people, visit)
        everybody = {
            n: Participant(http, copies, n, patience=visit.patience, simulated=True)
            for n in numbers
        }
        for participant in everybody.values():
            await participant.join()
        await asyncio.gather(*(one(n, participant) for n, participant in everybody.items()))


async def _check_trials(
    http: httpx2.AsyncClient, people: ArtificialParticipants, visit: Visit
) -> None:
    """Before anybody joins, for who joins and cannot answer holds a place."""
    study = await ask(http, http.build_request("GET", "study.json"), visit.patience)
    own: dict[str, set[str]] = {}
    for trial in people.trials:
        own.setdefault(str(trial.group), set()).add(trial.trial_id)
    try:
        shown = {group: {t["trial_id"] for t in of} for group, of in study["groups"].items()}
    except (KeyError, TypeError, AttributeError):
        shown = {}
    if shown != own:
        raise InputError(
            f"The study at {visit.url} shows other trials than {visit.table}; name the table that "
            "it was exported from."
        )


async def _answer(
    people: ArtificialParticipants, visit: Visit, number: int, participant: Participant
) -> None:
    own, joined = participant.copy, participant.copy.joined
    if own.completed or joined is None:
        return
    responses = people.answers(
        number, joined.participant, group=int(joined.group), place=1, seed=joined.seed
    )
    for response in responses:
        if response.trial_id not in own.saved:
            await participant.answer([response])
            await asyncio.sleep(visit.pause)
    await participant.complete()
