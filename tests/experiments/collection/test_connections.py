"""Slow, silent and closed connections, and a server that is killed during data collection.

Witness of the kills: participants' journals of acknowledged responses.
"""

import logging
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx2
import numpy as np
import pytest

from contstim.experiments.collection.server import (
    Connections,
    most_connections,
    raise_open_files,
    sparing_handler,
    sparing_log,
)
from contstim.experiments.design.artificial import ArtificialParticipants
from contstim.items.scale import Scale
from contstim.items.stimuli import on_scale
from contstim.testing.participants import RunSettings
from tests.experiments.collection.conftest import Serve, Served
from tests.experiments.collection.outages import run_with_kills
from tests.experiments.collection.servers import CollectProcess, answer, small_study
from tests.experiments.collection.watched import (
    WatchedParticipants,
    export_watched,
    find_differences,
    page_fields,
)
from tests.experiments.stimuli import new_trial

HEAD = b"GET /study.json HTTP/1.1\r\nHost: x\r\n"


@contextmanager
def connect(port: int, n_connections: int, request: bytes = b"") -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        sockets = []
        for _ in range(n_connections):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
            if request:
                client.sendall(request)
            sockets.append(client)
        yield sockets


def wait_for_end(connection: socket.socket) -> None:
    """Read until the other side closes; otherwise the timeout fails the test."""
    with suppress(ConnectionError):
        while connection.recv(4096):
            pass


def test_idle_connections_above_the_file_limit_block_no_one(tmp_path: Path) -> None:
    """The real server may open 128 files and gets more connections."""
    study = small_study(tmp_path / "study")
    server = CollectProcess(study, tmp_path / "kept" / "a.sqlite", open_files=128)
    server.start()
    try:
        for request in (b"", HEAD):
            with connect(server.port, 200, request):
                with httpx2.Client(base_url=server.url, trust_env=False, timeout=30) as http:
                    joined = http.post("/api/participants", json={"group": "1"}).json()
                    saved = http.post(
                        "/api/responses",
                        json={"participant": joined["participant"], "responses": [answer("t1-0")]},
                        headers={"Authorization": f"Bearer {joined['secret']}"},
                    )
                assert saved.json() == {"saved": ["t1-0"]}
    finally:
        server.stop()
    assert server.log.stat().st_size < 10_000


def test_incomplete_headers_are_closed(serve: Serve) -> None:
    """Cases: silence, incomplete, slow, and incomplete after a complete request."""
    limits = Connections(10, headers=0.15, idle=60)
    served = serve(connections=limits)
    with connect(served.port, 1) as (silent,):
        wait_for_end(silent)
    with connect(served.port, 1, HEAD) as (unfinished,):
        wait_for_end(unfinished)
    complete_request = HEAD + b"\r\n"
    with connect(served.port, 1, complete_request) as (connection,):
        assert connection.recv(12) == b"HTTP/1.1 200"
        connection.sendall(HEAD)
        wait_for_end(connection)
    with connect(served.port, 1, HEAD) as (slow,), suppress(ConnectionError):
        for number in range(1500):
            slow.sendall(b"x-%d: 1\r\n" % number)
            time.sleep(0.02)
        pytest.fail("The server waits for ever.")


def test_unread_replies_and_silent_clients_are_dropped(serve: Serve, tmp_path: Path) -> None:
    study = small_study(tmp_path / "study")
    (study / "film.bin").write_bytes(bytes(30_000_000))
    served = serve(study, connections=Connections(10, request=0.2, idle=0.2))
    request = HEAD.replace(b"study.json", b"film.bin") + b"\r\n"
    with connect(served.port, 1, request) as (connection,):
        time.sleep(0.6)
        with suppress(ConnectionError):
            received = 0
            while chunk := connection.recv(1 << 20):
                received += len(chunk)
            assert received < 30_000_000
    with connect(served.port, 1, HEAD + b"\r\n") as (silent,):
        assert silent.recv(12) == b"HTTP/1.1 200"
        wait_for_end(silent)


