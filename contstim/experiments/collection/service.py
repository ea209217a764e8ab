"""The exported experiment that a server hands out, its addresses, and what answers at each."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import sqlite3
import time
from functools import partial
from mimetypes import MimeTypes
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from contstim.errors import InputError, StoreError
from contstim.experiments.collection import participants
from contstim.experiments.collection.database import equal_secrets
from contstim.experiments.collection.requests import (
    JoinRequest,
    ParticipantRequest,
    RequestRefusal,
    SaveRequest,
    Throttle,
    address,
    bearer,
    check_fields,
    read_json,
)
from contstim.experiments.collection.tables import participants_csv, responses_csv
from contstim.experiments.platforms.jspsych.library import LIBRARY, cdn_address
from contstim.experiments.platforms.jspsych.study import PageStudy
from contstim.files.documents import read_json_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from contstim.experiments.collection.database import Recorder
    from contstim.experiments.collection.participants import Applicant, StudyOptions
    from contstim.experiments.collection.requests import RequestLimits

_DOWNLOADS = ("responses.csv", "participants.csv")
_LOG = logging.getLogger(__name__)
# Scripts are the folder's own, and jsPsych's files where they are not in the folder; nobody may lay
# another page over consent and answers
_POLICY = (
    f"default-src 'none'; script-src 'self' {' '.join(map(cdn_address, LIBRARY))}; "
    "style-src 'self'; img-src 'self' data:; font-src 'self'; media-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",  # for browsers that do not know frame-ancestors
    "Referrer-Policy": "no-referrer",  # addresses carry platforms' identities
}


STUDY_FILE = "study.json"
_START = "index.html"

_KNOWN = MimeTypes()  # Python's own table
# What it may lack, or know as something that browsers refuse to run
_TYPES = {
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".map": "application/json",
    ".md": "text/markdown",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}


def read_study(folder: Path) -> PageStudy:
    """Read `study.json` of an exported folder.

    Raises:
        InputError: there is no such file, it is not a study, its page saves elsewhere, or a trial
            is in two groups.
    """
    path = folder / STUDY_FILE
    if not path.is_file():
        raise InputError(f"There is no {path}. Name a folder that `contstim export jspsych` wrote.")
    try:
        # In strict Python a question would have to be one already
        study = PageStudy.model_validate_json(json.dumps(read_json_object(path)))
    except ValidationError as error:
        wrong = ".".join(map(str, error.errors()[0]["loc"]))
        raise InputError(
            f"{path} is not the study of an exported experiment ({wrong}): export it again."
        ) from error
    if study.save.get("to") != "server":
        raise InputError(
            f"The page of {path} saves to {study.save.get('to')}, not to a server: export it again."
        )
    names = [trial.trial_id for trials in study.groups.values() for trial in trials]
    if len(set(names)) < len(names):
        raise InputError(f"{path} has a trial in two groups.")
    return study


def find_page(folder: Path, path: str) -> Path | None:
    """The file that an address means; None where there is none, or none to be shown.

    Not shown are folders, names that begin with a dot, and whatever lies outside the folder once
    links are followed.

    Args:
        folder: resolved.
        path: decoded, relative to the server's root.
    """
    parts = (path.lstrip("/") or _START).split("/")
    try:
        file = folder.joinpath(*parts).resolve()  # where links lead
        inside = file.relative_to(folder).parts
        is_shown = file.is_file() and not any(map(_forbidden, (*parts, *inside)))
    except (OSError, ValueError, RuntimeError):  # not a name, or outside; links in a circle
        return None
    return file if is_shown else None


def is_study(file: Path, folder: Path) -> bool:
    """True if a file is a folder's study.json, whatever it is called: it may hold the code."""
    try:
        return file.samefile(folder / STUDY_FILE)
    except OSError:  # one is gone meanwhile
        return False


def media_type(file: Path) -> str:
    """Media type of a file, for browsers."""
    ending = file.suffix.lower()
    return _TYPES.get(ending) or _KNOWN.guess_type(file.name)[0] or "application/octet-stream"


def _forbidden(part: str) -> bool:
    # On Windows a backslash divides folders, and a colon names a drive or a hidden stream
    return not part or part.startswith(".") or any(sign in part for sign in "\0\\:")


