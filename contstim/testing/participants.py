"""Artificial participants who take part over the server's protocol, many at once.

They rehearse a study that `contstim collect` serves, from joining to the code of completion. Each
tries again while the server or the network is gone; a journal keeps what was acknowledged.

    people = artificial_participants(trials, scores, "my model", seed=1)
    responses = take_part(people, RunSettings("http://127.0.0.1:8000", 20), Path("run.journal"))
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import random
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2

from contstim.errors import InputError, WorkerError
from contstim.experiments.design.artificial import artificial_answers
from contstim.experiments.platforms.jspsych.study import check_web_address
from contstim.experiments.responses.questionnaire import Question
from contstim.experiments.responses.table import UNRATED
from contstim.files.documents import parse_json_object
from contstim.files.files import write_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from contstim.experiments.design.artificial import ArtificialParticipants
    from contstim.experiments.responses.table import Response

_AGAIN = (408, 429, 500, 502, 503, 504)
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 2.0  # seconds
_SECONDS_TO_CONNECT = 10.0
_ANSWER = ("trial_id", "rating", "left", "position", "rt_ms", "input", "blurs", "away_ms")
_NOT_RECORDED = ("", UNRATED, math.nan)  # the latter by identity


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
        known: facts that participant `number` tells with every request beside the answers, such as
            `device` and `questions`.
    """

    url: str
    participants: int
    at_once: int = 50
    pause: float = 0.0
    patience: float = 300.0
    table: str = "the participants'"
    known: Callable[[int], Mapping[str, Any]] = lambda _number: {}


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
    check_web_address(settings.url)
    with closing(Journal(journal, _identity_of_run(people, settings))) as copies:
        asyncio.run(_run(people, settings, copies, progress))
        numbers = range(1, settings.participants + 1)
        return tuple(answer for n in numbers for answer in copies.copy(n).acknowledged(people, n))


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
    slots, completed = asyncio.Semaphore(settings.at_once), 0

    async def answer_everything(number: int) -> None:
        nonlocal completed
        async with slots:
            await _answer_everything(http, people, settings, journal, number, questions)
        completed += 1
        progress(completed, settings.participants)

    # Proxies of the environment are for the web, not for a server of this machine
    async with httpx2.AsyncClient(
        base_url=settings.url.rstrip("/") + "/",
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
        timeout=_SECONDS_TO_CONNECT,
        trust_env=False,
    ) as http:
        # Before anybody joins, for who joins and cannot answer holds a slot
        questions = await _check_trials(http, people, settings)
        numbers = range(1, settings.participants + 1)
        # One after another: who joins at the same time as others may get any group
        for number in numbers:
            await _join(http, settings, journal, number)
        await asyncio.gather(*map(answer_everything, numbers))


async def _check_trials(
    http: httpx2.AsyncClient, people: ArtificialParticipants, settings: RunSettings
) -> list[Question]:
    """The questions of a study whose trials are the participants'."""
    study = await request_json(http, http.build_request("GET", "study.json"), settings.patience)
    expected = sorted((str(trial.group), trial.trial_id) for trial in people.trials)
    served = None
    with suppress(KeyError, TypeError, AttributeError):
        served = sorted((g, t["trial_id"]) for g, own in study["groups"].items() for t in own)
    if served != expected:
        raise InputError(
            f"The study at {settings.url} shows other trials than {settings.table}; name the table "
            "that it was exported from."
        )
    return [Question(**each) for each in study.get("questions", ())]


@dataclass
class LocalCopy:
    """Local copy of what the server said to one participant.

    Attributes:
        joined: name, secret, group and seed that the server gave; None before.
        saved: trials whose answers the server has acknowledged.
        completed: whether the server has said so.
    """

    joined: dict[str, Any] | None = None
    saved: set[str] = field(default_factory=set)
    completed: bool = False

    def answers(self, people: ArtificialParticipants, number: int) -> tuple[Response, ...]:
        """Everything that participant `number` answers, in the order of presentation."""
        if self.joined is None:
            return ()
        name, group, seed = (self.joined[each] for each in ("participant", "group", "seed"))
        return people.answers(number, name, group=int(group), place=1, seed=seed)

    def acknowledged(self, people: ArtificialParticipants, number: int) -> Iterator[Response]:
        """Those of the answers that the server has acknowledged."""
        return (r for r in self.answers(people, number) if r.trial_id in self.saved)


