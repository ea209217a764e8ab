"""Dialects of servers: what is asked of a server, and where its answer stands.

Two questions, in three dialects. `echo`: what is the log-probability of each of these tokens given
those before it? `alternatives`: which tokens may come next, and how likely are they? For tokens
`[0, 71, 9]` the three answer the first one so:

    completions  choices[0].logprobs           tokens          ["token_id:0", "token_id:71", …]
                                               token_logprobs  [null, -2.5, -0.7, -1.2]
    vllm         choices[0].prompt_logprobs    [null, {"71": {"logprob": -2.5, …}}, {"9": …}]
    sglang       [0].meta_info                 input_token_logprobs
                                               [[null, 0, "<s>"], [-2.5, 71, "The"], [-0.7, 9, …]]

The fourth value of `completions` is of a token that was generated after them, and is cut off.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from contstim.models.server.client import PassingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.models.server.address import ServerAddress

    Tokens: TypeAlias = tuple[int, ...]

FLOOR = -9999.0
"""What vLLM writes for minus infinity, which JSON does not have; no model comes near it."""

_DIGITS = "[0-9]{1,9}"  # of a token's id

_PLAIN = {"temperature": 1.0, "top_p": 1.0}
"""The settings under which a server generates by the model's own probabilities."""


@dataclass(frozen=True)
class EchoedRow:
    """Answer of a server about the tokens of one row that it was sent.

    Attributes:
        values: log-probability of each token, nats, None where the server gives none; the values of
            tokens that it generated are still among them.
        ids: the tokens that they belong to; None if the server does not tell.
        text: what the row's tokens stand for, white space aside; None if it does not tell.
    """

    values: tuple[float | None, ...]
    ids: Tokens | None
    text: str | None


@dataclass(frozen=True)
class EchoAnswer:
    """Answer of a server about all rows of a request.

    Attributes:
        rows: one for each row that was sent, in that order.
        n_read: how many tokens the server says it has read in all; None if it does not say.
        identity: what the answer says about the model behind it.
    """

    rows: tuple[EchoedRow, ...]
    n_read: int | None
    identity: tuple[str, ...]


@dataclass(frozen=True)
class Dialect(ABC):
    """A way to ask a server and to read its answers.

    Attributes:
        address: of the server and its model.
        asks_ids: whether to ask for ids of tokens in place of their texts; some servers refuse.
    """

    address: ServerAddress
    asks_ids: bool = True

    @property
    @abstractmethod
    def url(self) -> str:
        """Address that requests go to."""

    @abstractmethod
    def echo(self, rows: Sequence[Tokens]) -> dict[str, Any]:
        """A request for the log-probabilities of the tokens of rows."""

    @abstractmethod
    def read_echo(self, answer: Any, sent: Sequence[Tokens]) -> EchoAnswer:
        """The answer to `echo` for the rows that were sent.

        Raises:
            PassingError: the answer lacks something, and may be whole when asked for again.
        """

    @abstractmethod
    def alternatives(self, prefix: Tokens, n: int) -> dict[str, Any]:
        """A request for the n likeliest tokens after a prefix."""

    @abstractmethod
    def read_alternatives(self, answer: Any) -> dict[int | str, float]:
        """Tokens, as ids or as texts, and their log-probabilities, nats.

        Raises:
            PassingError: see `read_echo`.
        """

    @abstractmethod
    def version_urls(self) -> tuple[str, ...]:
        """Addresses at which the server may tell its version and its model."""


