"""HTTP client with retries, time limits, concurrent requests and persistent connections.

Requests are retried after temporary failures. Temporary failures are: a refused or broken
connection, a timeout, a truncated response, and the statuses 408, 425, 429, 500 and 502 to 504. The
pause between retries doubles from half a second to half a minute, unless the server sets the pause
(`Retry-After`). Retries end after `patience` seconds, an option of the address, or after three
responses without the expected fields.
"""

from __future__ import annotations

import asyncio
import math
import random
from contextlib import ExitStack, suppress
from email.utils import parsedate_to_datetime
from functools import partial
from threading import Thread, get_ident
from time import monotonic, time
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import finalize

import httpx2
from anyio import fail_after, sleep
from anyio.from_thread import start_blocking_portal

from contstim.errors import ModelError
from contstim.models.server.address import KEY_VARIABLE, ServerAddress, host_variable, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_Result = TypeVar("_Result")

FIRST_PATIENCE = 10.0
"""Maximum time for retrying the first requests, seconds; short, because the server may not exist.
"""

FORMAT_ERRORS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors that parsing functions raise for a response of unexpected format."""

_FIRST_PAUSE, _MAX_PAUSE = 0.5, 30.0  # seconds
_TEMPORARY_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})
_TRIES = 3  # a request fails after this number of responses without the expected fields
_MAX_MESSAGE_LENGTH = 300  # characters of a server's message to report


class ServerFaultError(ModelError):
    """Raised if a server cannot be used.

    Args:
        address: address of the server.
        fault: reason, as a clause.
        detail: details and remedy.
        status: HTTP status of the refused request; 200 if the server refused no request.
    """

    def __init__(self, address: str, fault: str, detail: str, status: int = 200) -> None:
        self.status = status
        super().__init__(f"{address} cannot be used: {fault}. {detail}")


class PassingError(Exception):
    """Raised for a failure after which a retry of the request may succeed.

    Args:
        message: description of the failure.
        pause: waiting time set by the server, seconds; None if the server sets none.
        few: whether to retry only a few times, because the response lacks expected fields.
    """

    def __init__(self, message: str, pause: float | None = None, *, few: bool = False) -> None:
        super().__init__(message)
        self.pause, self.few = pause, few


class Client:
    """HTTP client of one server.

    The key is sent as a bearer token, and never occurs in messages.
    """

    def __init__(self, address: ServerAddress) -> None:
        self.address = address
        key, stack = key_of(address), ExitStack()
        # The event loop has its own thread, because in a notebook, this thread already runs a loop
        self._portal = stack.enter_context(start_blocking_portal())
        http = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {key}"} if key else None,
            limits=httpx2.Limits(),  # no limits, since `ask_all` limits concurrent requests
            verify=address.url.startswith("https") and httpx2.create_ssl_context(),
            timeout=None,  # `_exchange` limits the time of the whole response
            trust_env=False,
        )
        self._http = stack.enter_context(self._portal.wrap_async_context_manager(http))
        # Close sockets when the object is deleted, because open sockets cause warnings
        finalize(self, _close_client, stack, self._portal.call(get_ident))

    def ask_all(
        self,
        url: str,
        bodies: Sequence[object],
        read: Callable[[int, Any], _Result],
        *,
        longest: float = math.inf,
    ) -> list[_Result]:
        """Send requests concurrently, and return the parsed responses in the order of requests.

        Args:
            url: URL of the requests.
            bodies: bodies of the requests, sent as JSON; None for a GET request.
            read: function that parses a response. Its arguments are the index of the request and
                the JSON of the response. If `read` raises one of `FORMAT_ERRORS`, the request is
                retried.
            longest: maximum time of retries, seconds. If `patience` of the address is shorter,
                `patience` is used instead.

        Raises:
            ServerFaultError: if the server refuses a request, or if `read` raises this error.
            ModelError: if a request still fails at the end of its retries.
        """
        limiter = asyncio.Semaphore(self.address.concurrency)
        patience = min(self.address.patience, longest)

        async def ask(index: int, body: object) -> _Result:
            async with limiter:
                return await self._ask(url, body, partial(read, index), patience)

        async def ask_all() -> list[_Result]:
            tasks = [asyncio.ensure_future(ask(*pair)) for pair in enumerate(bodies)]
            try:
                return await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()

        # After the first failure or Ctrl-C, cancel all other requests
        future = self._portal.start_task_soon(ask_all)
        try:
            return future.result()
        finally:
            future.cancel()

    def get(self, url: str) -> Any | None:
        """Return the JSON at a URL of the server; None if the server refuses the request.

        Raises:
            ServerFaultError: if the server requires a key.
            ModelError: if the server cannot be reached.
        """
        try:
            return self.ask_all(url, [None], lambda _, answer: answer, longest=FIRST_PATIENCE)[0]
        except ServerFaultError as error:
            if error.status in {401, 403}:
                raise
            return None

    async def _ask(
        self, url: str, body: object, read: Callable[[Any], _Result], patience: float
    ) -> _Result:
        began, pause, n_incomplete = monotonic(), _FIRST_PAUSE, 0
        while True:
            try:
                return await self._exchange(url, body, read)
            except PassingError as problem:
                n_incomplete += problem.few
                if n_incomplete == _TRIES:
                    fault = "its answer is incomplete"
                    detail = (
                        f"{_TRIES} answers were incomplete. Problem of the last answer: {problem} "
                        "Check the option `dialect` of the address, which names the format of the "
                        "server's requests and responses."
                    )
                    raise ServerFaultError(self.address.url, fault, detail) from None
                # The pause is random, because requests that failed together should not be retried
                # together
                wait = pause * random.uniform(0.5, 1.0)
                if problem.pause is not None:
                    wait = max(problem.pause, wait / 10)  # above 0, even if the server sets 0
                if monotonic() - began + wait > patience:
                    raise ModelError(
                        f"{self.address.url} has given no usable answer for {patience:g} seconds: "
                        f"{problem} Finished scores are stored. Run the command again when the "
                        "server works, or raise `patience` in the address."
                    ) from None
            await sleep(wait)
            pause = min(2 * pause, _MAX_PAUSE)

    async def _exchange(self, url: str, body: object, read: Callable[[Any], _Result]) -> _Result:
        limit = self.address.timeout
        try:
            with fail_after(limit):
                method = "GET" if body is None else "POST"
                response = await self._http.request(method, url, json=body)
        except TimeoutError:
            raise PassingError(f"an answer took more than {limit:g} seconds.") from None
        except httpx2.RequestError as error:
            raise PassingError(f"{self._message_without_key(error)}.") from None
        if response.status_code != 200:
            raise self._refusal(response)
        try:
            answer = response.json()
        except (ValueError, RecursionError):
            raise PassingError("an answer is not JSON, or truncated.") from None
        try:
            return read(answer)
        except FORMAT_ERRORS:
            raise PassingError("an answer has an unexpected format.", few=True) from None

    def _refusal(self, response: httpx2.Response) -> PassingError | ServerFaultError:
        status = response.status_code
        text = " ".join(self._message_without_key(response.text).split())[:_MAX_MESSAGE_LENGTH]
        if status in _TEMPORARY_STATUSES:
            pause = _seconds(response.headers.get("Retry-After", ""))
            return PassingError(f"status {status}: {text}.", pause)
        detail = (
            f"Status {status}: {text}. Check the address, the model, and the option `dialect` of "
            "the address, which names the format of the server's requests and responses."
        )
        if status in {401, 403}:
            variables = f"{host_variable(self.address)} or {KEY_VARIABLE}"
            detail = f"It needs a key. Put the key into the environment variable {variables}."
        return ServerFaultError(self.address.url, "it rejects a request", detail, status)

    def _message_without_key(self, error: object) -> str:
        """Return a message without the key, which the server may have included."""
        text, key = str(error) or type(error).__name__, key_of(self.address)
        return text.replace(key, "…") if key else text


def _close_client(stack: ExitStack, loop_thread: int) -> None:
    """Close a client. Garbage collection may call this function in the event loop's thread."""
    if get_ident() == loop_thread:  # the loop cannot wait for its own end
        Thread(target=stack.close).start()
    else:
        stack.close()


def _seconds(retry_after: str) -> float | None:
    """Return the pause of a `Retry-After` header (seconds or a date), or None."""
    with suppress(ValueError):
        return max(0.0, float(retry_after))
    with suppress(ValueError, OverflowError):  # not a date, or a year out of range
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time())
    return None
