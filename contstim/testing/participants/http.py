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
from contstim.experiments.responses import Response
from contstim.testing.participants.client import Journal, ParticipantClient, request_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from contstim.experiments.design.artificial import ArtificialParticipants

_SECONDS_TO_CONNECT = 10.0


@dataclass(frozen=True)
class RunSettings:
    """Settings of a run of artificial participants.

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
    settings: RunSettings,
    journal: Path,
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> tuple[Response, ...]:
    """Let artificial participants join a study, answer every trial, and complete it.

    They join one after another, so that the server spreads them over its groups in order, and then
    answer all at once.

    Args:
        people: who they are; their trials must be the study's.
        settings: how they take part.
        journal: keeps what was answered and acknowledged; an interrupted run goes on from it.
        progress: told how many of how many participants have completed.

    Returns:
        Everything that the server acknowledged, as the participants have it.

    Raises:
        InputError: the address is not one of a server, the study shows other trials, or the
            journal cannot be used or is of another run.
        WorkerError: the server refuses something, or is silent for too long.
    """
    if not settings.url.startswith(("http://", "https://")):
        raise InputError(
            f"{settings.url!r} is not an address of a server, such as http://127.0.0.1:8000."
        )
    with closing(Journal(journal, _identity_of_run(people, settings))) as copies:
        asyncio.run(_run(people, settings, copies, progress))
        return tuple(
            Response(joined.participant, int(joined.group), **answer, simulated=True)
            for number in range(1, settings.participants + 1)
            for copy in [copies.copy(number)]
            for joined in [copy.joined]
            if joined is not None
            for answer in copy.answers.values()
        )


def _identity_of_run(people: ArtificialParticipants, settings: RunSettings) -> dict[str, Any]:
    """Facts that answers and acknowledgements depend on."""
    trials = [
        [trial.group, trial.trial_id, str(trial.sentence_1), str(trial.sentence_2), difference]
        for trial, difference in zip(people.trials, people.differences.tolist(), strict=True)
    ]
    return {
        "model": people.model,
        "seed": people.seed,
        "noise": float(people.noise),
        "lapses": float(people.lapses),
        "server": settings.url.rstrip("/"),
        "fingerprint": hashlib.sha256(json.dumps(trials).encode()).hexdigest(),
    }


async def _run(
    people: ArtificialParticipants,
    settings: RunSettings,
    journal: Journal,
    progress: Callable[[int, int], None],
) -> None:
    places, completed = asyncio.Semaphore(settings.at_once), 0

    async def answer_everything(number: int, client: ParticipantClient) -> None:
        nonlocal completed
        async with places:
            copy, joined = client.copy, client.copy.joined
            if not copy.completed and joined is not None:
                for response in people.answers(
                    number, joined.participant, group=int(joined.group), place=1, seed=joined.seed
                ):
                    if response.trial_id not in copy.saved:
                        await client.answer([response])
                        await asyncio.sleep(settings.pause)
                await client.complete()
        completed += 1
        progress(completed, settings.participants)

    # Proxies of the environment are for the web, not for a server of this machine
    async with httpx2.AsyncClient(
        base_url=settings.url.rstrip("/") + "/",
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
        timeout=_SECONDS_TO_CONNECT,
        trust_env=False,
    ) as http:
        # Before anybody joins, for who joins and cannot answer holds a place
        await _check_trials(http, people, settings)
        clients = {
            number: ParticipantClient(
                http, journal, number, patience=settings.patience, simulated=True
            )
            for number in range(1, settings.participants + 1)
        }
        # One after another: who joins at the same time as others may get any group
        for client in clients.values():
            await client.join()
        await asyncio.gather(*(answer_everything(n, client) for n, client in clients.items()))


async def _check_trials(
    http: httpx2.AsyncClient, people: ArtificialParticipants, settings: RunSettings
) -> None:
    study = await request_json(http, http.build_request("GET", "study.json"), settings.patience)
    expected: dict[str, set[str]] = {}
    for trial in people.trials:
        expected.setdefault(str(trial.group), set()).add(trial.trial_id)
    try:
        served = {
            group: {trial["trial_id"] for trial in trials}
            for group, trials in study["groups"].items()
        }
    except (KeyError, TypeError, AttributeError):
        served = {}
    if served != expected:
        raise InputError(
            f"The study at {settings.url} shows other trials than {settings.table}; name the table "
            "that it was exported from."
        )
