"""Address of a served model, and its options.

    server:http://host:8000/v1#org/model?tokenizer=DIR&dialect=vllm

Before the `#` stands the address of the server, after it the name that the model has there, and
after the `?` options. Signs that have a meaning here (`@ + & %`) are written in an option as `%40`,
`%2B`, `%26` and `%25`.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from contstim.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable

KEY_VARIABLE = "CONTSTIM_SERVER_KEY"
"""The environment variable that holds the key of a server that wants one."""

DIALECTS = ("completions", "vllm", "sglang")


@dataclass(frozen=True)
class ServerAddress:
    """A parsed address.

    Attributes:
        url: of the server, without a slash at its end; it never holds a key.
        model: the name that the model has on the server.
        tokenizer: a folder or a name on the hub.
        dialect: a member of `DIALECTS`.
        concurrency: how many requests are under way at once.
        batch: how many sentences a request holds.
        timeout: seconds that one answer may take.
        patience: seconds for which a request is tried again before the work is given up.
        tolerance: the share of a score by which it may differ between requests.
        window: how many tokens the model reads; None for what the server tells.
        max_tokens: how many tokens a server is asked to generate where none are wanted, 0 or 1.
        draft: the specification of a local model whose scores resemble the server's; or empty.
    """

    url: str
    model: str
    tokenizer: str
    dialect: str = "completions"
    concurrency: int = 8
    batch: int = 8
    timeout: float = 120.0
    patience: float = 300.0
    tolerance: float = 1e-3
    window: int | None = None
    max_tokens: int = 1
    draft: str = ""

    @property
    def text(self) -> str:
        """Server and model, for messages."""
        return f"{self.url}#{self.model}"

    @property
    def root(self) -> str:
        """The server's address without `/v1`, where its own dialect and its version are."""
        return self.url.removesuffix("/v1")


def parse_address(location: str) -> ServerAddress:
    """Read `http://host:8000/v1#model?option=value&…`.

    Raises:
        ModelError: it is not such an address, or holds what could be a key, which no message
            repeats.
    """
    url, _, rest = location.partition("#")
    model, _, options = rest.partition("?")
    # Anywhere, since a password with a slash in it ends the part that holds the host
    if "@" in url or "?" in url:
        raise ModelError(
            f"The address of a server holds neither a user, nor a password, nor a query: addresses "
            f"are written into records. If the server wants a key, set the environment variable "
            f"{KEY_VARIABLE}."
        )
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna")  # as connections look it up
        valid = parts.scheme in {"http", "https"} and bool(host) and parts.port != 0
    except ValueError:  # the host cannot be one, or the port is no number
        valid = False
    valid = valid and url.isascii() and url.isprintable() and " " not in url
    if not valid:
        raise ModelError(
            f"{url!r} is not the address of a server; write "
            f"server:http://host:8000/v1#model?tokenizer=DIR."
        )
    if not model:
        raise ModelError(
            f"{url} is not followed by the name of a model; write server:{url}#model, with the "
            f"name by which the server knows it."
        )
    values: dict[str, Any] = {}
    for pair in filter(None, options.split("&")):
        name, equals, text = pair.partition("=")
        if name not in _OPTIONS:
            raise ModelError(
                f"{name!r} is not an option of a server; there are {', '.join(_OPTIONS)}. A key is "
                f"never one: set the environment variable {KEY_VARIABLE}."
            )
        allowed, read = _OPTIONS[name]
        try:
            if not equals or name in values:
                raise ValueError
            values[name] = read(unquote(text))
        except ValueError:
            raise ModelError(
                f"The option {name!r} of {url}#{model} is given once, as {allowed}."
            ) from None
    model = unquote(model)
    return ServerAddress(url.rstrip("/"), model, values.pop("tokenizer", model), **values)


def key_of(address: ServerAddress) -> str | None:
    """The key for a server, from the environment; None where there is none.

    A variable with the server's name, such as `CONTSTIM_SERVER_KEY_API_EXAMPLE_COM`, comes before
    the one for all servers.
    """
    for variable in (host_variable(address), KEY_VARIABLE):
        if os.environ.get(variable):
            return os.environ[variable]
    return None


def host_variable(address: ServerAddress) -> str:
    """The environment variable for the key of this server alone."""
    # The port belongs to it: two servers of one machine may want two keys
    return f"{KEY_VARIABLE}_{re.sub('[^A-Z0-9]', '_', urlsplit(address.url).netloc.upper())}"


def _text(text: str) -> str:
    if not text:
        raise ValueError
    return text


def _dialect(text: str) -> str:
    if text not in DIALECTS:
        raise ValueError
    return text


def _count(text: str) -> int:
    if not (text.isdecimal() and 1 <= int(text) <= 1_000_000):
        raise ValueError
    return int(text)


def _positive(text: str) -> float:
    if not (math.isfinite(float(text)) and float(text) > 0):
        raise ValueError
    return float(text)


def _share(text: str) -> float:
    if not 0 < float(text) <= _LARGEST_TOLERANCE:
        raise ValueError
    return float(text)


def _none_or_single(text: str) -> int:
    if text not in {"0", "1"}:
        raise ValueError
    return int(text)


_LARGEST_TOLERANCE = 0.05

# What each option may be, and the function that reads it or raises a ValueError
_OPTIONS: dict[str, tuple[str, Callable[[str], object]]] = {
    "tokenizer": ("a folder or a name on the hub", _text),
    "dialect": (f"one of {', '.join(DIALECTS)}", _dialect),
    "concurrency": ("a whole number, at least 1", _count),
    "batch": ("a whole number, at least 1", _count),
    "timeout": ("seconds above 0", _positive),
    "patience": ("seconds above 0", _positive),
    "tolerance": (f"a share of a score above 0 and at most {_LARGEST_TOLERANCE}", _share),
    "window": ("a whole number of tokens, at least 1", _count),
    "max_tokens": ("0 or 1", _none_or_single),
    "draft": ("the specification of a local model", _text),
}