def test_longest_idle_connection_is_closed_when_full(serve: Serve) -> None:
    served = serve(connections=Connections(3, headers=60))
    with (
        connect(served.port, 3) as (first, second, third),
        connect(served.port, 1, HEAD + b"\r\n") as (newcomer,),
    ):
        assert newcomer.recv(12) == b"HTTP/1.1 200"
        wait_for_end(first)
        for connection in (second, third):
            connection.sendall(HEAD + b"\r\n")
            assert connection.recv(12) == b"HTTP/1.1 200"


def test_server_with_only_busy_connections_replies_503(serve: Serve) -> None:
    served = serve(connections=Connections(2))
    headers = b"POST /api/participants HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    request = headers + b"Content-Length: 9\r\nExpect: 100-continue\r\n\r\n"
    with connect(served.port, 2, request) as busy:
        for connection in busy:
            # The server waits for the body
            assert connection.recv(4096).startswith(b"HTTP/1.1 100")
        with connect(served.port, 1) as (late,):
            assert late.recv(4096).startswith(b"HTTP/1.1 503")
        for connection in busy:
            connection.sendall(b"{}       ")
            assert connection.recv(4096).startswith(b"HTTP/1.1 201")


def test_open_file_limit_is_raised_to_the_allowed_maximum() -> None:
    """Witness: the limits of `resource` before and after."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    low = min(256, soft)
    resource.setrlimit(resource.RLIMIT_NOFILE, (low, hard))
    try:
        raised = raise_open_files()
        assert raised == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        assert raised == hard or raised == 65_536
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert [most_connections(n) for n in (64, 1024, 65_536)] == [16, 480, 4096]


def test_sparing_log_counts_skipped_messages(capsys: pytest.CaptureFixture[str]) -> None:
    handler = sparing_handler(logging.Formatter(), burst=3, per_second=1)
    log = logging.getLogger("contstim.test-log")

    for seconds, text in (*[(0.0, "again")] * 1000, (1.5, "x" * 9_000)):
        record = log.makeRecord(log.name, logging.WARNING, "", 0, text, (), None)
        record.created = seconds
        handler.handle(record)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:3] == ["again"] * 3
    assert lines[3] == "x" * 2_000 + " (997 earlier messages were skipped)"
    assert len(lines) == 4


def test_invalid_requests_are_logged(capsys: pytest.CaptureFixture[str], served: Served) -> None:
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    with sparing_log():
        for _ in range(300):
            with connect(served.port, 1, b"what?\r\n\r\n") as (connection,):
                wait_for_end(connection)
    log = capsys.readouterr().err
    assert "Invalid HTTP request" in log
    assert log.count("\n") < 40


GROUPS, TRIALS, PEOPLE, KILLS = 3, 12, 12, 5


def make_participants(scale: Scale) -> ArtificialParticipants:
    trials = tuple(
        new_trial(f"{g}-{n:02}", g, f"A {g} {n}.", f"B {g} {n}.")
        for g in range(1, GROUPS + 1)
        for n in range(TRIALS)
    )
    differences = np.linspace(-9, 9, len(trials))
    return WatchedParticipants(tuple(on_scale(trials, scale)), differences, 3.0, 0.1, 0)


@pytest.mark.slow
@pytest.mark.parametrize("scale", Scale)
def test_acknowledged_responses_survive_kills_once(scale: Scale, tmp_path: Path) -> None:
    """All other data are stored as sent, and nothing remains of withdrawn participants."""
    people, start = make_participants(scale), time.time()
    study = export_watched(tmp_path / "study", people.trials)
    server = CollectProcess(study, tmp_path / "study.sqlite")
    server.start()
    try:
        run = RunSettings(server.url, PEOPLE, PEOPLE, pause=0.2, patience=60, fields_of=page_fields)
        outcome = run_with_kills(server, people, run, KILLS, 3)
    finally:
        server.stop()
    assert outcome.outages == KILLS
    assert outcome.acknowledged[-1] == outcome.rows == PEOPLE * TRIALS
    assert any(0 < n_acknowledged < outcome.rows for n_acknowledged in outcome.acknowledged)
    assert (outcome.lost, outcome.duplicates, outcome.traces) == (0, 0, ())
    assert outcome.withdrawn >= 1
    assert find_differences(server.database, people, run, tmp_path / "study.journal", start) == []
