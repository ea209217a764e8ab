"""The exported experiment on a server, and the functions that handle requests to its addresses."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import sqlite3
import time
from contextlib import suppress
from dataclasses import dataclass, field
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
from contstim.experiments.collection.database import Recorder, equal_secrets
from contstim.experiments.collection.requests import (
    JoinRequest,
    ParticipantRequest,
    RequestLimits,
    RequestRefusal,
    SaveRequest,
    address,
    bearer,
    check_fields,
    read_json,
    throttle,
)
from contstim.experiments.collection.tables import participants_csv, responses_csv
from contstim.experiments.platforms.jspsych.library import LIBRARY, cdn_address
from contstim.experiments.platforms.jspsych.study import PageStudy
from contstim.files.documents import read_json_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


_DOWNLOADS = ("responses.csv", "participants.csv")
_LOG = logging.getLogger(__name__)
# Scripts come from the folder, or from jsPsych's CDN. Frames are forbidden: another site must not
# show this page in a frame, because that site could cover parts of this page.
_POLICY = (
    f"default-src 'none'; script-src 'self' {' '.join(map(cdn_address, LIBRARY))}; "
    "style-src 'self'; img-src 'self' data:; font-src 'self'; media-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",  # for browsers that ignore frame-ancestors
    "Referrer-Policy": "no-referrer",  # web addresses contain participants' IDs
}


STUDY_FILE = "study.json"
_START = "index.html"

_TYPES = MimeTypes()
# Python's table of file types lacks some suffixes, and gives other suffixes a type that browsers
# refuse
_TYPES.types_map[True].update(
    {
        **dict.fromkeys((".js", ".mjs"), "text/javascript"),
        ".map": "application/json",
        ".md": "text/markdown",
        ".ico": "image/x-icon",
        ".woff2": "font/woff2",
    }
)


def read_study(folder: Path) -> PageStudy:
    """Read `study.json` of an exported folder.

    Raises:
        InputError: if the file is missing or is not a study; if its page does not save to a server;
            or if a trial occurs twice.
    """
    path = folder / STUDY_FILE
    if not path.is_file():
        raise InputError(
            f"{path} does not exist. Name a folder that `contstim export jspsych` wrote."
        )
    try:
        # Validated as JSON, because strict validation of a dictionary requires `Question` objects
        study = PageStudy.model_validate_json(json.dumps(read_json_object(path)))
    except ValidationError as error:
        location = ".".join(map(str, error.errors()[0]["loc"]))
        raise InputError(
            f"{path} is not the study of an exported experiment ({location}). Export it again."
        ) from error
    if study.save.get("to") != "server":
        raise InputError(
            f"The page of {path} saves to {study.save.get('to')}, not to a server. Export it again."
        )
    names = [trial.trial_id for trials in study.groups.values() for trial in trials]
    if len(set(names)) < len(names):
        raise InputError(f"{path} contains a trial twice. Export it again.")
    return study


def find_page(folder: Path, path: str) -> Path | None:
    """Return the file at an address; None if the file does not exist or is not public.

    Folders, names that begin with a dot, and files outside the folder (after following links) are
    not public.

    Args:
        folder: folder of the experiment, resolved.
        path: path relative to the server's root, without percent-encoding.
    """
    parts = (path.lstrip("/") or _START).split("/")
    try:
        file = folder.joinpath(*parts).resolve()  # follows links
        relative_parts = file.relative_to(folder).parts
        is_shown = file.is_file() and not any(map(_is_forbidden, (*parts, *relative_parts)))
    except (OSError, ValueError, RuntimeError):  # invalid name, outside the folder, or link loop
        return None
    return file if is_shown else None


def _is_forbidden(part: str) -> bool:
    # On Windows a backslash separates folders, and a colon names a drive or a hidden stream
    return not part or part.startswith(".") or any(sign in part for sign in "\0\\:")


@dataclass(eq=False, repr=False)  # a repr would contain the token
class Service:
    """Handlers of all requests to the server.

    Attributes:
        folder: folder of the exported experiment, resolved.
        study: content of study.json; read again if the file gets more groups.
        token: token of the administrator, for downloads.
        link_key: hexadecimal key that signs participants' addresses.
        options: options of the study. Their code and redirect override those of study.json.
        clock: function that returns seconds since 1970.
    """

    folder: Path
    study: PageStudy
    recorder: Recorder
    token: str
    link_key: str
    options: participants.StudyOptions
    limits: RequestLimits = field(default_factory=RequestLimits)
    clock: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        self._changed = _time_of(self.folder / STUDY_FILE)
        self._code = self.options.code or self.study.code
        self._redirect = self.options.redirect or self.study.redirect
        self._limit_joining = throttle(*self.limits.joining)
        self._limit_opening = throttle(*self.limits.joining)
        self._limit_asking = throttle(*self.limits.asking)
        self._limit_failing = throttle(*self.limits.failing)

    def application(self) -> Starlette:
        """Create the ASGI application."""
        return application_of(
            Route("/api/open", self.open, methods=["POST"]),
            Route("/api/participants", self.join, methods=["POST"]),
            Route("/api/resume", self.resume, methods=["POST"]),
            Route("/api/responses", self.save, methods=["POST"]),
            Route("/api/complete", self.complete, methods=["POST"]),
            *(Route(f"/admin/{name}", self.download) for name in _DOWNLOADS),
            Route("/{path:path}", self.file),
        )

    async def open(self, request: Request) -> Response:
        """Report, before consent, whether the applicant can take part."""
        application = await self._read_application(request, self._limit_opening)
        is_open = await self.recorder.run(participants.is_open, application)
        return json_response({"open": is_open})

    async def join(self, request: Request) -> Response:
        """Add a new participant, or resume a known one."""
        application = await self._read_application(request, self._limit_joining)
        joined = await self.recorder.run(participants.join, application)
        return self._participant_response(joined, status=201)

    async def resume(self, request: Request) -> Response:
        """Report a participant's stored answers."""
        body = check_fields(await read_json(request, self.limits), ParticipantRequest)
        now = self._admit(request, body)
        state = await self.recorder.run(participants.resume, body, now)
        return self._participant_response(state, status=200)

    async def save(self, request: Request) -> Response:
        """Store answers; they are on disk before the response is sent."""
        content = await read_json(request, self.limits)
        # The secret is checked first, so that errors do not describe valid requests to strangers
        now = self._admit(request, check_fields(content, ParticipantRequest))
        body = check_fields(content, SaveRequest)
        allowed = {*self.study.scale.answers, *([None] if self.study.deadline else [])}
        if not allowed.issuperset(answer.rating for answer in body.responses):
            raise RequestRefusal(422, f"Ratings are {self.study.scale.meaning}.")
        saved = await self.recorder.run(participants.save, self.study.trials, body, now)
        return json_response({"saved": saved})

    async def complete(self, request: Request) -> Response:
        """Return the completion code and the redirect if every answer is stored."""
        body = check_fields(await read_json(request, self.limits), ParticipantRequest)
        now = self._admit(request, body)
        await self.recorder.run(participants.complete, self.study.trials, body, now)
        code = self._code
        # A redirect leads to a recruiting platform, which cannot check individual codes
        if code is None and self._redirect is None:
            code = self.recorder.completion_code(body.participant)
        return json_response({"code": code, "redirect": self._redirect})

    async def download(self, request: Request) -> Response:
        """Return a table to clients with the administrator's token."""
        now = self.clock()
        token = request.query_params.get("token") or bearer(request)
        if not equal_secrets(token, self.token):
            self._limit_failing(address(request), now)
            raise RequestRefusal(401, "The administrator's token is missing or wrong.")
        self.recorder.check()  # a replaced file must not be read
        name = request.url.path.rpartition("/")[2]
        table = responses_csv
        if name == "participants.csv":
            since, plain = now - 60 * self.options.dropout, self.study.identities == "plain"
            table = partial(participants_csv, since=since, plain=plain)
        text = await asyncio.to_thread(table, self.recorder.path)
        disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text, media_type="text/csv", headers=HEADERS | disposition)

    async def file(self, request: Request) -> Response:
        """Return a file of the exported experiment."""
        file = await asyncio.to_thread(find_page, self.folder, request.path_params["path"])
        if file is None:
            raise RequestRefusal(404, "This address does not exist.")
        with suppress(OSError):  # a file was removed meanwhile
            # study.json may contain the completion code, so only its public fields are returned.
            # `samefile` also recognizes links to this file.
            if file.samefile(self.folder / STUDY_FILE):
                return json_response(self.study.public)
        # no-cache: browsers check each time whether a file has changed
        headers = HEADERS | {"Cache-Control": "no-cache"}
        kind = _TYPES.guess_type(file.name)[0] or "application/octet-stream"
        return FileResponse(file, media_type=kind, headers=headers)

    async def _read_further_groups(self) -> None:
        """Read study.json again if the file has changed, for example because groups were added."""
        path = self.folder / STUDY_FILE
        changed = _time_of(path)
        if changed == self._changed:
            return
        self._changed = changed
        try:
            study = await asyncio.to_thread(read_study, self.folder)
        except InputError as error:
            _LOG.warning("The changed study is not used: %s", error)
            return
        if not await asyncio.to_thread(study.extends, self.study.fingerprint):
            _LOG.warning("%s has other trials than at the start: restart the server.", path)
            return
        self.study = study

    async def _read_application(
        self, request: Request, limit: Callable[[str, float], None]
    ) -> participants.Application:
        now = self.clock()
        limit(address(request), now)
        body = check_fields(await read_json(request, self.limits), JoinRequest)
        try:
            identity = participants.identify(body, self.study.identify, self.link_key)
        except RequestRefusal:
            self._limit_failing(address(request), self.clock())
            raise
        await self._read_further_groups()
        return participants.Application(self.study.trials, body, self.options, now, *identity)

    def _admit(self, request: Request, body: ParticipantRequest) -> float:
        """Check the participant's secret and request rate, and return the current time."""
        now, secret = self.clock(), body.secret or bearer(request)
        # An unknown name also has a secret, which is derived from the name. So the response to a
        # wrong secret does not reveal whether the name exists.
        if not equal_secrets(self.recorder.participant_secret(body.participant), secret):
            self._limit_failing(address(request), now)
            raise RequestRefusal(403, "Participant and secret do not belong together.")
        self._limit_asking(body.participant, now)
        return now

    def _participant_response(self, state: Mapping[str, Any], *, status: int) -> Response:
        secret = self.recorder.participant_secret(state["participant"])
        return json_response({**state, "secret": secret}, status)