@dataclass(frozen=True)
class CompletionsDialect(Dialect):
    """OpenAI's completions with `echo`, as vLLM and others speak it."""

    @property
    def url(self) -> str:
        """See `Dialect.url`."""
        return f"{self.address.url}/completions"

    def echo(self, rows: Sequence[Tokens]) -> dict[str, Any]:
        """See `Dialect.echo`."""
        return self._request(rows, self.address.max_tokens) | {"echo": True, "logprobs": 1}

    def read_echo(self, answer: Any, sent: Sequence[Tokens]) -> EchoAnswer:
        """See `Dialect.read_echo`."""
        rows = []
        for choice in _choices(answer, len(sent)):
            logprobs = _member(choice, "logprobs", dict)
            values = _values(_member(logprobs, "token_logprobs", list))
            tokens = logprobs.get("tokens")
            ids = _ids(tokens) if isinstance(tokens, list) else None
            if ids is not None:
                ids = ids[: len(values)]
            text = choice.get("text")
            rows.append(EchoedRow(values, ids, text if isinstance(text, str) else None))
        return EchoAnswer(tuple(rows), _n_read(answer), _identity(answer))

    def alternatives(self, prefix: Tokens, n: int) -> dict[str, Any]:
        """See `Dialect.alternatives`."""
        return self._request([prefix], 1) | {"logprobs": n}

    def read_alternatives(self, answer: Any) -> dict[int | str, float]:
        """See `Dialect.read_alternatives`."""
        (choice,) = _choices(answer, 1)
        logprobs = _member(choice, "logprobs", dict)
        likeliest = _member(logprobs, "top_logprobs", list)
        if not likeliest or not isinstance(likeliest[0], dict):
            return {}
        pairs = zip(likeliest[0], _values(likeliest[0].values()), strict=True)
        return {_id(token): value for token, value in pairs if value is not None}

    def version_urls(self) -> tuple[str, ...]:
        """See `Dialect.version_urls`."""
        return (f"{self.address.root}/version",)

    def _request(self, rows: Sequence[Tokens], max_tokens: int) -> dict[str, Any]:
        ids = {"return_tokens_as_token_ids": True} if self.asks_ids else {}
        model, prompt = self.address.model, [list(row) for row in rows]
        return {"model": model, "prompt": prompt, "max_tokens": max_tokens} | _PLAIN | ids


@dataclass(frozen=True)
class PromptLogprobsDialect(CompletionsDialect):
    """vLLM's own `prompt_logprobs`."""

    def echo(self, rows: Sequence[Tokens]) -> dict[str, Any]:
        """See `Dialect.echo`; vLLM generates a token at least."""
        return self._request(rows, 1) | {"prompt_logprobs": 1}

    def read_echo(self, answer: Any, sent: Sequence[Tokens]) -> EchoAnswer:
        """See `Dialect.read_echo`."""
        rows = []
        for choice, tokens in zip(_choices(answer, len(sent)), sent, strict=True):
            # Nothing is told of the first token; the others have an entry each, in which the
            # likeliest token may stand beside the one that was sent
            ids, facts = [], []
            for place, entry in enumerate(_member(choice, "prompt_logprobs", list)):
                by_id = entry if isinstance(entry, dict) else {}
                expected = str(tokens[place]) if place < len(tokens) else ""
                key = expected if expected in by_id else str(next(iter(by_id), ""))
                ids.append(int(key) if re.fullmatch(_DIGITS, key) else -1)
                fact = by_id.get(key)
                facts.append(fact if isinstance(fact, dict) else {})
            text = "".join(str(fact.get("decoded_token") or "") for fact in facts)
            values = _values(fact.get("logprob") for fact in facts)
            rows.append(EchoedRow(values, tuple(ids), text or None))
        return EchoAnswer(tuple(rows), _n_read(answer), _identity(answer))


