"""Address of a served model, and its options.

    server:http://host:8000/v1#org/model?tokenizer=DIR&dialect=vllm

An address consists of the server's URL, `#`, the model's name on the server, `?`, and options. In
an option, write the reserved characters `@`, `+`, `&` and `%` as `%40`, `%2B`, `%26` and `%25`.
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
"""Environment variable with the key for servers that require one."""


@dataclass(frozen=True)
class ServerAddress:
    """Parsed address of a served model.

    Attributes:
        url: URL of the server, without a final slash; never contains a key.
        tokenizer: tokenizer of the model, a folder or a name on the Hugging Face hub.
        dialect: format of requests and responses, see `service`.
        concurrency: maximum number of concurrent requests.
        batch: maximum number of sentences in a request.
        timeout: maximum time of one response, seconds.
        patience: maximum time for retrying a request, seconds.
        tolerance: maximum difference between scores of one sentence in two requests, relative to
            the score.
        window: maximum number of tokens of an input; None to use the server's value.
        max_tokens: number of tokens to generate after a scored text, 0 or 1. Some servers refuse
            0, others refuse 1.
        draft: specification of a local model with similar scores, which ranks candidates in a
            search; None for no such model.
    """

    url: str
    model: str
    tokenizer: Annotated[str, MinLen(1)]
    dialect: Literal["completions", "vllm", "sglang"] = "completions"
    concurrency: Annotated[int, Ge(1), Le(10**6)] = 8
    batch: Annotated[int, Ge(1), Le(10**6)] = 8
    timeout: Annotated[float, Gt(0), Lt(inf)] = 120.0
    patience: Annotated[float, Gt(0), Lt(inf)] = 300.0
    tolerance: Annotated[float, Gt(0), Le(0.05)] = 1e-3
    window: Annotated[int, Ge(1), Le(10**6)] | None = None
    max_tokens: Annotated[int, Ge(0), Le(1)] = 1
    draft: Annotated[str, MinLen(1)] | None = None

    @property
    def text(self) -> str:
        """Server and model, for messages."""
        return f"{self.url}#{self.model}"

    @property
    def root(self) -> str:
        """URL of the server without `/v1`, for requests that are not in OpenAI's format."""
        return self.url.removesuffix("/v1")


_OPTIONS = tuple(field.name for field in fields(ServerAddress))[2:]
_ADAPTER = TypeAdapter(ServerAddress)


def parse_address(location: str) -> ServerAddress:
    """Parse `http://host:8000/v1#model?option=value&…`.

    Raises:
        ModelError: if `location` is not such an address, or may contain a key. The message does
            not repeat the key.
    """
    url, _, fragment = location.partition("#")
    model, _, options = fragment.partition("?")
    # Search the whole URL, not only the part before the path: a password may contain a slash
    if "@" in url or "?" in url:
        raise ModelError(
            "The address of a server must not contain a user, a password or a query, because the "
            "address is stored in records. Put a key into the environment variable "
            f"{KEY_VARIABLE}."
        )
    try:
        split = urlsplit(url)
        host = (split.hostname or "").encode("idna")  # as the client does
        valid = split.scheme in {"http", "https"} and bool(host) and split.port != 0
    except ValueError:  # invalid host or port
        valid = False
    if not (valid and url.isascii() and url.isprintable() and " " not in url):
        example = "server:http://host:8000/v1#model?tokenizer=DIR"
        raise ModelError(f"{url!r} is not the address of a server. Write {example}.")
    if not model:
        raise ModelError(f"{url} must be followed by a model's name, as in server:{url}#model.")
    values: dict[str, str] = {}
    for pair in filter(None, options.split("&")):
        name, _, text = pair.partition("=")
        if name not in _OPTIONS:
            raise ModelError(
                f"The option of a server must be one of {', '.join(_OPTIONS)}, got {name!r}. "
                f"Put a key into the environment variable {KEY_VARIABLE}."
            )
        if name in values:
            raise ModelError(f"The option {name!r} of {url}#{model} must occur only once.")
        values[name] = unquote(text)
    model = unquote(model)
    parts = {"url": url.rstrip("/"), "model": model, "tokenizer": model}
    try:
        return _ADAPTER.validate_python(parts | values)
    except ValidationError as error:
        (detail, *_) = error.errors()
        # The message omits the value, which may be a misplaced key
        rule = detail["msg"].partition(" should ")[2]
        raise ModelError(f"The option {detail['loc'][0]!r} of {url}#{model} must {rule}.") from None


def key_of(address: ServerAddress) -> str | None:
    """Return the key for a server from the environment, or None.

    A variable for this server, such as `CONTSTIM_SERVER_KEY_API_EXAMPLE_COM` for
    `api.example.com`, has priority over `CONTSTIM_SERVER_KEY`, the variable for all servers.
    """
    return os.environ.get(host_variable(address)) or os.environ.get(KEY_VARIABLE) or None


def host_variable(address: ServerAddress) -> str:
    """Return the name of the environment variable for the key of this server."""
    # The name contains the port, since two servers on one machine may require different keys
    return f"{KEY_VARIABLE}_{re.sub('[^A-Z0-9]', '_', urlsplit(address.url).netloc.upper())}"
