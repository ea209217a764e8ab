"""The addresses of the server, and what answers at each."""

from __future__ import annotations

import asyncio
import logging
import math
import sqlite3
import time
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from contstim.errors import StoreError
from contstim.experiments.collection import participants
from contstim.experiments.collection.database import equal_secrets
from contstim.experiments.collection.experiment import find_page, is_study, media_type
from contstim.experiments.collection.requests import (
    JoinRequest,
    ParticipantRequest,
    RequestRefusal,
    ResumeRequest,
    SaveRequest,
    Throttle,
    address,
    bearer,
    check_fields,
    read_json,
)
from contstim.experiments.collection.tables import participants_csv, responses_csv
from contstim.experiments.platforms.jspsych.library import LIBRARY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from contstim.experiments.collection.database import Recorder
    from contstim.experiments.collection.experiment import CollectedStudy
    from contstim.experiments.collection.participants import Participant, StudyOptions
    from contstim.experiments.collection.requests import RequestLimits

_DOWNLOADS = ("responses.csv", "participants.csv")
_TOLD = ("participant", "group", "seed", "answered")  # to a participant's browser
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


class Service:
    """Service that answers requests.

    Args:
        folder: the exported experiment, resolved.
        study: what it asks.
        recorder: where answers are kept.
        token: opens the downloads.
        options: what the study decides; a code and a redirect go before those of the folder.
        limits: how large and how frequent requests may be.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        folder: Path,
        study: CollectedStudy,
        recorder: Recorder,
        token: str,
        *,
        options: StudyOptions,
        limits: RequestLimits,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder, self._study, self._recorder = folder, study, recorder
        self._token, self._options, self._limits, self._clock = token, options, limits, clock
        self._code = options.code or study.code
        self._redirect = options.redirect or study.redirect
        self._joining = Throttle(limits.joining)
        self._asking = Throttle(limits.asking)
        self._failing = Throttle(limits.failing)

    def application(self) -> Starlette:
        """The service as an ASGI application."""
        refused = (RequestRefusal, HTTPException, ClientDisconnect, sqlite3.Error, StoreError)
        return Starlette(
            routes=[
                Route("/api/participants", self.join, methods=["POST"]),
                Route("/api/resume", self.resume, methods=["POST"]),
                Route("/api/responses", self.save, methods=["POST"]),
                Route("/api/complete", self.complete, methods=["POST"]),
                *(Route(f"/admin/{name}", self.download) for name in _DOWNLOADS),
                Route("/{path:path}", self.file),
            ],
            exception_handlers=dict.fromkeys(refused, error_response),
        )

    async def join(self, request: Request) -> Response:
        """Take a new participant in, or recognise an earlier one."""
        now = self._clock()
        self._joining.take(address(request), now)
        asked = check_fields(await read_json(request, self._limits), JoinRequest)
        trials, options = self._study.trials, self._options
        joined = await self._recorder.run(
            lambda connection: participants.join(connection, trials, asked, options, now)
        )
        return self._welcome(joined, status=201)

    async def resume(self, request: Request) -> Response:
        """Tell a participant which answers the server holds."""
        asked = check_fields(await read_json(request, self._limits), ResumeRequest)
        now = self._admit(request, asked.participant, asked.secret)
        found = await self._recorder.run(
            lambda connection: participants.resume(connection, asked.participant, now)
        )
        return self._welcome(found, status=200)

    async def save(self, request: Request) -> Response:
        """Keep answers; they are on disk when this returns."""
        content = await read_json(request, self._limits)
        name = check_fields(content, ParticipantRequest).participant
        now = self._admit(request, name)  # before anything else is told about the request
        answers = check_fields(content, SaveRequest).responses
        trials = self._study.trials
        saved = await self._recorder.run(
            lambda connection: participants.save(connection, trials, name, answers, now)
        )
        return json_response({"saved": saved})

    async def complete(self, request: Request) -> Response:
        """Hand out the completion code, if every answer is kept."""
        content = await read_json(request, self._limits)
        name = check_fields(content, ParticipantRequest).participant
        now, trials = self._admit(request, name), self._study.trials
        await self._recorder.run(
            lambda connection: participants.complete(connection, trials, name, now)
        )
        code = self._code
        if code is None and self._redirect is None:  # a platform would not know a code of ours
            code = self._recorder.keys.completion_code(name)
        return json_response({"code": code, "redirect": self._redirect})

    async def download(self, request: Request) -> Response:
        """A table, to whoever has the administrator's token."""
        now = self._clock()
        token = request.query_params.get("token") or bearer(request)
        if not equal_secrets(token, self._token):
            self._failing.take(address(request), now)
            raise RequestRefusal(401, "The administrator's token is missing or wrong.")
        self._recorder.check()  # or an old file would be read in its place
        name = request.url.path.rpartition("/")[2]
        if name == "responses.csv":
            text = await asyncio.to_thread(responses_csv, self._recorder.path)
        else:
            since = now - self._options.patience
            text = await asyncio.to_thread(participants_csv, self._recorder.path, since)
        disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text, media_type="text/csv", headers=HEADERS | disposition)

    async def file(self, request: Request) -> Response:
        """A file of the exported experiment."""
        file = await asyncio.to_thread(find_page, self._folder, request.path_params["path"])
        if file is None:
            raise RequestRefusal(404, "There is nothing at this address.")
        if is_study(file, self._folder):
            content = self._study.public
            return Response(content, media_type="application/json", headers=HEADERS)
        # Browsers ask each time whether a file has changed
        headers = HEADERS | {"Cache-Control": "no-cache"}
        return FileResponse(file, media_type=media_type(file), headers=headers)

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

    def _welcome(self, participant: Participant, *, status: int) -> Response:
        secret = self._recorder.keys.participant_secret(participant.participant)
        told = {name: getattr(participant, name) for name in _TOLD}
        return json_response(told | {"secret": secret}, status)


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
