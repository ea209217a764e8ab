"""What every address shares: bodies of limited size, and refusals as answers."""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import sqlite3
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from contstim.errors import StoreError
from contstim.experiments.collection import messages
from contstim.experiments.collection.messages import Refusal
from contstim.experiments.platforms.jspsych.library import LIBRARY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.exceptions import HTTPException

    from contstim.experiments.collection.limits import Limits

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


def answer(content: object, status: int = 200, wait: float | None = None) -> Response:
    """JSON that no browser or proxy keeps."""
    retry = {} if wait is None else {"Retry-After": str(math.ceil(wait))}
    return JSONResponse(content, status, headers=HEADERS | retry)


def guarded(
    respond: Callable[[Request], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    """The same, with refusals and a database that cannot be written turned into answers."""

    @functools.wraps(respond)
    async def safely(request: Request) -> Response:
        try:
            return await respond(request)
        except Refusal as refusal:
            return answer({"error": str(refusal), **refusal.facts}, refusal.status, refusal.wait)
        except ClientDisconnect:
            return Response(status_code=400)  # which nobody reads
        except (sqlite3.Error, StoreError) as error:
            _LOG.error("The database cannot be used: %s", error)
            reason = "is gone" if isinstance(error, StoreError) else "cannot be written"
            said = f"Answers cannot be saved now: the server's database {reason}. Try again."
            return answer({"error": said}, 503, 5)

    return safely


async def http_error(_request: Request, error: Exception) -> Response:
    """Errors of the library, such as a method that an address does not know."""
    known: HTTPException = error  # type: ignore[assignment]
    headers = HEADERS | dict(known.headers or {})
    return JSONResponse({"error": known.detail}, known.status_code, headers=headers)


async def content(request: Request, limits: Limits) -> dict[str, Any]:
    """The JSON object that a request holds.

    Raises:
        Refusal: the body is too large, too slow, no object, or not said to be JSON. Browsers let
            any page send text to any server, but JSON only to its own.
    """
    kind = request.headers.get("content-type", "").partition(";")[0]
    if kind.strip().lower() != "application/json":
        raise Refusal(415, "Content-Type must be application/json.")
    try:
        async with asyncio.timeout(limits.body_seconds):
            body = b""
            async for part in request.stream():
                body += part
                if len(body) > limits.body:
                    raise Refusal(413, f"A request may hold {limits.body} bytes.")
    except TimeoutError:
        raise Refusal(408, "The request took too long to arrive.") from None
    return messages.parse(body)


def bearer(request: Request) -> str:
    """The secret of the header Authorization; empty where there is none."""
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() if kind.lower() == "bearer" else ""


def address(request: Request) -> str:
    """Where a request comes from, as far as limits are concerned."""
    return request.client.host if request.client else ""