class Service:
    """Service that answers requests.

    Args:
        folder: the exported experiment, resolved.
        study: what it asks.
        recorder: where answers are kept.
        token: opens the downloads.
        link_key: signs the addresses of participants, hexadecimal.
        options: what the study decides; a code and a redirect go before those of the folder.
        limits: how large and how frequent requests may be.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        folder: Path,
        study: PageStudy,
        recorder: Recorder,
        token: str,
        link_key: str,
        *,
        options: StudyOptions,
        limits: RequestLimits,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder, self._study, self._recorder = folder, study, recorder
        self._token, self._options, self._limits, self._clock = token, options, limits, clock
        self._link_key = link_key
        self._code = options.code or study.code
        self._redirect = options.redirect or study.redirect
        self._joining, self._opening = Throttle(*limits.joining), Throttle(*limits.joining)
        self._asking = Throttle(*limits.asking)
        self._failing = Throttle(*limits.failing)

    def application(self) -> Starlette:
        """The service as an ASGI application."""
        refused = (RequestRefusal, HTTPException, ClientDisconnect, sqlite3.Error, StoreError)
        return Starlette(
            routes=[
                Route("/api/open", self.open, methods=["POST"]),
                Route("/api/participants", self.join, methods=["POST"]),
                Route("/api/resume", self.resume, methods=["POST"]),
                Route("/api/responses", self.save, methods=["POST"]),
                Route("/api/complete", self.complete, methods=["POST"]),
                *(Route(f"/admin/{name}", self.download) for name in _DOWNLOADS),
                Route("/{path:path}", self.file),
            ],
            exception_handlers=dict.fromkeys(refused, error_response),
        )

    async def open(self, request: Request) -> Response:
        """Say before consent whether somebody can take part."""
        self._opening.take(address(request), self._clock())
        asked, applicant = await self._joining_request(request)
        is_open = await self._recorder.run(participants.is_open, asked, applicant, self._options)
        return json_response({"open": is_open})

    async def join(self, request: Request) -> Response:
        """Take a new participant in, or recognise an earlier one."""
        now = self._clock()
        self._joining.take(address(request), now)
        asked, applicant = await self._joining_request(request)
        joined = await self._recorder.run(
            participants.join, self._study.trials, asked, applicant, self._options, now
        )
        return self._welcome(joined, status=201)

    async def resume(self, request: Request) -> Response:
        """Tell a participant which answers the server holds."""
        asked = check_fields(await read_json(request, self._limits), ParticipantRequest)
        now = self._admit(request, asked)
        found = await self._recorder.run(participants.resume, asked, now)
        return self._welcome(found, status=200)

    async def save(self, request: Request) -> Response:
        """Keep answers; they are on disk when this returns."""
        content = await read_json(request, self._limits)
        # Before anything else is told about the request
        now = self._admit(request, check_fields(content, ParticipantRequest))
        asked = check_fields(content, SaveRequest)
        allowed = {*self._study.scale.answers, *([None] if self._study.deadline else [])}
        if not allowed.issuperset(answer.rating for answer in asked.responses):
            raise RequestRefusal(422, f"Ratings are {self._study.scale.meaning}.")
        saved = await self._recorder.run(participants.save, self._study.trials, asked, now)
        return json_response({"saved": saved})

    async def complete(self, request: Request) -> Response:
        """Hand out the completion code, if every answer is kept."""
        asked = check_fields(await read_json(request, self._limits), ParticipantRequest)
        now = self._admit(request, asked)
        await self._recorder.run(participants.complete, self._study.trials, asked, now)
        code = self._code
        if code is None and self._redirect is None:  # a platform would not know a code of ours
            code = self._recorder.completion_code(asked.participant)
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
        table = responses_csv
        if name == "participants.csv":
            since, plain = now - 60 * self._options.dropout, self._study.identities == "plain"
            table = partial(participants_csv, since=since, plain=plain)
        text = await asyncio.to_thread(table, self._recorder.path)
        disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text, media_type="text/csv", headers=HEADERS | disposition)

    async def file(self, request: Request) -> Response:
        """A file of the exported experiment."""
        file = await asyncio.to_thread(find_page, self._folder, request.path_params["path"])
        if file is None:
            raise RequestRefusal(404, "There is nothing at this address.")
        if is_study(file, self._folder):
            return json_response(self._study.public)
        # Browsers ask each time whether a file has changed
        headers = HEADERS | {"Cache-Control": "no-cache"}
        return FileResponse(file, media_type=media_type(file), headers=headers)

    async def _joining_request(self, request: Request) -> tuple[JoinRequest, Applicant]:
        """A request to take part, and the identity in it."""
        asked = check_fields(await read_json(request, self._limits), JoinRequest)
        try:
            return asked, participants.identify(asked, self._study.identify, self._link_key)
        except RequestRefusal:
            self._failing.take(address(request), self._clock())
            raise

    def _admit(self, request: Request, asked: ParticipantRequest) -> float:
        """Now, if the secret is the participant's and they do not ask too often."""
        now, secret = self._clock(), asked.secret or bearer(request)
        # The secret follows from the name, so this asks no database and tells nobody who exists
        if not equal_secrets(self._recorder.participant_secret(asked.participant), secret):
            self._failing.take(address(request), now)
            raise RequestRefusal(403, "Participant and secret do not belong together.")
        self._asking.take(asked.participant, now)
        return now

    def _welcome(self, told: Mapping[str, Any], *, status: int) -> Response:
        secret = self._recorder.participant_secret(told["participant"])
        return json_response({**told, "secret": secret}, status)


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
