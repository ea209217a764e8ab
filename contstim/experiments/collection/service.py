"""The addresses of the server, and what answers at each."""

from __future__ import annotations

import asyncio
import logging
import math
import sqlite3
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from contstim.errors import StoreError
from contstim.experiments.collection import participants
from contstim.experiments.collection.exports import Snapshot, participants_csv, responses_csv
from contstim.experiments.collection.keys import equal_secrets
from contstim.experiments.collection.limits import RequestLimits, Throttle
from contstim.experiments.collection.pages import find_page, is_same, media_type
from contstim.experiments.collection.requests import (
    JoinRequest,
    ParticipantRequest,
    RequestRefusal,
    ResumeRequest,
    SaveRequest,
    address,
    bearer,
    check_fields,
    read_json,
)
from contstim.experiments.collection.study import STUDY_FILE
from contstim.experiments.platforms.jspsych.library import LIBRARY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from contstim.experiments.collection.participants import AdmissionPolicy, Participant
    from contstim.experiments.collection.recorder import Recorder
    from contstim.experiments.collection.study import CollectedStudy

_LOG = logging.getLogger(__name__)
_POLICY = "; ".join(
    (
        "default-src 'none'",
        # the folder's own, and jsPsych's files where they are not in the folder
        f"script-src 'self' {' '.join(file.address for file in LIBRARY)}",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "media-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",  # nobody lays another page over consent and answers
    )
)
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",  # for browsers that do not know frame-ancestors
    "Referrer-Policy": "no-referrer",  # addresses carry platforms' identities
}


@dataclass(frozen=True)
class ServerConfig:
    """Settings of a server: what it hands out, and to whom.

    Attributes:
        folder: the exported experiment, resolved.
        study: what it asks.
        admission: who may take part.
        token: opens the downloads.
        code: handed out on completion; None: one for each participant, or none with a redirect.
        redirect: where the browser goes after completion, if anywhere.
        limits: how large and how frequent requests may be.
    """

    folder: Path
    study: CollectedStudy
    admission: AdmissionPolicy
    token: str
    code: str | None = None
    redirect: str | None = None
    limits: RequestLimits = field(default_factory=RequestLimits)


