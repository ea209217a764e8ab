"""The running server."""

from __future__ import annotations

import math
import socket
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError, WorkerError
from contstim.experiments.collection.descriptors import most_connections, raise_open_files
from contstim.experiments.collection.keys import admin_token
from contstim.experiments.collection.limits import ConnectionLimits
from contstim.experiments.collection.logs import sparing_log
from contstim.experiments.collection.people import Reception
from contstim.experiments.collection.recorder import Recorder
from contstim.experiments.collection.study import read_study
from contstim.experiments.platforms.jspsych.settings import check_web_address

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_GRACE = 10  # seconds for requests under way when the server is told to stop
_BACKLOG = 256  # connections that wait to be accepted
_LONGEST_HEADERS = 16_384  # bytes


@dataclass(frozen=True)
class Terms:
    """What whoever runs a study decides; see `Reception` and `Offer`."""

    patience: float = Reception.patience
    most: int = Reception.most
    code: str | None = None
    redirect: str | None = None


@dataclass(frozen=True)
class Open:
    """A server that has just been opened.

    Attributes:
        url: of the experiment.
        token: the administrator's.
        token_file: where the token stands; None where it was given in the environment.
    """

    url: str
    token: str
    token_file: Path | None


def database_of(folder: Path) -> Path:
    """Where a folder's answers are kept unless another place is named: beside it."""
    resolved = folder.resolve()
    return resolved.parent / f"{resolved.name}.sqlite"


def serve(
    folder: Path,
    database: Path,
    terms: Terms,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    behind_proxy: bool = False,
    opened: Callable[[Open], None],
) -> None:
    """Hand out an exported experiment and keep answers, until interrupted.

    Args:
        folder: an exported experiment.
        database: where answers are kept; what is there already is kept.
        terms: what the study decides.
        host: the address to listen at; others can reach the server unless it is a loopback one.
        port: 0 for any free one.
        behind_proxy: whether requests come through a proxy on this machine that states the
            participants' addresses in X-Forwarded-For.
        opened: told once people can come.

    Raises:
        InputError: the folder is no exported experiment that saves to a server, the address cannot
            be used, the redirect is not a web address, or the database would stand inside the
            folder.
        StoreError: the database cannot be used, or belongs to another study.
        WorkerError: starlette or uvicorn is not installed.
    """
    root = folder.resolve()
    study = read_study(root)
    if database.resolve().is_relative_to(root):
        raise InputError(
            f"{database} stands in the folder that participants read; name a file outside {folder}."
        )
    redirect = terms.redirect or study.redirect
    if redirect:
        check_web_address(redirect)
    library = _library()
    limits = ConnectionLimits(most_connections(raise_open_files()))
    with closing(_listen(host, port)) as listening:  # first, for it leaves nothing when it fails
        token, file = admin_token(database)
        offer = library.offer(
            root,
            study,
            Reception(tuple(study.trials), terms.patience, terms.most),
            token,
            terms.code or study.code,
            redirect,
        )
        with (
            closing(Recorder(database, study.fingerprint)) as recorder,
            sparing_log(),
            suppress(KeyboardInterrupt),
        ):
            opened(Open(_url(listening), token, file))
            settings = library.uvicorn.Config(
                library.service(offer, recorder).application(),
                http=library.protocol_with(limits),
                lifespan="off",
                ws="none",
                log_config=None,
                log_level="warning",
                access_log=False,  # addresses may carry tokens and identities
                server_header=False,
                proxy_headers=behind_proxy,
                forwarded_allow_ips="127.0.0.1",
                backlog=_BACKLOG,
                h11_max_incomplete_event_size=_LONGEST_HEADERS,
                timeout_keep_alive=math.ceil(limits.idle),
                timeout_graceful_shutdown=_GRACE,
            )
            library.uvicorn.Server(settings).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"Cannot listen at {host}, port {port}: {error}. Name another --port, or --port 0 for "
            "any that is free."
        ) from error


def _url(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


@dataclass(frozen=True)
class _Library:
    """What needs packages that only collecting needs."""

    uvicorn: Any
    offer: Any
    service: Any
    protocol_with: Any


def _library() -> _Library:
    try:
        import uvicorn

        from contstim.experiments.collection.connections import protocol_with
        from contstim.experiments.collection.service import Offer, Service
    except ModuleNotFoundError as error:
        raise WorkerError(
            f"Collecting needs {error.name}, which is not installed: pip install "
            "'contstim[collect]'."
        ) from error
    return _Library(uvicorn, Offer, Service, protocol_with)
