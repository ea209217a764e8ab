"""The running server: its address, its token, and a log of limited size."""

from __future__ import annotations

import logging
import math
import os
import secrets
import socket
from collections import Counter
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from contstim.errors import InputError
from contstim.experiments.collection.connections import (
    Connections,
    most_connections,
    protocol_with,
    raise_open_files,
)
from contstim.experiments.collection.database import Recorder
from contstim.experiments.collection.links import link_key, stored_secret
from contstim.experiments.collection.requests import RequestLimits, RequestRefusal, Throttle
from contstim.experiments.collection.service import Service, read_study
from contstim.experiments.platforms.jspsych.study import check_web_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.applications import Starlette

    from contstim.experiments.collection.participants import StudyOptions

TOKEN_VARIABLE = "CONTSTIM_ADMIN_TOKEN"
_SHORTEST_TOKEN = 16
_GRACE = 10  # seconds for current requests when the server is stopped
_BACKLOG = 256  # connections that wait to be accepted
_LONGEST_HEADERS = 16_384  # bytes
_LOGGERS = ("uvicorn", "asyncio", "contstim")
_LONGEST_MESSAGE = 2_000  # characters, with the traceback
_LOG_RATE = (20, 0.1)  # messages of a logger at once, and per second


def database_of(folder: Path) -> Path:
    """Path of the default database of a folder's answers, next to the folder."""
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
        behind_proxy: whether requests come through a proxy on this machine that states the
            participants' addresses in X-Forwarded-For.
        opened: callback when the server is ready; receives the experiment's address, and the file
            with the administrator's token (None if the environment sets it).

    Raises:
        InputError: if the folder is not an exported experiment that saves to a server, the address
            cannot be used, the redirect is not a web address, or the database would be inside the
            folder.
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
        with closing(Recorder(database, study.fingerprint, server)) as recorder:
            token, token_file = admin_token(database)
            service = Service(
                root,
                study,
                recorder,
                token,
                link_key(database),
                options=options,
                limits=RequestLimits(),
            )
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
        # Otherwise a body waits 40 ms for the client's acknowledgement of the headers; asyncio sets
        # this option only for sockets that it creates itself
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except (OSError, OverflowError) as error:
        raise InputError(
            f"Cannot listen at {host}, port {port}: {error}. Name another port, or 0 for any."
        ) from error


def run(application: Starlette, listening: socket.socket, *, behind_proxy: bool = False) -> None:
    """Process requests, with limits on connections, until interrupted."""
    connections = Connections(most_connections(raise_open_files()))
    settings = uvicorn.Config(
        application,
        http=protocol_with(connections),
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
        The token, and the file next to the database that stores it. The file is created when
        missing and readable by its owner only; None if the environment variable sets the token.

    Raises:
        InputError: if the token has less than 16 characters, or the file cannot be used.
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

    Messages are truncated, and state how many messages before them were left out.
    """
    throttle, skipped = Throttle(burst, per_second), Counter[str]()

    def admit(record: logging.LogRecord) -> bool:
        try:
            throttle.take(record.name, record.created)
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