class Service:
    """Service that answers requests.

    Args:
        config: what is handed out.
        recorder: where answers are kept.
        clock: seconds since 1970.
    """

    def __init__(
        self, config: ServerConfig, recorder: Recorder, clock: Callable[[], float] = time.time
    ) -> None:
        self._config, self._recorder, self._clock = config, recorder, clock
        self._joining = Throttle(config.limits.joining)
        self._asking = Throttle(config.limits.asking)
        self._failing = Throttle(config.limits.failing)

    def application(self) -> Starlette:
        """The service as an ASGI application."""
        refused = (RequestRefusal, HTTPException, ClientDisconnect, sqlite3.Error, StoreError)
        return Starlette(
            routes=[
                Route("/api/participants", self.join, methods=["POST"]),
                Route("/api/resume", self.resume, methods=["POST"]),
                Route("/api/responses", self.save, methods=["POST"]),
                Route("/api/complete", self.complete, methods=["POST"]),
                Route("/admin/responses.csv", self.download_responses),
                Route("/admin/participants.csv", self.download_participants),
                Route("/{path:path}", self.file),
            ],
            exception_handlers=dict.fromkeys(refused, error_response),
        )

    async def join(self, request: Request) -> Response:
        """Take a new participant in, or recognise an earlier one."""
        now = self._clock()
        self._joining.take(address(request), now)
        asked = check_fields(await read_json(request, self._config.limits), JoinRequest)
        admission, simulated = self._config.admission, bool(asked.simulated)

        def work(connection: sqlite3.Connection) -> tuple[Participant, list[dict[str, Any]]]:
            participant = admission.join(
                connection, asked.group, asked.platform, now, simulated=simulated
            )
            return participant, participants.saved_answers(connection, participant)

        return self._welcome(*await self._recorder.run(work), status=201)

    async def resume(self, request: Request) -> Response:
        """Tell a participant which answers the server holds."""
        asked = check_fields(await read_json(request, self._config.limits), ResumeRequest)
        now = self._admit(request, asked.participant, asked.secret)

        def work(connection: sqlite3.Connection) -> tuple[Participant, list[dict[str, Any]]]:
            participant = participants.find(connection, asked.participant)
            participants.touch(connection, participant, now)
            return participant, participants.saved_answers(connection, participant)

        return self._welcome(*await self._recorder.run(work), status=200)

    async def save(self, request: Request) -> Response:
        """Keep answers; they are on disk when this returns."""
        content = await read_json(request, self._config.limits)
        name = check_fields(content, ParticipantRequest).participant
        now = self._admit(request, name)  # before anything else is told about the request
        answers = check_fields(content, SaveRequest).responses
        trials = self._config.study.trials
        saved = await self._recorder.run(
            lambda connection: participants.save(connection, trials, name, answers, now)
        )
        return json_response({"saved": saved})

    async def complete(self, request: Request) -> Response:
        """Hand out the completion code, if every answer is kept."""
        content = await read_json(request, self._config.limits)
        name = check_fields(content, ParticipantRequest).participant
        now, trials = self._admit(request, name), self._config.study.trials
        await self._recorder.run(
            lambda connection: participants.complete(connection, trials, name, now)
        )
        code, redirect = self._config.code, self._config.redirect
        if code is None and redirect is None:  # a platform would not know a code of ours
            code = self._recorder.keys.completion_code(name)
        return json_response({"code": code, "redirect": redirect})

    async def download_responses(self, request: Request) -> Response:
        """The table of answers, as a download."""
        return await self._download(request, "responses.csv", responses_csv)

    async def download_participants(self, request: Request) -> Response:
        """The table of everybody who joined, as a download."""
        return await self._download(request, "participants.csv", participants_csv)

    async def file(self, request: Request) -> Response:
        """A file of the exported experiment."""
        folder = self._config.folder
        file = await asyncio.to_thread(find_page, folder, request.path_params["path"])
        if file is None:
            raise RequestRefusal(404, "There is nothing at this address.")
        if is_same(file, folder / STUDY_FILE):  # whatever it is called: it may hold the code
            content = self._config.study.public
            return Response(content, media_type="application/json", headers=HEADERS)
        # Browsers ask each time whether a file has changed
        headers = HEADERS | {"Cache-Control": "no-cache"}
        return FileResponse(file, media_type=media_type(file), headers=headers)

    async def _download(
        self, request: Request, name: str, table: Callable[[Snapshot], str]
    ) -> Response:
        """A table, to whoever has the administrator's token."""
        now = self._clock()
        token = request.query_params.get("token") or bearer(request)
        if not equal_secrets(token, self._config.token):
            self._failing.take(address(request), now)
            raise RequestRefusal(401, "The administrator's token is missing or wrong.")
        self._recorder.check()  # or an old file would be read in its place
        snapshot = Snapshot(self._recorder.path, now - self._config.admission.patience)
        text = await asyncio.to_thread(table, snapshot)
        disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text, media_type="text/csv", headers=HEADERS | disposition)

    def _admit(self, request: Request, participant: str, secret: str | None = None) -> float:
        """Now, if the secret is the participant's and they do not ask too often.

        Args:
            request: what is asked.
            participant: who says to ask.
            secret: by default that of the header.
        """
        now = self._clock()
        # The secret follows from the name, so this asks no database and tells nobody who exists
        if not self._recorder.keys.opens(participant, secret or bearer(request)):
            self._failing.take(address(request), now)
            raise RequestRefusal(403, "Participant and secret do not belong together.")
        self._asking.take(participant, now)
        return now

    def _welcome(
        self, participant: Participant, answered: list[dict[str, Any]], *, status: int
    ) -> Response:
        secret = self._recorder.keys.participant_secret(participant.participant)
        return json_response(
            {
                "participant": participant.participant,
                "secret": secret,
                "group": participant.group,
                "seed": participant.seed,
                "answered": answered,
            },
            status,
        )


def json_response(content: object, status: int = 200, wait: float | None = None) -> Response:
    """JSON that no browser or proxy keeps."""
    retry = {} if wait is None else {"Retry-After": str(math.ceil(wait))}
    return JSONResponse(content, status, headers=HEADERS | retry)


async def error_response(_request: Request, error: Exception) -> Response:
    """Response to a request that is refused or cannot be answered now."""
    match error:
        case RequestRefusal():
            content = {"error": str(error), **error.facts}
            return json_response(content, error.status, error.wait)
        case HTTPException():  # of the library, such as a method that an address does not know
            headers = HEADERS | dict(error.headers or {})
            return JSONResponse({"error": error.detail}, error.status_code, headers=headers)
        case ClientDisconnect():
            return Response(status_code=400)  # which nobody reads
    _LOG.error("The database cannot be used: %s", error)
    reason = "is gone" if isinstance(error, StoreError) else "cannot be written"
    sentence = f"Answers cannot be saved now: the server's database {reason}. Try again."
    return json_response({"error": sentence}, 503, wait=5)