@dataclass(frozen=True)
class GenerateDialect(Dialect):
    """SGLang's `/generate`."""

    @property
    def url(self) -> str:
        """See `Dialect.url`."""
        return f"{self.address.root}/generate"

    def echo(self, rows: Sequence[Tokens]) -> dict[str, Any]:
        """See `Dialect.echo`."""
        return self._request(rows, self.address.max_tokens) | {"logprob_start_len": 0}

    def read_echo(self, answer: Any, sent: Sequence[Tokens]) -> EchoAnswer:
        """See `Dialect.read_echo`."""
        rows, n_read, identity = [], 0, set()
        facts = self._facts(answer, len(sent))
        for fact in facts:
            entries = _triples(_member(fact, "input_token_logprobs", list))
            ids = tuple(int(i) for _, i, _ in entries if isinstance(i, int))
            texts = [text for _, _, text in entries if isinstance(text, str)]
            rows.append(
                EchoedRow(
                    _values(value for value, _, _ in entries),
                    ids if len(ids) == len(entries) else None,
                    "".join(texts) or None,
                )
            )
            n_read += fact["prompt_tokens"] if isinstance(fact.get("prompt_tokens"), int) else 0
            identity.add(str(fact.get("weight_version", "")))
        told = all(isinstance(fact.get("prompt_tokens"), int) for fact in facts)
        return EchoAnswer(tuple(rows), n_read if told else None, tuple(sorted(identity)))

    def alternatives(self, prefix: Tokens, n: int) -> dict[str, Any]:
        """See `Dialect.alternatives`."""
        return self._request([prefix], 1) | {"top_logprobs_num": n}

    def read_alternatives(self, answer: Any) -> dict[int | str, float]:
        """See `Dialect.read_alternatives`."""
        (fact,) = self._facts(answer, 1)
        likeliest = _member(fact, "output_top_logprobs", list)
        entries = _triples(likeliest[0]) if likeliest and likeliest[0] else []
        values = _values(value for value, _, _ in entries)
        pairs = zip(entries, values, strict=True)
        return {int(i): v for (_, i, _), v in pairs if isinstance(i, int) and v is not None}

    def version_urls(self) -> tuple[str, ...]:
        """See `Dialect.version_urls`; older servers have the second."""
        return f"{self.address.root}/server_info", f"{self.address.root}/get_server_info"

    def _request(self, rows: Sequence[Tokens], max_tokens: int) -> dict[str, Any]:
        return {
            "input_ids": [list(row) for row in rows],
            "sampling_params": {"max_new_tokens": max_tokens} | _PLAIN,
            "return_logprob": True,
            "return_text_in_logprobs": True,
        }

    @staticmethod
    def _facts(answer: Any, n_rows: int) -> list[dict[str, Any]]:
        answers = answer if isinstance(answer, list) else [answer]
        if len(answers) != n_rows:
            raise PassingError(
                f"an answer has {len(answers)} parts in place of {n_rows}.", few=True
            )
        return [_member(part, "meta_info", dict) for part in answers]


def dialect_of(address: ServerAddress) -> Dialect:
    """The dialect that an address names."""
    kinds: dict[str, type[Dialect]] = {
        "completions": CompletionsDialect,
        "vllm": PromptLogprobsDialect,
        "sglang": GenerateDialect,
    }
    return kinds[address.dialect](address)


def _member(part: Any, name: str, kind: type[Any]) -> Any:
    value = part.get(name) if isinstance(part, dict) else None
    if not isinstance(value, kind):
        raise PassingError(f"an answer has no {name!r} of the form expected.", few=True)
    return value


def _choices(answer: Any, n_rows: int) -> list[dict[str, Any]]:
    """The parts of an answer, in the order of the rows that were sent."""
    choices = _member(answer, "choices", list)
    by_index = {str(c.get("index", i)): c for i, c in enumerate(choices) if isinstance(c, dict)}
    # Neither fewer than were asked for, nor one in place of another
    if len(choices) != n_rows or set(by_index) != set(map(str, range(n_rows))):
        raise PassingError(f"an answer has {len(choices)} parts in place of {n_rows}.", few=True)
    return [by_index[str(i)] for i in range(n_rows)]


def _values(entries: Iterable[Any]) -> tuple[float | None, ...]:
    """Numbers in nats; nan for what is neither a number nor missing."""
    values: list[float | None] = []
    for entry in entries:
        if entry is None:
            values.append(None)
        elif isinstance(entry, int | float) and not isinstance(entry, bool):
            try:
                values.append(float(entry))
            except OverflowError:  # a whole number of hundreds of digits
                values.append(math.nan)
        else:
            values.append(math.nan)
    return tuple(values)


def _triples(entries: Any) -> list[tuple[Any, Any, Any]]:
    """SGLang's (value, id, text)."""
    told = entries if isinstance(entries, list) else [entries]
    if not all(isinstance(entry, list) and len(entry) == 3 for entry in told):
        raise PassingError(
            "an answer has values in another form than value, token and text.", few=True
        )
    return [(value, token, text) for value, token, text in told]


def _id(token: object) -> int | str:
    """The id in `token_id:71`; any other text as it stands."""
    match = re.fullmatch(f"token_id:({_DIGITS})", str(token))
    return int(match[1]) if match else str(token)


def _ids(tokens: Sequence[object]) -> Tokens | None:
    ids = tuple(i for i in map(_id, tokens) if isinstance(i, int))
    return ids if len(ids) == len(tokens) else None


def _n_read(answer: Any) -> int | None:
    usage = answer.get("usage")
    n_read = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return n_read if isinstance(n_read, int) else None


def _identity(answer: Any) -> tuple[str, ...]:
    return str(answer.get("model") or ""), str(answer.get("system_fingerprint") or "")
