"""Pauses between tries, and how many requests are under way, against servers that count them."""

import asyncio
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from socket import SHUT_RDWR, create_server
from threading import Event, Thread, current_thread
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest

from contstim.errors import ModelError
from contstim.models.server import client
from contstim.models.server.address import parse_address
from contstim.models.server.client import Client
from tests.models.server.fakes import FakeServer, Reply


class Server(FakeServer):
    """Answers the number of the request, from 0, after some seconds; refuses the first ones.

    Attributes:
        most: how many requests were under way at once.
    """

    def __init__(self, n_refused: int, seconds: float = 0.0, after: str = "") -> None:
        super().__init__(lambda _row: np.empty((0, 0)), None)
        self.n_refused, self.seconds = n_refused, seconds
        self.headers = {"Retry-After": after} if after else {}
        self.asked = self.under_way = self.most = 0

    def respond(self, path: str, body: Any, key: str) -> Reply:
        del path, body, key
        with self.lock:
            number = self.asked
            self.asked += 1
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        sleep(self.seconds)
        with self.lock:
            self.under_way -= 1
        return Reply(number, 503 if number < self.n_refused else 200, self.headers)


def ask(url: str, n: int = 1, *, patience: float = 1_000.0, concurrency: int = 1) -> Any:
    options = f"timeout=20&patience={patience}&concurrency={concurrency}"
    asking = Client(parse_address(f"{url}#m?{options}"))
    return asking.ask_all(url, [{}] * n, lambda _number, answer: answer)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of a clock that goes on by them alone; chance always takes the longest."""
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(client, "sleep", wait)
    monkeypatch.setattr(client, "monotonic", lambda: sum(waited))
    monkeypatch.setattr(random, "uniform", lambda _low, high: high)
    return waited


def test_pauses_double_from_half_a_second_to_half_a_minute(pauses: list[float]) -> None:
    with Server(9).running() as url:
        assert ask(url) == [9]
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]


def test_patience_ends_before_a_pause_that_would_exceed_it(pauses: list[float]) -> None:
    server = Server(99)
    with server.running() as url, pytest.raises(ModelError, match="for 20 seconds: status 503"):
        ask(url, patience=20.0)
    assert server.asked == 6
    assert pauses == [0.5, 1, 2, 4, 8]  # 15.5 seconds, and the next would be of 16


@pytest.mark.parametrize("seconds", [7, 45])
def test_a_server_says_in_seconds_how_long_to_wait(seconds: int, pauses: list[float]) -> None:
    with Server(2, after=str(seconds)).running() as url:
        assert ask(url) == [2]
    assert pauses == [seconds, seconds]


@pytest.mark.parametrize(("seconds", "expected"), [(60, 60.0), (-60, 0.05)])
def test_a_server_can_give_a_date(seconds: int, expected: float, pauses: list[float]) -> None:
    """A date that has passed leaves a tenth of the usual pause."""
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)
    with Server(1, after=date).running() as url:
        assert ask(url) == [1]
    (pause,) = pauses
    assert pause == pytest.approx(expected, abs=5.0 if seconds > 0 else 1e-9)


@contextmanager
def dripping(pieces: Iterable[bytes], seconds: float) -> Iterator[str]:
    """The address of a server that answers in pieces, with a pause before each."""
    over = Event()

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    connection.recv(1 << 16)
                    for piece in pieces:
                        if over.wait(seconds):
                            return
                        connection.sendall(piece)

    with create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            with suppress(OSError):
                listener.shutdown(SHUT_RDWR)
            thread.join()


OK = b"HTTP/1.1 200 OK\r\n"
DRIPS: dict[str, list[bytes]] = {
    "status line": [bytes([byte]) for byte in OK * 1_000],
    "headers": [OK, *[b"X-More: and more\r\n"] * 1_000],
    "a header": [OK, b"X-More: ", *[b"m"] * 1_000],
    "100 Continue": [b"HTTP/1.1 100 Continue\r\n\r\n"] * 1_000,
    "body": [OK, b"\r\n", *[b" "] * 1_000],
    "chunks": [OK, b"Transfer-Encoding: chunked\r\n\r\n", *[b"1\r\n \r\n"] * 1_000],
}


@pytest.mark.parametrize("drip", DRIPS)
def test_an_answer_that_drips_ends_with_the_time_limit(drip: str) -> None:
    began = monotonic()
    with dripping(DRIPS[drip], 0.05) as url:
        asking = Client(parse_address(f"{url}#m?timeout=0.3&patience=0.1&concurrency=1"))
        with pytest.raises(ModelError, match=r"took more than 0\.3 seconds"):
            asking.ask_all(url, [{}], lambda _number, answer: answer)
    assert monotonic() - began < 2


def test_no_more_requests_are_under_way_than_asked_for() -> None:
    """Witness: the server's own count."""
    server = Server(0, seconds=0.05)
    with server.running() as url:
        assert sorted(ask(url, 12, concurrency=3)) == list(range(12))
    assert server.most == 3


def test_a_notebook_whose_loop_runs_can_ask() -> None:
    async def cell() -> Any:
        return ask(url, 3)

    with Server(0).running() as url:
        assert sorted(asyncio.run(cell())) == [0, 1, 2]


def test_garbage_collection_on_the_loop_closes_a_client() -> None:
    clients = [Client(parse_address("http://127.0.0.1:1/v1#m"))]
    portal = clients[0]._portal
    loop = portal.call(current_thread)
    portal.call(clients.clear)
    loop.join(10)
    assert not loop.is_alive()
