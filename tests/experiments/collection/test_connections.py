"""Connections that are slow, silent or cut, and a server that is killed while people answer.

Witness of the kills: the journal of each participant of what the server acknowledged.
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
from tests.experiments.collection.outages import under_kills
from tests.experiments.collection.servers import CollectProcess, answer, small_study
from tests.experiments.collection.watched import WatchedParticipants, export_watched, faults, known
from tests.experiments.stimuli import new_trial

BEGUN = b"GET /study.json HTTP/1.1\r\nHost: x\r\n"


@contextmanager
def connections(port: int, number: int, said: bytes = b"") -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        opened = []
        for _ in range(number):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
            if said:
                one.sendall(said)
            opened.append(one)
        yield opened


def wait_for_end(connection: socket.socket) -> None:
    """Read until the other side closes; where it does not, the time-out fails the test."""
    with suppress(ConnectionError):
        while connection.recv(4096):
            pass


def test_more_idle_connections_than_files_may_be_open_shut_nobody_out(tmp_path: Path) -> None:
    """The real server, with 128 files at most, under more connections."""
    study = small_study(tmp_path / "study")
    server = CollectProcess(study, tmp_path / "kept" / "a.sqlite", open_files=128)
    server.start()
    try:
        for said in (b"", BEGUN):
            with connections(server.port, 200, said):
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


def test_headers_that_do_not_end_are_given_up(serve: Serve) -> None:
    """Nothing; a part; bit after bit; and the same after an answer on the same connection."""
    limits = Connections(10, headers=0.15, idle=60)
    served = serve(connections=limits)
    with connections(served.port, 1) as (silent,):
        wait_for_end(silent)
    with connections(served.port, 1, BEGUN) as (begun,):
        wait_for_end(begun)
    whole = BEGUN + b"\r\n"
    with connections(served.port, 1, whole) as (again,):
        assert again.recv(12) == b"HTTP/1.1 200"
        again.sendall(BEGUN)
        wait_for_end(again)
    with connections(served.port, 1, BEGUN) as (slow,), suppress(ConnectionError):
        for number in range(1500):
            slow.sendall(b"x-%d: 1\r\n" % number)
            time.sleep(0.02)
        pytest.fail("The server waits for ever.")


def test_unread_answers_and_silent_visitors_are_dropped(serve: Serve, tmp_path: Path) -> None:
    study = small_study(tmp_path / "study")
    (study / "film.bin").write_bytes(bytes(30_000_000))
    served = serve(study, connections=Connections(10, request=0.2, idle=0.2))
    request = BEGUN.replace(b"study.json", b"film.bin") + b"\r\n"
    with connections(served.port, 1, request) as (deaf,):
        time.sleep(0.6)
        with suppress(ConnectionError):
            received = 0
            while part := deaf.recv(1 << 20):
                received += len(part)
            assert received < 30_000_000
    with connections(served.port, 1, BEGUN + b"\r\n") as (silent,):
        assert silent.recv(12) == b"HTTP/1.1 200"
        wait_for_end(silent)


def test_whoever_waited_longest_makes_room(serve: Serve) -> None:
    served = serve(connections=Connections(3, headers=60))
    with (
        connections(served.port, 3) as (first, second, third),
        connections(served.port, 1, BEGUN + b"\r\n") as (newcomer,),
    ):
        assert newcomer.recv(12) == b"HTTP/1.1 200"
        wait_for_end(first)
        for one in (second, third):
            one.sendall(BEGUN + b"\r\n")
            assert one.recv(12) == b"HTTP/1.1 200"


def test_a_server_whose_connections_are_all_busy_says_so(serve: Serve) -> None:
    served = serve(connections=Connections(2))
    body = b"POST /api/participants HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    expecting = body + b"Content-Length: 9\r\nExpect: 100-continue\r\n\r\n"
    with connections(served.port, 2, expecting) as busy:
        for one in busy:
            assert one.recv(4096).startswith(b"HTTP/1.1 100")  # the body is waited for
        with connections(served.port, 1) as (late,):
            assert late.recv(4096).startswith(b"HTTP/1.1 503")
        for one in busy:
            one.sendall(b"{}       ")
            assert one.recv(4096).startswith(b"HTTP/1.1 201")


def test_the_limit_of_open_files_is_raised_as_far_as_the_system_lets_it() -> None:
    """Against `resource`, which is asked before and after."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    low = min(256, soft)
    resource.setrlimit(resource.RLIMIT_NOFILE, (low, hard))
    try:
        now = raise_open_files()
        assert now == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        assert now == hard or now == 65_536
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert [most_connections(n) for n in (64, 1024, 65_536)] == [16, 480, 4096]


def test_a_log_takes_so_much_and_says_what_it_left_out(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_bad_requests_leave_a_short_log(capsys: pytest.CaptureFixture[str], served: Served) -> None:
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    with sparing_log():
        for _ in range(300):
            with connections(served.port, 1, b"what?\r\n\r\n") as (one,):
                wait_for_end(one)
    said = capsys.readouterr().err
    assert "Invalid HTTP request" in said
    assert said.count("\n") < 40


GROUPS, TRIALS, PEOPLE, KILLS = 3, 12, 12, 5


def people(scale: Scale) -> ArtificialParticipants:
    trials = tuple(
        new_trial(f"{g}-{n:02}", g, f"A {g} {n}.", f"B {g} {n}.")
        for g in range(1, GROUPS + 1)
        for n in range(TRIALS)
    )
    differences = np.linspace(-9, 9, len(trials))
    return WatchedParticipants(tuple(on_scale(trials, scale)), differences, 3.0, 0.1, 0)


@pytest.mark.slow
@pytest.mark.parametrize("scale", Scale)
def test_acknowledged_answers_survive_kills_once(scale: Scale, tmp_path: Path) -> None:
    """All that a page tells of them is kept as they sent it, and nothing of whoever withdrew."""
    asked, begun = people(scale), time.time()
    study = export_watched(tmp_path / "study", asked.trials)
    server = CollectProcess(study, tmp_path / "study.sqlite")
    server.start()
    try:
        run = RunSettings(server.url, PEOPLE, PEOPLE, pause=0.2, patience=60, fields_of=known)
        found = under_kills(server, asked, run, KILLS, 3)
    finally:
        server.stop()
    assert found.outages == KILLS
    assert found.acknowledged[-1] == found.rows == PEOPLE * TRIALS
    assert any(0 < told < found.rows for told in found.acknowledged)
    assert (found.lost, found.duplicates, found.traces) == (0, 0, ())
    assert found.withdrawn >= 1
    assert faults(server.database, asked, run, tmp_path / "study.journal", begun) == []
