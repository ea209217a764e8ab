"""Limits of connections: how many may be open, and how long each may be idle or slow.

uvicorn's own limits begin with a request whose headers are complete. A client that opens
connections without sending complete headers would block them forever, until no other client can
connect.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

_ENOUGH_FILES = 65_536  # some systems have no limit, and some libraries loop over all numbers
_SERVER_FILES = 64  # database, log, program, and files that are read occasionally
_MOST_CONNECTIONS, _FEWEST_CONNECTIONS = 4_096, 16
_LAST_SECONDS = 1.0  # for requests that are still arriving when the server is stopped
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\n"
    b"Content-Length: 0\r\n\r\n"
)


@dataclass
class Connections:
    """The open connections of a server; those that wait for a request are marked.

    If there are too many, the connection that has waited longest is closed for a new one. So idle
    connections cannot block new clients.

    Attributes:
        limit: maximum number of open connections.
        headers: seconds from opening a connection, or from the first byte of a further request, to
            the end of its headers.
        idle: seconds between a response and the next request; longer than most people look at a
            pair of sentences.
        request: seconds from a request to the end of its response.
    """

    limit: int
    headers: float = 20.0
    idle: float = 75.0
    request: float = 300.0
    # Whether each is processing a request; waiting ones are in the order in which they began to
    _is_busy: dict[LimitedProtocol, bool] = field(default_factory=dict, init=False)

    def enter(self, newcomer: LimitedProtocol) -> bool:
        """Accept a connection, unless all others are processing requests."""
        if len(self._is_busy) >= self.limit:
            longest = next(
                (connection for connection, busy in self._is_busy.items() if not busy), None
            )
            if longest is None:
                return False
            self.leave(longest)
            longest.drop()
        self.wait(newcomer)
        return True

    def wait(self, connection: LimitedProtocol) -> None:
        """Record that a connection has no request to process."""
        self.leave(connection)
        self._is_busy[connection] = False

    def serve(self, connection: LimitedProtocol) -> None:
        """Record that a connection is processing a request."""
        self._is_busy[connection] = True

    def leave(self, connection: LimitedProtocol) -> None:
        """Remove a connection."""
        self._is_busy.pop(connection, None)


def raise_open_files() -> int:
    """Raise this process's limit of open files as far as possible, and return it."""
    if sys.platform == "win32":
        return _ENOUGH_FILES  # sockets are not counted there
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    target = _ENOUGH_FILES if hard == unlimited else min(hard, _ENOUGH_FILES)
    if soft != unlimited and soft < target:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
        except (ValueError, OSError):  # the kernel may have a limit below the reported one
            target = soft
        soft = target
    return _ENOUGH_FILES if soft == unlimited else soft


def most_connections(open_files: int) -> int:
    """Return the number of connections for a limit of open files; each may also open a file."""
    return min(_MOST_CONNECTIONS, max(_FEWEST_CONNECTIONS, (open_files - _SERVER_FILES) // 2))


class LimitedProtocol(H11Protocol):
    """A connection with a timer that runs in every state."""

    def __init__(self, at_once: Connections, **options: Any) -> None:
        super().__init__(**options)
        self._connections = at_once
        # Requests reach the application through `_answer_in_time`
        self._application, self.app = self.app, self._answer_in_time
        self._timer: asyncio.TimerHandle | None = None
        self._answering = 0  # requests; more than one if a client does not wait for responses
        self._reading = False  # whether the timer for headers runs

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection, or respond that the server is full."""
        super().connection_made(transport)
        if self._connections.enter(self):
            self._read_headers()
        else:
            transport.write(_FULL)
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Process received bytes; after a response they begin the next request's headers."""
        # Later bytes of the same headers do not restart the timer, which would never end
        if not self._answering and not self._reading:
            self._read_headers()
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Free the connection's slot."""
        self._stop_timer()
        self._connections.leave(self)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Finish the current request, unless the rest of it does not arrive soon."""
        super().shutdown()
        self.loop.call_later(_LAST_SECONDS, self._drop_incomplete)

    def drop(self) -> None:
        """Close at once, without a response."""
        self._stop_timer()
        self.transport.abort()

    async def _answer_in_time(self, scope: Any, receive: Any, send: Any) -> None:
        """Process a request within its time limit."""
        self._answering += 1
        self._reading = False
        self._connections.serve(self)
        self._start_timer(self._connections.request)
        try:
            await self._application(scope, receive, send)
        finally:
            self._answering -= 1
            if not self._answering and not self.transport.is_closing():
                self._connections.wait(self)
                self._start_timer(self._connections.idle)

    def _drop_incomplete(self) -> None:
        cycle = self.cycle  # uvicorn's name for a request and its response
        if cycle is not None and cycle.more_body and not cycle.response_complete:
            self.drop()

    def _read_headers(self) -> None:
        self._reading = True
        self._start_timer(self._connections.headers)

    def _start_timer(self, seconds: float) -> None:
        """Drop the connection after this time, unless the timer is restarted before."""
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, self.drop)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def protocol_with(connections: Connections) -> type[LimitedProtocol]:
    """Return the protocol class of a server with these connections."""
    # uvicorn only calls it, so a partial can replace the class
    return cast("type[LimitedProtocol]", partial(LimitedProtocol, connections))
