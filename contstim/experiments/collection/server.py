"""The running server: address, token, a log with a limited rate, and limits of connections.

uvicorn's own limits apply only after the headers of a request are complete. A client that sends
incomplete headers on many connections could therefore prevent all other clients from connecting.
"""

from __future__ import annotations

import logging
import math
import os
import secrets
import socket
import sys
from collections import Counter
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from contstim.errors import InputError
from contstim.experiments.collection.database import Recorder
from contstim.experiments.collection.participants import StudyOptions, link_key, stored_secret
from contstim.experiments.collection.requests import RequestRefusal, throttle
from contstim.experiments.collection.service import Service, read_study
from contstim.experiments.platforms.jspsych.study import check_web_address

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator

    from starlette.applications import Starlette


TOKEN_VARIABLE = "CONTSTIM_ADMIN_TOKEN"
_SHORTEST_TOKEN = 16
_GRACE = 10  # seconds for current requests when the server is stopped
_BACKLOG = 256  # connections that wait to be accepted
_LONGEST_HEADERS = 16_384  # bytes
_LOGGERS = ("uvicorn", "asyncio", "contstim")
_LONGEST_MESSAGE = 2_000  # characters, with the traceback
_LOG_RATE = (20, 0.1)  # maximum messages of a logger at once, and per second


def database_of(folder: Path) -> Path:
    """Return the default path of the database for an exported folder; it is next to the folder."""
    resolved = folder.resolve()
    return resolved.parent / f"{resolved.name}.sqlite"


def serve(
    folder: Path,
    database: Path,
    options: StudyOptions,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    behind_proxy: bool = False,
    opened: Callable[[str, Path | None], None],
) -> None:
    """Serve an exported experiment and store answers, until interrupted.

    Args:
        folder: folder of an exported experiment.
        database: path of the database of answers; existing answers are kept.
        options: options of the study.
        host: address to listen at; other machines can connect unless it is a loopback address.
        port: port number; 0 for any free port.
        behind_proxy: whether requests come through a proxy on this machine. The proxy must state
            the participants' addresses in X-Forwarded-For.
        opened: function that is called when the server is ready. The function receives the
            experiment's address, and the file with the administrator's token (None if the
            environment sets the token).

    Raises:
        InputError: if the folder is not an exported experiment that saves to a server; if the
            address cannot be used; if the redirect is not a web address; if the database would be
            inside the folder; or if the token or key next to the database cannot be used.
        StoreError: if the database cannot be used, belongs to another study, or is in use by
            another server.
    """
    root = folder.resolve()
    study = read_study(root)
    if database.resolve().is_relative_to(root):
        raise InputError(
            f"The database {database} must not be in the folder that participants can read. "
            f"Name a file outside {folder}."
        )
    if redirect := options.redirect or study.redirect:
        check_web_address(redirect)
    # The socket is opened before the database, so that a failure leaves no files behind
    with closing(listen(host, port)) as listening:
        name, number = listening.getsockname()[:2]
        url = f"http://[{name}]:{number}/" if ":" in name else f"http://{name}:{number}/"
        server = f"the server at {url} (process {os.getpid()})"
        with closing(Recorder(database, study.fingerprint, server, study.extends)) as recorder:
            token, token_file = admin_token(database)
            service = Service(root, study, recorder, token, link_key(database), options)
            with sparing_log(), suppress(KeyboardInterrupt):
                opened(url, token_file)
                run(service.application(), listening, behind_proxy=behind_proxy)


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket.

    Raises:
        InputError: if the address cannot be used.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        # Without this option, a response's body waits 40 ms for the client's acknowledgement of the
        # headers. asyncio sets the option only for sockets that it creates itself.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except (OSError, OverflowError) as error:
        raise InputError(
            f"Cannot listen at {host}, port {port}: {error}. Name another port (0 for any) or host."
        ) from error


def run(application: Starlette, listening: socket.socket, *, behind_proxy: bool = False) -> None:
    """Process requests, with limits on connections, until interrupted."""
    connections = Connections(most_connections(raise_open_files()))
    settings = uvicorn.Config(
        application,
        http=cast("type[LimitedProtocol]", partial(LimitedProtocol, connections)),
        lifespan="off",
        ws="none",
        log_config=None,
        log_level="warning",
        access_log=False,  # addresses may contain tokens and identities
        server_header=False,
        proxy_headers=behind_proxy,
        forwarded_allow_ips="127.0.0.1",
        backlog=_BACKLOG,
        h11_max_incomplete_event_size=_LONGEST_HEADERS,
        timeout_keep_alive=math.ceil(connections.idle),
        timeout_graceful_shutdown=_GRACE,
    )
    uvicorn.Server(settings).run(sockets=[listening])


def admin_token(database: Path) -> tuple[str, Path | None]:
    """Return the token for downloads: from the environment, else from a file.

    Returns:
        The token, and the file next to the database that stores the token. The file is None if the
        environment variable sets the token. A missing file is created; only its owner can read it.

    Raises:
        InputError: if the token has fewer than 16 characters or is not ASCII; or if the file cannot
            be used.
    """
    stated = os.environ.get(TOKEN_VARIABLE, "")
    file = None if stated else Path(f"{database}.token")
    token = stored_secret(file, secrets.token_urlsafe(24)) if file else stated.strip()
    if len(token) < _SHORTEST_TOKEN or not token.isascii():
        raise InputError(
            f"The administrator's token ({file or TOKEN_VARIABLE}) must have at least "
            f"{_SHORTEST_TOKEN} ASCII characters."
        )
    return token, file


