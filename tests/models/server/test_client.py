"""Pauses between retries, and concurrent requests, tested with servers that count requests."""

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


class CountingServer(FakeServer):
    """Answers with the number of the request after some seconds; refuses the first requests.

    Attributes:
        max_under_way: largest number of concurrent requests.
    """

    def __init__(self, n_refused: int, seconds: float = 0.0, retry_after: str = "") -> None:
        super().__init__(lambda _row: np.empty((0, 0)), None)
        self.n_refused, self.seconds = n_refused, seconds
        self.headers = {"Retry-After": retry_after} if retry_after else {}
        self.n_requests = self.under_way = self.max_under_way = 0

    def respond(self, path: str, body: Any, key: str) -> Reply:
        del path, body, key
        with self.lock:
            request_number = self.n_requests
            self.n_requests += 1
            self.under_way += 1
            self.max_under_way = max(self.max_under_way, self.under_way)
        sleep(self.seconds)
        with self.lock:
            self.under_way -= 1
        return Reply(request_number, 503 if request_number < self.n_refused else 200, self.headers)


def send_requests(url: str, n: int = 1, *, patience: float = 1_000.0, concurrency: int = 1) -> Any:
    options = f"timeout=20&patience={patience}&concurrency={concurrency}"
    request_client = Client(parse_address(f"{url}#m?{options}"))
    return request_client.ask_all(url, [{}] * n, lambda _number, answer: answer)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses on a clock that only pauses advance; random pauses have their maximum length."""
    pauses_made: list[float] = []

    async def wait(seconds: float) -> None:
        pauses_made.append(seconds)

    monkeypatch.setattr(client, "sleep", wait)
    monkeypatch.setattr(client, "monotonic", lambda: sum(pauses_made))
    monkeypatch.setattr(random, "uniform", lambda _low, high: high)
    return pauses_made


def test_pauses_double_from_half_a_second_to_30_seconds(pauses: list[float]) -> None:
    with CountingServer(9).running() as url:
        assert send_requests(url) == [9]
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]


def test_patience_ends_before_a_pause_that_would_exceed_it(pauses: list[float]) -> None:
    server = CountingServer(99)
    with server.running() as url, pytest.raises(ModelError, match="for 20 seconds: status 503"):
        send_requests(url, patience=20.0)
    assert server.n_requests == 6
    assert pauses == [0.5, 1, 2, 4, 8]  # 15.5 seconds; the next pause would take 16


def test_server_can_set_the_pause_in_seconds(pauses: list[float]) -> None:
    with CountingServer(2, retry_after="45").running() as url:
        assert send_requests(url) == [2]
    assert pauses == [45, 45]


@pytest.mark.parametrize(("seconds", "expected"), [(60, 60.0), (-60, 0.05)])
def test_dates_set_the_pause(seconds: int, expected: float, pauses: list[float]) -> None:
    """A date in the past gives a tenth of the usual pause."""
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)
    with CountingServer(1, retry_after=date).running() as url:
        assert send_requests(url) == [1]
    (pause,) = pauses
    assert pause == pytest.approx(expected, abs=5.0 if seconds > 0 else 1e-9)


@contextmanager
def run_dripping_server(pieces: Iterable[bytes], seconds: float) -> Iterator[str]:
    """Yield the address of a server that answers in pieces, with a pause before each piece."""
    stop = Event()

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    connection.recv(1 << 16)
                    for piece in pieces:
                        if stop.wait(seconds):
                            return
                        connection.sendall(piece)

    with create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            stop.set()
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
def test_slow_answers_end_at_the_time_limit(drip: str) -> None:
    start = monotonic()
    with run_dripping_server(DRIPS[drip], 0.05) as url:
        request_client = Client(parse_address(f"{url}#m?timeout=0.3&patience=0.1&concurrency=1"))
        with pytest.raises(ModelError, match=r"took more than 0\.3 seconds"):
            request_client.ask_all(url, [{}], lambda _number, answer: answer)
    assert monotonic() - start < 2


def test_concurrent_requests_do_not_exceed_the_limit() -> None:
    """Witness: the server's own count."""
    server = CountingServer(0, seconds=0.05)
    with server.running() as url:
        assert sorted(send_requests(url, 12, concurrency=3)) == list(range(12))
    assert server.max_under_way == 3


def test_requests_work_within_a_running_event_loop() -> None:
    async def cell() -> Any:
        return send_requests(url, 3)

    with CountingServer(0).running() as url:
        assert sorted(asyncio.run(cell())) == [0, 1, 2]


def test_garbage_collection_closes_a_client() -> None:
    clients = [Client(parse_address("http://127.0.0.1:1/v1#m"))]
    portal = clients[0]._portal
    loop = portal.call(current_thread)
    portal.call(clients.clear)
    loop.join(10)
    assert not loop.is_alive()
