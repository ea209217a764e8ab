"""Address of a served model, and its options.

    server:http://host:8000/v1#org/model?tokenizer=DIR&dialect=vllm

Before the `#` stands the address of the server, after it the name that the model has there, and
after the `?` options. Signs that have a meaning here (`@ + & %`) are written in an option as `%40`,
`%2B`, `%26` and `%25`.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, fields
from math import inf
from typing import Annotated, Literal
from urllib.parse import unquote, urlsplit

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import TypeAdapter, ValidationError

from contstim.errors import ModelError

KEY_VARIABLE = "CONTSTIM_SERVER_KEY"
"""The environment variable that holds the key of a server that wants one."""

_LARGEST_TOLERANCE = 0.05


@dataclass(frozen=True)
class ServerAddress:
    """A parsed address.

    Attributes:
        url: of the server, without a slash at its end; it never holds a key.
        model: the name that the model has on the server.
        tokenizer: a folder or a name on the hub.
        dialect: what is asked of the server, see `service`.
        concurrency: how many requests are under way at once.
        batch: how many sentences a request holds.
        timeout: seconds that one answer may take.
        patience: seconds for which a request is tried again before the work is given up.
        tolerance: the share of a score by which it may differ between requests.
        window: how many tokens the model reads; None for what the server tells.
        max_tokens: how many tokens a server is asked to generate where none are wanted, 0 or 1.
        draft: the specification of a local model whose scores resemble the server's, if any.
    """

    url: str
    model: str
    tokenizer: Annotated[str, MinLen(1)]
    dialect: Literal["completions", "vllm", "sglang"] = "completions"
    concurrency: Annotated[int, Ge(1), Le(10**6)] = 8
    batch: Annotated[int, Ge(1), Le(10**6)] = 8
    timeout: Annotated[float, Gt(0), Lt(inf)] = 120.0
    patience: Annotated[float, Gt(0), Lt(inf)] = 300.0
    tolerance: Annotated[float, Gt(0), Le(_LARGEST_TOLERANCE)] = 1e-3
    window: Annotated[int, Ge(1), Le(10**6)] | None = None
    max_tokens: Annotated[int, Ge(0), Le(1)] = 1
    draft: Annotated[str, MinLen(1)] | None = None

    @property
    def text(self) -> str:
        """Server and model, for messages."""
        return f"{self.url}#{self.model}"

    @property
    def root(self) -> str:
        """The server's address without `/v1`, where its own dialect and its version are."""
        return self.url.removesuffix("/v1")


_OPTIONS = tuple(field.name for field in fields(ServerAddress))[2:]
_ADAPTER = TypeAdapter(ServerAddress)


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
            f"The address of a server, which is written into records, holds neither a user, nor a "
            f"password, nor a query. A key goes into the environment variable {KEY_VARIABLE}."
        )
    try:
        split = urlsplit(url)
        host = (split.hostname or "").encode("idna")  # as connections look it up
        valid = split.scheme in {"http", "https"} and bool(host) and split.port != 0
    except ValueError:  # the host cannot be one, or the port is no number
        valid = False
    if not (valid and url.isascii() and url.isprintable() and " " not in url):
        example = "server:http://host:8000/v1#model?tokenizer=DIR"
        raise ModelError(f"{url!r} is not the address of a server; write {example}.")
    if not model:
        raise ModelError(f"{url} is not followed by the name of a model; write server:{url}#model.")
    given: dict[str, str] = {}
    for pair in filter(None, options.split("&")):
        name, _, text = pair.partition("=")
        if name not in _OPTIONS:
            raise ModelError(
                f"{name!r} is not an option of a server; there are {', '.join(_OPTIONS)}. A key "
                f"goes into the environment variable {KEY_VARIABLE}."
            )
        if name in given:
            raise ModelError(f"The option {name!r} of {url}#{model} is given once.")
        given[name] = unquote(text)
    model = unquote(model)
    parts = {"url": url.rstrip("/"), "model": model, "tokenizer": model}
    try:
        return _ADAPTER.validate_python(parts | given)
    except ValidationError as error:
        (detail, *_) = error.errors()
        # Without the value, which may be a key in the wrong place
        rule = detail["msg"].partition(" should ")[2]
        raise ModelError(f"The option {detail['loc'][0]!r} of {url}#{model} must {rule}.") from None


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