def sparing_handler(written: logging.Formatter, burst: float, per_second: float) -> logging.Handler:
    """Create a handler that writes each logger's messages at a limited rate.

    Long messages are truncated. The first message after skipped messages states their number. For
    `burst` and `per_second`, see `throttle`. `written` formats the messages.
    """
    limit_messages, skipped = throttle(burst, per_second), Counter[str]()

    def admit(record: logging.LogRecord) -> bool:
        try:
            limit_messages(record.name, record.created)
        except RequestRefusal:
            skipped[record.name] += 1
            return False
        text = written.format(record)[:_LONGEST_MESSAGE]
        if n_skipped := skipped.pop(record.name, 0):
            text += f" ({n_skipped:,} earlier messages were skipped)"
        # The text now includes the traceback
        record.msg, record.args = text, ()
        record.exc_info = record.exc_text = record.stack_info = None
        return True

    handler = logging.StreamHandler()
    handler.addFilter(admit)
    return handler


@contextmanager
def sparing_log() -> Iterator[None]:
    """Write a server's messages to standard error only, at a limited rate."""
    formatter = logging.Formatter("%(asctime)s %(levelname)s: %(message)s")
    handler = sparing_handler(formatter, *_LOG_RATE)
    propagated = {logger: logger.propagate for logger in map(logging.getLogger, _LOGGERS)}
    for logger in propagated:
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, propagate in propagated.items():
            logger.removeHandler(handler)
            logger.propagate = propagate


# The limit of open files is raised to at most this number, even if the system permits an infinite
# limit, because some libraries loop over all numbers up to the limit
_ENOUGH_FILES = 65_536
_SERVER_FILES = 64  # files of the server itself, for example the database and its log
_MOST_CONNECTIONS, _FEWEST_CONNECTIONS = 4_096, 16
_LAST_SECONDS = 1.0  # for requests that are still arriving when the server is stopped
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\n"
    b"Content-Length: 0\r\n\r\n"
)


@dataclass
class Connections:
    """The open connections of a server; each connection waits for a request or processes a request.

    If `limit` is reached, a new connection replaces the one that has waited longest. So idle
    connections cannot block new clients.

    Attributes:
        limit: maximum number of open connections.
        headers: maximum seconds from opening a connection, or from the first byte of a later
            request, to the end of the request's headers.
        idle: maximum seconds between a response and the next request. Most people look at a pair of
            sentences for a shorter time.
        request: maximum seconds from a request to the end of its response.
        is_busy: connection → whether it is processing a request. Connections are in the order in
            which they began to wait.
    """

    limit: int
    headers: float = 20.0
    idle: float = 75.0
    request: float = 300.0
    is_busy: dict[LimitedProtocol, bool] = field(default_factory=dict, init=False)

    def enter(self, newcomer: LimitedProtocol) -> bool:
        """Accept a connection; return False if `limit` connections are processing requests."""
        if len(self.is_busy) >= self.limit:
            waiting = (connection for connection, is_busy in self.is_busy.items() if not is_busy)
            if (longest := next(waiting, None)) is None:
                return False
            del self.is_busy[longest]
            longest.drop()
        self.wait(newcomer)
        return True

    def wait(self, connection: LimitedProtocol) -> None:
        """Record that a connection has no request to process."""
        self.is_busy.pop(connection, None)
        self.is_busy[connection] = False


def raise_open_files() -> int:
    """Raise this process's limit of open files as far as possible, and return the new limit."""
    if sys.platform == "win32":
        return _ENOUGH_FILES  # Windows does not count sockets as files
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    target = _ENOUGH_FILES if hard == unlimited else min(hard, _ENOUGH_FILES)
    if soft != unlimited and soft < target:
        with suppress(ValueError, OSError):  # the kernel may have a limit below the reported one
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
            soft = target
    return _ENOUGH_FILES if soft == unlimited else soft


def most_connections(open_files: int) -> int:
    """Return the maximum number of connections for a limit of open files.

    Each connection needs a socket, which counts as an open file, and may open another file.
    """
    return min(_MOST_CONNECTIONS, max(_FEWEST_CONNECTIONS, (open_files - _SERVER_FILES) // 2))


class LimitedProtocol(H11Protocol):
    """A connection that is closed if its current state lasts too long; see `Connections`."""

    def __init__(self, at_once: Connections, **options: Any) -> None:
        super().__init__(**options)
        self._connections = at_once
        # Requests reach the application through `_answer_in_time`
        self._application, self.app = self.app, self._answer_in_time
        self._timer: asyncio.TimerHandle | None = None
        self._answering = 0  # number of requests; above 1 if a client does not wait for responses
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
        """Process received bytes; the first bytes of a request start the timer for headers."""
        # Later bytes of the same headers do not restart the timer
        if not self._answering and not self._reading:
            self._read_headers()
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Free the connection's slot."""
        self._stop_timer()
        self._connections.is_busy.pop(self, None)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Finish the current request; close the connection if the request remains incomplete."""
        super().shutdown()
        self.loop.call_later(_LAST_SECONDS, self._drop_incomplete)

    def drop(self) -> None:
        """Close the connection at once, without a response."""
        self._stop_timer()
        self.transport.abort()

    async def _answer_in_time(self, scope: Any, receive: Any, send: Any) -> None:
        self._answering += 1
        self._reading = False
        self._connections.is_busy[self] = True
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
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, self.drop)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
