"""HTTP with retries, time limits, several requests at once, and connections that are kept.

What may pass is tried again: refused and broken connections, time limits, status 408, 425, 429 and
500 to 504, answers that are cut off. The pauses double from half a second to half a minute, unless
the server says how long to wait (`Retry-After`), until the patience for the request is at an end.
"""

from __future__ import annotations

import json
import math
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from email.utils import parsedate_to_datetime
from enum import Enum
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from socket import SHUT_RDWR
from threading import Event, Lock, Timer
from time import monotonic, time
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from weakref import finalize

from contstim.errors import ModelError
from contstim.models.server.address import KEY_VARIABLE, host_variable, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from socket import socket

    from contstim.models.server.address import ServerAddress

_Result = TypeVar("_Result")

FIRST_PATIENCE = 10.0
"""Seconds for a server that may not be there at all, or not speak the dialect."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0  # seconds
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_TRIES = 3  # of a request whose answers are whole and lack something
_LARGEST = 1 << 26  # bytes of an answer, a thousand times those of eight sentences
_LONGEST_TEXT = 300  # characters of a server's message that are repeated


class ServerFault(Enum):
    """A reason to refuse a server; the value is the sentence that the user reads."""

    REFUSES = "it refuses a request"
    INCOMPLETE = "its answer lacks a part of what was asked"
    TOO_LARGE = "its answer is larger than any that can be meant"
    OTHER_TOKENS = "it reads other tokens than those that it was sent"
    NO_LOG_PROB = "it gives a token no value, or one that cannot be a log-probability"
    ROUNDED = "its values are rounded"
    OTHER_VALUES = "its values are not the log-probabilities by which it generates"
    INVENTED = "its values of unlikely tokens are made up"
    UNSTABLE = "its values depend on the order or the number of requests"
    UNTESTABLE = "it tells too little when it generates for its values to be checked"
    OTHER_TOKENIZER = "its tokens stand for other texts than those of the tokenizer"
    UNKNOWN_MODEL = "it has no model of that name"
    CHANGED = "the model behind the address, or what it says, is another than before"


class ServerFaultError(ModelError):
    """A server is refused.

    Attributes:
        fault: why.
        status: of HTTP, where the server refuses a request.
    """

    def __init__(self, address: str, fault: ServerFault, detail: str, status: int = 200) -> None:
        self.fault, self.status = fault, status
        super().__init__(f"{address} cannot be used: {fault.value}. {detail}")


class PassingError(Exception):
    """A failure after which the same request may succeed.

    Args:
        message: what happened.
        pause: seconds that the server asks to wait; None if it does not say.
        few: whether it is a whole answer that lacks something, so that few tries are enough.
    """

    def __init__(self, message: str, pause: float | None = None, *, few: bool = False) -> None:
        super().__init__(message)
        self.pause, self.few = pause, few


class Client:
    """Requests to one server.

    Its key is sent as a bearer token; it is in no message, nor in the object's text.

    Args:
        address: of the server.
    """

    def __init__(self, address: ServerAddress) -> None:
        parts = urlsplit(address.url)
        self.address = address
        self._kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._host = (parts.hostname or "", parts.port)
        self._key = key_of(address)
        self._idle: list[HTTPConnection] = []
        self._busy: set[socket] = set()
        self._lock = Lock()
        # Sockets that nobody closes are reported as leaks when the object is dropped
        finalize(self, _close_all, self._idle)

    def close(self) -> None:
        """Close all connections; the next request opens new ones."""
        with self._lock:
            _close_all(self._idle)

    def ask_all(
        self,
        url: str,
        bodies: Sequence[object],
        read: Callable[[int, Any], _Result],
        *,
        longest: float = math.inf,
    ) -> list[_Result]:
        """Post each body as JSON, several at once, and read the answers, in the bodies' order.

        Args:
            url: where to.
            bodies: what.
            read: a function of a body's number and its answer; it raises `PassingError` for an
                answer that is worth asking for again.
            longest: seconds after which patience is at an end in any case.

        Raises:
            ServerFaultError: a request was refused, or `read` raised it.
            ModelError: a request failed until patience was at an end.
        """
        stop = Event()

        def ask(number: int) -> _Result:
            return self._ask(url, bodies[number], partial(read, number), stop, longest)

        if len(bodies) == 1:
            return [ask(0)]
        with ThreadPoolExecutor(min(self.address.concurrency, len(bodies) or 1)) as pool:
            futures = [pool.submit(ask, number) for number in range(len(bodies))]
            try:
                return [future.result() for future in futures]
            except BaseException:
                # After the first failure, and after Ctrl-C: nothing new is begun, and neither a
                # pause nor an answer is waited for
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                with self._lock:
                    for sock in self._busy:
                        _hang_up(sock)
                raise

    def get(self, url: str) -> Any | None:
        """The JSON at an address of the server, or None where there is none.

        Raises:
            ServerFaultError: the server wants a key.
            ModelError: it cannot be reached.
        """
        try:
            return self._ask(url, None, lambda answer: answer, Event(), FIRST_PATIENCE)
        except ServerFaultError as error:
            if error.status in {401, 403}:
                raise
            return None

    def _ask(
        self,
        url: str,
        body: object | None,
        read: Callable[[Any], _Result],
        stop: Event,
        longest: float,
    ) -> _Result:
        patience = min(self.address.patience, longest)
        began, pause, n_incomplete = monotonic(), _FIRST_PAUSE, 0
        while True:
            try:
                return read(self._exchange(url, body))
            except PassingError as problem:
                n_incomplete += problem.few
                if n_incomplete == _TRIES:
                    what = f"Asked {_TRIES} times, the last time {problem} Is the dialect right?"
                    raise ServerFaultError(self.address.url, ServerFault.INCOMPLETE, what) from None
                # With a share of chance, so that requests that failed together do not come back
                # together
                wait = pause * random.uniform(0.5, 1.0)
                if problem.pause is not None:
                    wait = max(problem.pause, wait / 10)  # a server may well say 0, and mean it
                if stop.is_set() or monotonic() - began + wait > patience:
                    raise ModelError(
                        f"{self.address.url} gave no answer that can be used, for {patience:g} "
                        f"seconds: {problem} Scores so far are kept. Start the work again when the "
                        f"server is well, or wait for longer with '&patience=SECONDS'."
                    ) from None
            stop.wait(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _exchange(self, url: str, body: object | None) -> Any:
        """Send one request over an idle connection or a new one, and read its answer as JSON."""
        limit = self.address.timeout
        with self._lock:
            connection = self._idle.pop() if self._idle else self._kind(*self._host, timeout=limit)
        is_new, over = connection.sock is None, Event()
        try:
            response, text = self._answer(connection, url, body, over)
            if response.length:  # bytes that were promised and did not come
                raise HTTPException("the answer is cut off")
            if over.is_set():  # which may look like the end of an answer
                raise TimeoutError
            with self._lock:
                # A connection that the server has closed has no socket any more
                if connection.sock is not None:
                    self._idle.append(connection)
        except BaseException as error:
            connection.close()
            if not isinstance(error, OSError | HTTPException):
                raise
            if over.is_set() or isinstance(error, TimeoutError):
                raise PassingError(f"an answer took more than {limit:g} seconds.") from None
            # A server may close a connection that was idle for a while, and does no wrong
            raise PassingError(f"{self._plain(error)}.", None if is_new else 0.0) from None
        if response.status != 200:
            raise self._refusal(response.status, text, response.getheader("Retry-After"))
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise PassingError("an answer is not JSON, or is cut off.") from None

    def _answer(
        self, connection: HTTPConnection, url: str, body: object | None, over: Event
    ) -> tuple[HTTPResponse, str]:
        """The answer to a request and its text, unless time is over before they are there."""
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        content = None if body is None else json.dumps(body).encode()
        # From the URL, everything but the server: path and query
        target = urlsplit(url)._replace(scheme="", netloc="").geturl() or "/"

        def expire() -> None:
            over.set()
            _hang_up(sock)

        deadline = monotonic() + self.address.timeout
        if connection.sock is None:
            connection.connect()
        sock = connection.sock  # which the connection forgets where it is closed after the answer
        with self._lock:
            self._busy.add(sock)
        # A socket's own limit is for each piece of an answer, and a server that sends one now and
        # then would keep within it for ever
        alarm = Timer(deadline - monotonic(), expire)
        alarm.start()
        chunks, size = [], 0
        try:
            connection.request("GET" if body is None else "POST", target, content, headers)
            # Closed, it leaves the connection ready for the next request
            with connection.getresponse() as response:
                while chunk := response.read1(1 << 16):
                    chunks.append(chunk)
                    size += len(chunk)
                    if size > _LARGEST:
                        what = f"It has more than {_LARGEST >> 20} MiB. Ask for less: '&batch=1'."
                        raise ServerFaultError(self.address.url, ServerFault.TOO_LARGE, what)
        finally:
            alarm.cancel()
            with self._lock:
                self._busy.discard(sock)
        return response, b"".join(chunks).decode("utf-8", "replace")

    def _refusal(
        self, status: int, text: str, retry_after: str | None
    ) -> PassingError | ServerFaultError:
        said = f"status {status}: " + " ".join(self._plain(text).split())[:_LONGEST_TEXT]
        if status in _PASSING:
            return PassingError(f"{said}.", _seconds(retry_after))
        detail = f"It said {said}. Look at the address, the model's name and the dialect."
        if status in {401, 403}:
            variables = f"{host_variable(self.address)} or {KEY_VARIABLE}"
            detail = f"It wants a key, in the environment variable {variables}."
        return ServerFaultError(self.address.url, ServerFault.REFUSES, detail, status)

    def _plain(self, error: object) -> str:
        """A foreign message, in which the server may have repeated the key."""
        text = str(error) or type(error).__name__
        return text.replace(self._key, "…") if self._key else text


def _seconds(retry_after: str | None) -> float | None:
    """The pause of a `Retry-After` header, which is a number of seconds or a date."""
    if retry_after is None:
        return None
    with suppress(ValueError):
        return max(0.0, float(retry_after))
    with suppress(ValueError, OverflowError):  # a year that no calendar has
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time())
    return None


def _hang_up(sock: socket) -> None:
    """Have whoever waits for an answer wait no longer."""
    with suppress(OSError):  # it is not open
        sock.shutdown(SHUT_RDWR)


def _close_all(connections: list[HTTPConnection]) -> None:
    while connections:
        connections.pop().close()
