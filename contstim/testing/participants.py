"""Artificial participants who take part in a study concurrently, over the server's protocol.

The participants test a study that `contstim collect` serves, from joining to the completion code.
If the server or the network fails, the participants repeat requests. A journal, a file on this
machine, stores the answers that the server has acknowledged.

    people = artificial_participants(trials, scores, "my model", seed=1)
    responses = take_part(people, RunSettings("http://127.0.0.1:8000", 20), Path("run.journal"))
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import random
from collections import defaultdict
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2

from contstim.errors import InputError, WorkerError
from contstim.experiments.design.artificial import ArtificialParticipants, artificial_answers
from contstim.experiments.platforms.jspsych.study import check_web_address
from contstim.experiments.responses.questionnaire import Question
from contstim.experiments.responses.table import UNRATED, Response
from contstim.files.documents import parse_json_object
from contstim.files.files import write_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path


_RETRY_STATUSES = (408, 429, 500, 502, 503, 504)
_FIRST_WAIT, _MAX_WAIT = 0.1, 2.0  # seconds
_SECONDS_TO_CONNECT = 10.0
_ANSWER = ("trial_id", "rating", "left", "position", "rt_ms", "input", "blurs", "away_ms")
_OMITTED_VALUES = ("", UNRATED, math.nan)  # `in` finds nan, because math.nan is a single object


@dataclass(frozen=True)
class RunSettings:
    """Settings of a run of artificial participants.

    Attributes:
        url: address of the study.
        participants: number of participants.
        at_once: maximum number of concurrent participants.
        pause: time between two answers of a participant, seconds.
        patience: maximum time for retries of a request, seconds.
        table: name of the table of trials, for messages.
        fields_of: function of a participant's number. It returns further fields of this
            participant's requests, such as `device` and `questions`.
    """

    url: str
    participants: int
    at_once: int = 50
    pause: float = 0.0
    patience: float = 300.0
    table: str = "the participants'"
    fields_of: Callable[[int], Mapping[str, Any]] = lambda _number: {}


def take_part(
    people: ArtificialParticipants,
    settings: RunSettings,
    journal: Path,
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> tuple[Response, ...]:
    """Let artificial participants join a study, answer every trial, and complete the study.

    The participants join one after another, so that each of them gets the same group in every run.
    Then they answer concurrently.

    The file `journal` stores the answers that the server has acknowledged. If the file exists, the
    interrupted run that wrote it is resumed. `progress` receives the completed and the total number
    of participants.

    Returns:
        The responses that the server has acknowledged.

    Raises:
        InputError: if the address is invalid; if the trials of the study differ from those of
            `people`; if the journal cannot be used; or if the journal belongs to another run.
        WorkerError: if the server refuses a request or does not respond.
    """
    check_web_address(settings.url)
    with closing(Journal(journal, _identity_of_run(people, settings))) as opened:
        asyncio.run(_take_part(people, settings, opened, progress))
        numbers = range(1, settings.participants + 1)
        return tuple(answer for n in numbers for answer in opened.acknowledged(people, n))


def _identity_of_run(people: ArtificialParticipants, settings: RunSettings) -> dict[str, Any]:
    """Return the settings that determine the answers."""
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


async def _take_part(
    people: ArtificialParticipants,
    settings: RunSettings,
    journal: Journal,
    progress: Callable[[int, int], None],
) -> None:
    slots, n_completed = asyncio.Semaphore(settings.at_once), 0

    async def answer_in_slot(number: int) -> None:
        nonlocal n_completed
        async with slots:
            await run.answer_everything(number, questions)
        n_completed += 1
        progress(n_completed, settings.participants)

    # trust_env=False: a proxy from the environment cannot reach a server on this machine
    async with httpx2.AsyncClient(
        base_url=settings.url.rstrip("/") + "/",
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
        timeout=_SECONDS_TO_CONNECT,
        trust_env=False,
    ) as http:
        run = _Run(http, people, settings, journal)
        # Check first, because a participant who joins occupies a place in the study
        questions = await run.check_trials()
        numbers = range(1, settings.participants + 1)
        for number in numbers:
            await run.join(number)
        await asyncio.gather(*map(answer_in_slot, numbers))


@dataclass(frozen=True)
class _Run:
    """A run of artificial participants, with a connection to the server."""

    http: httpx2.AsyncClient
    people: ArtificialParticipants
    settings: RunSettings
    journal: Journal

    async def check_trials(self) -> list[Question]:
        """Check that the study has the participants' trials, and return the study's questions."""
        study = await self._request("GET", "study.json")
        expected = sorted((str(trial.group), trial.trial_id) for trial in self.people.trials)
        served = None
        with suppress(KeyError, TypeError, AttributeError):
            served = sorted((g, t["trial_id"]) for g, rows in study["groups"].items() for t in rows)
        if served != expected:
            raise InputError(
                f"The study at {self.settings.url} shows other trials than {self.settings.table}. "
                "Name the table of trials from which the study was exported."
            )
        return [Question(**question) for question in study.get("questions", ())]

    async def join(self, number: int) -> None:
        """Let a participant join the study, or resume the study after an earlier join."""
        joined = self.journal.joined.get(number)
        address, remedy = "api/participants", ""
        body: dict[str, Any] = {"simulated": True, "nonce": f"{random.getrandbits(128):032x}"}
        body |= self.settings.fields_of(number)
        if joined is not None:
            address, body = "api/resume", {name: joined[name] for name in ("participant", "secret")}
            remedy = (
                f" {self.journal.path} contains participants that are not in the database of this "
                "server. Delete this file, or set another --out."
            )
        reply = await self._request("POST", address, remedy, json=body)
        names = ("participant", "secret", "group", "seed")
        saved = [answer["trial_id"] for answer in reply["answered"]]
        self.journal.record(number, joined={name: reply[name] for name in names}, saved=saved)

    async def answer_everything(self, number: int, questions: Sequence[Question]) -> None:
        """Answer the trials that have no acknowledged answer, and complete the study."""
        joined = self.journal.joined[number]
        if number in self.journal.completed:
            return
        headers = {"Authorization": f"Bearer {joined['secret']}"}
        name, seed = joined["participant"], self.people.seed
        entries = artificial_answers(questions, name, number=number, seed=seed)
        body = {"questions": {entry.question: entry.answer for entry in entries}}
        body |= {**self.settings.fields_of(number), "participant": name}
        for response in self.journal.answers(self.people, number):
            if response.trial_id in self.journal.saved[number]:
                continue
            cells = {name: getattr(response, name) for name in _ANSWER}
            recorded = {name: cell for name, cell in cells.items() if cell not in _OMITTED_VALUES}
            answer_body = {**body, "responses": [{"rating": None, **recorded}]}
            reply = await self._request("POST", "api/responses", json=answer_body, headers=headers)
            self.journal.record(number, saved=reply["saved"])
            await asyncio.sleep(self.settings.pause)
        reply = await self._request("POST", "api/complete", json=body, headers=headers)
        self.journal.record(number, code=reply["code"])

    async def _request(
        self, method: str, address: str, remedy: str = "", **content: Any
    ) -> dict[str, Any]:
        """Send a request, and return the JSON object of the response.

        If the server or the network fails, retry for `patience` seconds. If the server refuses the
        request, append `remedy` to the error message.

        Raises:
            WorkerError: if the server refuses the request, or does not respond within `patience`.
        """
        request = self.http.build_request(method, address, **content)
        clock, patience = asyncio.get_running_loop().time, self.settings.patience
        start, wait, problem = clock(), _FIRST_WAIT, ""
        while clock() - start < patience:
            pause = wait * random.uniform(0.5, 1.5)  # spread retries of participants over time
            try:
                reply = await self.http.send(request)
                if reply.is_success:
                    return dict(reply.json())
                problem = _error_message(reply)
                if reply.status_code not in _RETRY_STATUSES:
                    raise WorkerError(f"The server rejected the request: {problem}{remedy}")
                pause = max(pause, float(reply.headers.get("Retry-After", 0)))
            except (httpx2.TransportError, ValueError) as error:
                problem = str(error) or type(error).__name__
            await asyncio.sleep(pause)
            wait = min(_MAX_WAIT, 2 * wait)
        raise WorkerError(
            f"The server has not answered for {patience:g} s ({problem}). Acknowledged answers are "
            "saved on this machine: run the same command again to continue."
        )


class Journal:
    """File from which the states of all participants are restored when a run is resumed.

    The first line stores `run`, the settings that must not change before the run is resumed. Each
    other line is an event: a participant joined, the server acknowledged answers, or a participant
    completed the study.

    Attributes:
        joined: number of a participant who has joined → name, secret, group and seed from the
            server.
        saved: number of a participant → ids of the trials with acknowledged answers.
        completed: numbers of the participants whose completion the server has confirmed.

    Raises:
        InputError: if the file cannot be used, or belongs to another run.
    """

    def __init__(self, path: Path, run: Mapping[str, Any]) -> None:
        self.path = path
        self.joined: dict[int, dict[str, Any]] = {}
        self.saved: defaultdict[int, set[str]] = defaultdict(set)
        self.completed: set[int] = set()
        try:
            lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
            # A killed process may have truncated the last line
            complete = [line for line in lines if line.endswith("}")]
            entries = [parse_json_object(line, path) for line in complete]
            events = [entry for entry in entries if "run" not in entry]
            for event in events:
                self._apply(**event)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"Cannot use {path} as a journal of answers: {error}.") from error
        if events and entries[0].get("run") != run:
            raise InputError(
                f"{path} belongs to a run with other settings (model, noise, lapses, seed, server) "
                "or other trials. Delete this file, or set another --out."
            )
        write_text(path, "".join(json.dumps(e) + "\n" for e in [{"run": run}, *events]))
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def answers(self, people: ArtificialParticipants, number: int) -> tuple[Response, ...]:
        """Return the answers of participant `number` to all trials; none before joining."""
        if number not in self.joined:
            return ()
        name, group, seed = (self.joined[number][key] for key in ("participant", "group", "seed"))
        return people.answers(number, name, group=int(group), index=1, seed=seed)

    def acknowledged(self, people: ArtificialParticipants, number: int) -> Iterator[Response]:
        """Yield the acknowledged answers of participant `number`."""
        return (r for r in self.answers(people, number) if r.trial_id in self.saved[number])

    def record(self, number: int, **event: Any) -> None:
        """Append an event of participant `number`."""
        self._file.write(json.dumps({"number": number, **event}) + "\n")
        self._apply(number, **event)

    def _apply(self, number: int, **event: Any) -> None:
        if joined := event.get("joined"):
            self.joined[number] = joined
        self.saved[number].update(event.get("saved", ()))
        if "code" in event:
            self.completed.add(number)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _error_message(reply: httpx2.Response) -> str:
    try:
        return str(reply.json()["error"])
    except (ValueError, KeyError, TypeError):  # a proxy has responded, not the server
        return f"status {reply.status_code}"
