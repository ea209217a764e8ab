"""HTTP with retries, time limits, several requests at once, and connections that are kept.

What may pass is tried again: refused and broken connections, time limits, status 408, 425, 429 and
500 to 504, answers that are cut off. The pauses double from half a second to half a minute, unless
the server says how long to wait (`Retry-After`), until the patience for the request is at an end.
"""

from __future__ import annotations

import asyncio
import math
import random
from contextlib import ExitStack, suppress
from email.utils import parsedate_to_datetime
from functools import partial
from time import monotonic, time
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import finalize

import httpx2
from anyio import fail_after, sleep
from anyio.from_thread import start_blocking_portal

from contstim.errors import ModelError
from contstim.models.server.address import KEY_VARIABLE, host_variable, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.models.server.address import ServerAddress

_Result = TypeVar("_Result")

FIRST_PATIENCE = 10.0
"""Seconds for a server that may not be there at all, or not speak the dialect."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0  # seconds
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_TRIES = 3  # of a request whose answers are whole and lack something
_LONGEST_TEXT = 300  # characters of a server's message that are repeated


class ServerFaultError(ModelError):
    """A server is refused.

    Args:
        address: of the server.
        fault: a sentence that says why.
        detail: more about it.
        status: of HTTP, where the server refuses a request.
    """

    def __init__(self, address: str, fault: str, detail: str, status: int = 200) -> None:
        self.status = status
        super().__init__(f"{address} cannot be used: {fault}. {detail}")


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
        self.address = address
        key, opened = key_of(address), ExitStack()
        # A loop in a thread of its own, since in a notebook one runs in this thread
        self._portal = opened.enter_context(start_blocking_portal())
        http = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {key}"} if key else None,
            limits=httpx2.Limits(),  # none: see `ask_all`
            verify=address.url.startswith("https") and httpx2.create_ssl_context(),
            timeout=None,  # of an answer in all, and not of each piece: see `_exchange`
            trust_env=False,
        )
        self._http = opened.enter_context(self._portal.wrap_async_context_manager(http))
        # Sockets that nobody closes are reported as leaks when the object is dropped
        finalize(self, opened.close)

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
            bodies: what; None to get what is there.
            read: a function of a body's number and its answer; it raises `PassingError` for an
                answer that is worth asking for again.
            longest: seconds after which patience is at an end in any case.

        Raises:
            ServerFaultError: a request was refused, or `read` raised it.
            ModelError: a request failed until patience was at an end.
        """
        limiter = asyncio.Semaphore(self.address.concurrency)
        patience = min(self.address.patience, longest)

        async def ask(number: int, body: object) -> _Result:
            async with limiter:
                return await self._ask(url, body, partial(read, number), patience)

        async def ask_all() -> list[_Result]:
            tasks = [asyncio.ensure_future(ask(*each)) for each in enumerate(bodies)]
            try:
                return await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()

        # After the first failure, and after Ctrl-C, all other requests are cancelled
        future = self._portal.start_task_soon(ask_all)
        try:
            return future.result()
        finally:
            future.cancel()

    def get(self, url: str) -> Any | None:
        """The JSON at an address of the server, or None where there is none.

        Raises:
            ServerFaultError: the server wants a key.
            ModelError: it cannot be reached.
        """
        try:
            return self.ask_all(url, [None], lambda _, answer: answer, longest=FIRST_PATIENCE)[0]
        except ServerFaultError as error:
            if error.status in {401, 403}:
                raise
            return None

    async def _ask(
        self,
        url: str,
        body: object,
        read: Callable[[Any], _Result],
        patience: float,
    ) -> _Result:
        began, pause, n_incomplete = monotonic(), _FIRST_PAUSE, 0
        while True:
            try:
                return read(await self._exchange(url, body))
            except PassingError as problem:
                n_incomplete += problem.few
                if n_incomplete == _TRIES:
                    fault = "its answer lacks a part of what was asked"
                    what = f"Asked {_TRIES} times, the last time {problem} Is the dialect right?"
                    raise ServerFaultError(self.address.url, fault, what) from None
                # With a share of chance, so that requests that failed together do not come back
                # together
                wait = pause * random.uniform(0.5, 1.0)
                if problem.pause is not None:
                    wait = max(problem.pause, wait / 10)  # a server may well say 0, and mean it
                if monotonic() - began + wait > patience:
                    raise ModelError(
                        f"{self.address.url} gave no answer that can be used, for {patience:g} "
                        f"seconds: {problem} Scores so far are kept. Start the work again when the "
                        f"server is well, or wait for longer with '&patience=SECONDS'."
                    ) from None
            await sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _exchange(self, url: str, body: object) -> Any:
        """Send one request, and read its answer as JSON."""
        limit = self.address.timeout
        try:
            with fail_after(limit):
                response = await self._http.request(
                    "GET" if body is None else "POST", url, json=body
                )
        except TimeoutError:
            raise PassingError(f"an answer took more than {limit:g} seconds.") from None
        except httpx2.RequestError as error:
            raise PassingError(f"{self._plain(error)}.") from None
        if response.status_code != 200:
            raise self._refusal(response)
        try:
            return response.json()
        except (ValueError, RecursionError):
            raise PassingError("an answer is not JSON, or is cut off.") from None

    def _refusal(self, response: httpx2.Response) -> PassingError | ServerFaultError:
        status = response.status_code
        text = " ".join(self._plain(response.text).split())[:_LONGEST_TEXT]
        if status in _PASSING:
            pause = _seconds(response.headers.get("Retry-After", ""))
            return PassingError(f"status {status}: {text}.", pause)
        detail = f"It said status {status}: {text}. Look at the address, the model and the dialect."
        if status in {401, 403}:
            variables = f"{host_variable(self.address)} or {KEY_VARIABLE}"
            detail = f"It wants a key, in the environment variable {variables}."
        return ServerFaultError(self.address.url, "it refuses a request", detail, status)

    def _plain(self, error: object) -> str:
        """A foreign message, in which the server may have repeated the key."""
        text, key = str(error) or type(error).__name__, key_of(self.address)
        return text.replace(key, "…") if key else text


def _seconds(retry_after: str) -> float | None:
    """The pause of a `Retry-After` header, which is a number of seconds or a date."""
    with suppress(ValueError):
        return max(0.0, float(retry_after))
    with suppress(ValueError, OverflowError):  # no date, or a year that no calendar has
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time())
    return None
