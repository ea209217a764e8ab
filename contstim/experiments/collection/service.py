"""Addresses, and what answers at each."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from contstim.experiments.collection import answers, exports, messages, people
from contstim.experiments.collection.answering import (
    HEADERS,
    address,
    answer,
    bearer,
    content,
    guarded,
    http_error,
)
from contstim.experiments.collection.keys import same
from contstim.experiments.collection.limits import Limits, Throttle
from contstim.experiments.collection.messages import Refusal
from contstim.experiments.collection.pages import find_page, is_same, page
from contstim.experiments.collection.study import STUDY_FILE

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Awaitable, Callable
    from pathlib import Path
    from typing import Any

    from starlette.requests import Request

    from contstim.experiments.collection.people import Person, Reception
    from contstim.experiments.collection.recorder import Recorder
    from contstim.experiments.collection.study import CollectedStudy


@dataclass(frozen=True)
class Offer:
    """What a server hands out.

    Attributes:
        folder: the exported experiment, resolved.
        study: what it asks.
        reception: who may take part.
        token: opens the downloads.
        code: handed out on completion; None: one for each participant, or none with a redirect.
        redirect: where the browser goes after completion, if anywhere.
        limits: how often and how much somebody may ask.
    """

    folder: Path
    study: CollectedStudy
    reception: Reception
    token: str
    code: str | None = None
    redirect: str | None = None
    limits: Limits = field(default_factory=Limits)


class Service:
    """What answers requests.

    Args:
        offer: what is handed out.
        recorder: where answers are kept.
        clock: seconds since 1970.
    """

    def __init__(
        self, offer: Offer, recorder: Recorder, clock: Callable[[], float] = time.time
    ) -> None:
        self._offer, self._recorder, self._clock = offer, recorder, clock
        self._joining = Throttle(offer.limits.joining)
        self._asking = Throttle(offer.limits.asking)
        self._failing = Throttle(offer.limits.failing)

    def application(self) -> Starlette:
        """The service as an ASGI application."""
        posts = {
            "/api/participants": self.join,
            "/api/resume": self.resume,
            "/api/responses": self.save,
            "/api/complete": self.complete,
        }
        downloads = {
            "/admin/responses.csv": exports.responses_csv,
            "/admin/participants.csv": exports.participants_csv,
        }
        return Starlette(
            routes=[
                *(Route(at, guarded(respond), methods=["POST"]) for at, respond in posts.items()),
                *(Route(at, guarded(self._download(table))) for at, table in downloads.items()),
                Route("/{path:path}", guarded(self.file)),
            ],
            exception_handlers={HTTPException: http_error},
        )

    async def join(self, request: Request) -> Response:
        """Take a new participant in, or recognise one."""
        now = self._clock()
        self._joining.take(address(request), now)
        asked = await content(request, self._offer.limits)
        group, identity = messages.group(asked), messages.identity(asked)
        simulated = messages.simulated(asked)
        reception = self._offer.reception

        def work(connection: sqlite3.Connection) -> tuple[Person, list[dict[str, Any]]]:
            person = reception.join(connection, group, identity, now, simulated=simulated)
            return person, people.answered(connection, person)

        return self._welcome(*await self._recorder.run(work), status=201)

    async def resume(self, request: Request) -> Response:
        """Tell a participant what the server holds."""
        asked = await content(request, self._offer.limits)
        participant = messages.text(asked, "participant")
        now = self._admit(request, participant, messages.text(asked, "secret"))

        def work(connection: sqlite3.Connection) -> tuple[Person, list[dict[str, Any]]]:
            person = people.find(connection, participant)
            people.touch(connection, person, now)
            return person, people.answered(connection, person)

        return self._welcome(*await self._recorder.run(work), status=200)

    async def save(self, request: Request) -> Response:
        """Keep answers."""
        asked = await content(request, self._offer.limits)
        participant = messages.text(asked, "participant")
        now = self._admit(request, participant, bearer(request))
        rated, trials = messages.ratings(asked), self._offer.study.trials
        return answer(
            {
                "saved": await self._recorder.run(
                    lambda connection: answers.save(connection, trials, participant, rated, now)
                )
            }
        )

    async def complete(self, request: Request) -> Response:
        """Hand out the completion code, if every answer is kept."""
        asked = await content(request, self._offer.limits)
        participant = messages.text(asked, "participant")
        now = self._admit(request, participant, bearer(request))
        trials = self._offer.study.trials
        await self._recorder.run(
            lambda connection: answers.complete(connection, trials, participant, now)
        )
        code, redirect = self._offer.code, self._offer.redirect
        if code is None and redirect is None:  # a platform would not know a code of ours
            code = self._recorder.keys.completion_code(participant)
        return answer({"code": code, "redirect": redirect})

    async def file(self, request: Request) -> Response:
        """A file of the exported experiment."""
        path = request.path_params["path"]
        found = await asyncio.to_thread(find_page, self._offer.folder, path)
        if found is None:
            raise Refusal(404, "There is nothing at this address.")
        if is_same(found, self._offer.folder / STUDY_FILE):
            return Response(
                self._offer.study.public, media_type="application/json", headers=HEADERS
            )
        return page(found)

    def _download(
        self, table: Callable[[exports.Held], str]
    ) -> Callable[[Request], Awaitable[Response]]:
        """What answers with a table, to whoever has the token."""

        async def respond(request: Request) -> Response:
            given = request.query_params.get("token") or bearer(request)
            now = self._clock()
            if not same(given, self._offer.token):
                self._failing.take(address(request), now)
                raise Refusal(401, "The administrator's token is missing or wrong.")
            since = now - self._offer.reception.patience
            held = exports.Held(self._recorder.path, since)
            self._recorder.check()
            text = await asyncio.to_thread(table, held)
            name = request.url.path.rpartition("/")[2]
            disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
            return Response(text, media_type="text/csv", headers=HEADERS | disposition)

        return respond

    def _admit(self, request: Request, participant: str, secret: str) -> float:
        """Now, if the secret is the participant's and they do not ask too often."""
        now = self._clock()
        if not self._recorder.keys.opens(participant, secret):
            self._failing.take(address(request), now)
            raise Refusal(403, "Participant and secret do not belong together.")
        self._asking.take(participant, now)
        return now

    def _welcome(self, person: Person, answered: list[dict[str, Any]], *, status: int) -> Response:
        secret = self._recorder.keys.participant_secret(person.participant)
        return answer(
            {
                "participant": person.participant,
                "secret": secret,
                "group": person.group,
                "seed": person.seed,
                "answered": answered,
            },
            status,
        )