class Journal:
    """Copies of many participants in one file, a line for everything that happens.

    Args:
        path: read if it is there, so that an interrupted run goes on.
        run: what the answers depend on; stands in the first line.

    Raises:
        InputError: the file cannot be used, or holds what happened in another run.
    """

    def __init__(self, path: Path, run: Mapping[str, Any]) -> None:
        self.path = path
        self._copies: dict[int, LocalCopy] = {}
        try:
            lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
            complete = [line for line in lines if line.endswith("}")]  # a kill may cut the last one
            entries = [parse_json_object(line, path) for line in complete]
            events = [entry for entry in entries if "run" not in entry]
            for entry in events:
                self._note(**entry)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"Cannot use {path} as a journal of answers: {error}.") from error
        if events and entries[0].get("run") != run:
            raise InputError(
                f"{path} belongs to a run of another model, seed or server; delete it or name "
                "another --out."
            )
        # Anew and at once, without a line that a kill has cut
        write_text(path, "".join(json.dumps(e) + "\n" for e in [{"run": run}, *events]))
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def copy(self, number: int) -> LocalCopy:
        """Local copy of participant `number`."""
        return self._copies.setdefault(number, LocalCopy())

    def record(self, number: int, **event: Any) -> None:
        """Write down what happened to participant `number`."""
        self._file.write(json.dumps({"number": number, **event}) + "\n")
        self._note(number, **event)

    def _note(self, number: int, **event: Any) -> None:
        copy = self.copy(number)
        copy.joined = event.get("joined", copy.joined)
        copy.saved.update(event.get("saved", ()))
        copy.completed |= "code" in event

    def close(self) -> None:
        """Release the file."""
        self._file.close()


async def _join(
    http: httpx2.AsyncClient, settings: RunSettings, journal: Journal, number: int
) -> None:
    """Take part, or go on taking part.

    Raises:
        WorkerError: the server refuses, or is silent for too long; or the journal is of another
            database.
    """
    joined = journal.copy(number).joined
    address, remedy = "api/participants", ""
    body: dict[str, Any] = {"simulated": True, "nonce": f"{random.getrandbits(128):032x}"}
    body |= settings.known(number)
    if joined is not None:
        address, body = "api/resume", {name: joined[name] for name in ("participant", "secret")}
        remedy = (
            f" {journal.path} is of participants whom this server's database does not know; delete "
            "it or name another --out."
        )
    request = http.build_request("POST", address, json=body)
    reply = await request_json(http, request, settings.patience, remedy)
    names = ("participant", "secret", "group", "seed")
    saved = [answer["trial_id"] for answer in reply["answered"]]
    journal.record(number, joined={name: reply[name] for name in names}, saved=saved)


async def _answer_everything(
    http: httpx2.AsyncClient,
    people: ArtificialParticipants,
    settings: RunSettings,
    journal: Journal,
    number: int,
    questions: Sequence[Question],
) -> None:
    """Answer what is left, and complete.

    Raises:
        WorkerError: the server refuses, or is silent for too long.
    """
    copy, joined = journal.copy(number), journal.copy(number).joined
    if copy.completed or joined is None:
        return
    headers = {"Authorization": f"Bearer {joined['secret']}"}
    said = artificial_answers(questions, joined["participant"], number=number, seed=people.seed)
    known = {"questions": {each.question: each.answer for each in said}}
    known |= {**settings.known(number), "participant": joined["participant"]}

    async def post(address: str, **content: Any) -> dict[str, Any]:
        body = {**known, **content}
        request = http.build_request("POST", address, json=body, headers=headers)
        return await request_json(http, request, settings.patience)

    for response in copy.answers(people, number):
        if response.trial_id in copy.saved:
            continue
        given = {name: getattr(response, name) for name in _ANSWER}
        recorded = {name: cell for name, cell in given.items() if cell not in _NOT_RECORDED}
        reply = await post("api/responses", responses=[{"rating": None, **recorded}])
        journal.record(number, saved=reply["saved"])
        await asyncio.sleep(settings.pause)
    reply = await post("api/complete")
    journal.record(number, code=reply["code"])


async def request_json(
    http: httpx2.AsyncClient, request: httpx2.Request, patience: float, remedy: str = ""
) -> dict[str, Any]:
    """The JSON object that a server answers with, asked again while it or the network is gone.

    Raises:
        WorkerError: the server refuses (and what to do then), or is silent for so many seconds.
    """
    clock = asyncio.get_running_loop().time
    start, wait, trouble = clock(), _FIRST_WAIT, ""
    while clock() - start < patience:
        pause = wait * random.uniform(0.5, 1.5)  # not everybody at the same moment
        try:
            reply = await http.send(request)
            if reply.is_success:
                return dict(reply.json())
            trouble = _sentence(reply)
            if reply.status_code not in _AGAIN:
                raise WorkerError(f"The server refuses this: {trouble}{remedy}")
            pause = max(pause, float(reply.headers.get("Retry-After", 0)))
        except (httpx2.TransportError, ValueError) as error:
            trouble = str(error) or type(error).__name__
        await asyncio.sleep(pause)
        wait = min(_LONGEST_WAIT, 2 * wait)
    raise WorkerError(
        f"The server has not answered for {patience:g} s ({trouble}). Answers are kept here: run "
        "the same command again to go on."
    )


def _sentence(reply: httpx2.Response) -> str:
    try:
        return str(reply.json()["error"])
    except (ValueError, KeyError, TypeError):  # not our server's: a proxy may answer instead
        return f"status {reply.status_code}"
