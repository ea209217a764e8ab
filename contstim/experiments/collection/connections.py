"""Limits of connections: how many at once, and how long each may be silent or slow.

The library's own limits begin with a request whose headers are complete. Whoever opens connections
and says nothing, or never comes to the end of the headers, would keep them for ever, until nobody
else can connect.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

_ENOUGH_FILES = 65_536  # some systems have no limit, and libraries that walk through all numbers
_SERVER_FILES = 64  # database, log, program, and what is read now and then
_MOST_CONNECTIONS, _FEWEST_CONNECTIONS = 4_096, 16
_LAST_SECONDS = 1.0  # for requests that are still arriving when the server is told to stop
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\n"
    b"Content-Length: 0\r\n\r\n"
)


@dataclass
class Connections:
    """The open connections of a server, those that wait for a request apart.

    When there are too many, whoever has waited longest makes room for a newcomer: so connections
    that ask for nothing keep nobody out.

    Attributes:
        most: connections at once.
        headers: seconds from opening a connection, or from the first byte of a further request, to
            the end of its headers.
        idle: seconds between an answer and the next request; longer than most people look at a
            pair of sentences.
        request: seconds that a request and its answer may take.
    """

    most: int
    headers: float = 20.0
    idle: float = 75.0
    request: float = 300.0
    # whether each is being answered; those that wait stand in the order in which they began to
    _busy: dict[LimitedProtocol, bool] = field(default_factory=dict, init=False)

    def enter(self, newcomer: LimitedProtocol) -> bool:
        """Let a connection in, unless all others are being answered."""
        if len(self._busy) >= self.most:
            longest = next((each for each, busy in self._busy.items() if not busy), None)
            if longest is None:
                return False
            self.leave(longest)
            longest.drop()
        self.wait(newcomer)
        return True

    def wait(self, connection: LimitedProtocol) -> None:
        """Note that a connection has nothing to be answered."""
        self.leave(connection)
        self._busy[connection] = False

    def serve(self, connection: LimitedProtocol) -> None:
        """Note that a connection's request is being answered."""
        self._busy[connection] = True

    def leave(self, connection: LimitedProtocol) -> None:
        """Forget a connection."""
        self._busy.pop(connection, None)


def raise_open_files() -> int:
    """Raise this process's limit of open files as far as the system lets it; the limit now."""
    if sys.platform == "win32":
        return _ENOUGH_FILES  # sockets are not counted there
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    wanted = _ENOUGH_FILES if hard == unlimited else min(hard, _ENOUGH_FILES)
    if soft != unlimited and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError):  # the kernel has a limit of its own below the stated one
            wanted = soft
        soft = wanted
    return _ENOUGH_FILES if soft == unlimited else soft


def most_connections(open_files: int) -> int:
    """Number of connections under a limit of open files: each may have a file open besides."""
    return min(_MOST_CONNECTIONS, max(_FEWEST_CONNECTIONS, (open_files - _SERVER_FILES) // 2))


class LimitedProtocol(H11Protocol):
    """One connection, with a clock that runs whatever it does."""

    def __init__(self, at_once: Connections, **named: Any) -> None:
        super().__init__(**named)
        self._at_once = at_once
        # requests go to the application through `_answer_in_time`
        self._application, self.app = self.app, self._answer_in_time
        self._clock: asyncio.TimerHandle | None = None
        self._answering = 0  # requests; more than one where they are sent without waiting
        self._reading = False  # whether the time for headers runs

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let the connection in, or say that there is no room."""
        super().connection_made(transport)
        if self._at_once.enter(self):
            self._read_headers()
        else:
            transport.write(_FULL)
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Take what arrived; after an answer, it begins the next request's headers."""
        # Later bytes of the same headers do not start the clock again: it would never end
        if not self._answering and not self._reading:
            self._read_headers()
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room."""
        self._stop_clock()
        self._at_once.leave(self)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Finish the request under way, unless the rest of it does not arrive soon."""
        super().shutdown()
        self.loop.call_later(_LAST_SECONDS, self._drop_unarrived)

    def drop(self) -> None:
        """Close at once, whatever is unsaid."""
        self._stop_clock()
        self.transport.abort()

    async def _answer_in_time(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request within the time that it has."""
        self._answering += 1
        self._reading = False
        self._at_once.serve(self)
        self._within(self._at_once.request)
        try:
            await self._application(scope, receive, send)
        finally:
            self._answering -= 1
            if not self._answering and not self.transport.is_closing():
                self._at_once.wait(self)
                self._within(self._at_once.idle)

    def _drop_unarrived(self) -> None:
        cycle = self.cycle  # the library's name for a request and its answer
        if cycle is not None and cycle.more_body and not cycle.response_complete:
            self.drop()

    def _read_headers(self) -> None:
        self._reading = True
        self._within(self._at_once.headers)

    def _within(self, seconds: float) -> None:
        """Drop the connection after so many seconds, unless the clock is set anew before."""
        self._stop_clock()
        self._clock = self.loop.call_later(seconds, self.drop)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None


def protocol_with(connections: Connections) -> type[LimitedProtocol]:
    """The protocol of one server, whose connections are these."""
    # The library calls it and asks nothing else of a class
    return cast("type[LimitedProtocol]", partial(LimitedProtocol, connections))