def application_of(*routes: Route) -> Starlette:
    """Create an ASGI application that responds to errors by `error_response`."""
    errors = (RequestRefusal, HTTPException, ClientDisconnect, sqlite3.Error, StoreError)
    return Starlette(routes=routes, exception_handlers=dict.fromkeys(errors, error_response))


def _time_of(path: Path) -> int:
    """Return the time at which a file was last changed, nanoseconds; 0 without a file."""
    try:
        return path.stat().st_mtime_ns
    except OSError:  # another program is replacing the file
        return 0


def json_response(content: object, status: int = 200, wait: float | None = None) -> Response:
    """Create a JSON response that browsers and proxies must not cache."""
    retry = {} if wait is None else {"Retry-After": str(math.ceil(wait))}
    return JSONResponse(content, status, headers=HEADERS | retry)


async def error_response(_request: Request, error: Exception) -> Response:
    """Create the response to a request that was refused or has failed."""
    match error:
        case RequestRefusal():
            content = {"error": str(error), **error.facts}
            return json_response(content, error.status, error.wait)
        case HTTPException():  # of starlette, such as an unsupported method
            headers = HEADERS | dict(error.headers or {})
            return JSONResponse({"error": error.detail}, error.status_code, headers=headers)
        case ClientDisconnect():
            return Response(status_code=400)  # required, although the client cannot receive it
    _LOG.error("The database cannot be used: %s", error)
    reason = "is missing" if isinstance(error, StoreError) else "cannot be written"
    sentence = f"Answers cannot be saved now: the database of the server {reason}. Try again."
    return json_response({"error": sentence}, 503, wait=5)
