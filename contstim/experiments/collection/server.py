"""The running server."""

from __future__ import annotations

import math
import socket
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import uvicorn

from contstim.errors import InputError
from contstim.experiments.collection.connections import (
    ConnectionLimits,
    most_connections,
    protocol_with,
    raise_open_files,
)
from contstim.experiments.collection.database import server_lock
from contstim.experiments.collection.keys import admin_token
from contstim.experiments.collection.limits import sparing_log
from contstim.experiments.collection.participants import AdmissionPolicy
from contstim.experiments.collection.recorder import Recorder
from contstim.experiments.collection.service import ServerConfig, Service
from contstim.experiments.collection.study import read_study
from contstim.experiments.platforms.jspsych.settings import check_web_address

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from starlette.applications import Starlette

_GRACE = 10  # seconds for requests under way when the server is told to stop
_BACKLOG = 256  # connections that wait to be accepted
_LONGEST_HEADERS = 16_384  # bytes


@dataclass(frozen=True)
class StudyOptions:
    """Options of whoever runs a study; see `AdmissionPolicy` and `ServerConfig`."""

    patience: float = AdmissionPolicy.patience
    most: int = AdmissionPolicy.most
    code: str | None = None
    redirect: str | None = None


@dataclass(frozen=True)
class RunningServer:
    """A server that takes participants.

    Attributes:
        url: of the experiment.
        token: the administrator's.
        token_file: where the token stands; None where it was given in the environment.
    """

    url: str
    token: str
    token_file: Path | None


def database_of(folder: Path) -> Path:
    """Path of the database of a folder's answers unless another is named: beside the folder."""
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
    opened: Callable[[RunningServer], None],
) -> None:
    """Hand out an exported experiment and keep answers, until interrupted.

    Args:
        folder: an exported experiment.
        database: where answers are kept; what is there already is kept.
        options: what the study decides.
        host: the address to listen at; others can reach the server unless it is a loopback one.
        port: 0 for any free one.
        behind_proxy: whether requests come through a proxy on this machine that states the
            participants' addresses in X-Forwarded-For.
        opened: told once people can come.

    Raises:
        InputError: the folder is not an exported experiment that saves to a server, the address
            cannot be used, the redirect is not a web address, or the database would stand inside
            the folder.
        StoreError: the database cannot be used, belongs to another study, or another server uses
            it.
    """
    root = folder.resolve()
    study = read_study(root)
    if database.resolve().is_relative_to(root):
        raise InputError(
            f"{database} stands in the folder that participants read; name a file outside {folder}."
        )
    redirect = options.redirect or study.redirect
    if redirect:
        check_web_address(redirect)
    # Listening comes first, then the lock: when they fail, they leave nothing behind
    with closing(listen(host, port)) as listening:
        name, number = listening.getsockname()[:2]
        url = f"http://[{name}]:{number}/" if ":" in name else f"http://{name}:{number}/"
        with server_lock(database, url):
            token, token_file = admin_token(database)
            admission = AdmissionPolicy(tuple(study.trials), options.patience, options.most)
            code = options.code or study.code
            config = ServerConfig(root, study, admission, token, code, redirect)
            with (
                closing(Recorder(database, study.fingerprint)) as recorder,
                sparing_log(),
                suppress(KeyboardInterrupt),
            ):
                application = Service(config, recorder).application()
                opened(RunningServer(url, token, token_file))
                run(application, listening, behind_proxy=behind_proxy)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        InputError: the address cannot be used.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"Cannot listen at {host}, port {port}: {error}. Name another --port, or --port 0 for "
            "any that is free."
        ) from error


def run(application: Starlette, listening: socket.socket, *, behind_proxy: bool = False) -> None:
    """Answer requests, with limits on connections, until interrupted."""
    limits = ConnectionLimits(most_connections(raise_open_files()))
    settings = uvicorn.Config(
        application,
        http=protocol_with(limits),
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
    uvicorn.Server(settings).run(sockets=[listening])
