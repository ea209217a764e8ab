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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from contstim.models.server.client import PassingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.models.server.address import ServerAddress

    Tokens: TypeAlias = tuple[int, ...]
    Echo: TypeAlias = tuple[list["EchoedRow"], int | None, str]

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
class Dialect:
    """A way to ask a server and to read its answers.

    Attributes:
        url: where requests go to; `{root}` is the address without `/v1`.
        version_urls: where the server may tell its version.
        request: a request about rows of tokens, after each of which so many are generated.
        asks_echo: fields that ask for the log-probabilities of the rows' tokens.
        asks_alternatives: the field that asks for so many of the likeliest next tokens.
        reads_echo: makes of an answer, and of the rows that were sent, a row each, the number of
            tokens that the server says it has read, if it does, and what it says of its model.
        reads_alternatives: makes of an answer tokens, as ids or as texts, and their
            log-probabilities, nats. Both raise `PassingError` for an answer that lacks something,
            and may be whole when asked for again.
        asks_ids: fields that ask for ids of tokens in place of their texts; some servers refuse.
        least_generated: number of tokens to be generated where none are wanted.
    """

    url: str
    version_urls: tuple[str, ...]
    request: Callable[[ServerAddress, list[list[int]], int], dict[str, Any]]
    asks_echo: dict[str, Any]
    asks_alternatives: str
    reads_echo: Callable[[Any, Sequence[Tokens]], Echo]
    reads_alternatives: Callable[[Any], dict[int | str, float]]
    asks_ids: dict[str, Any]
    least_generated: int = 0

    def echo(self, address: ServerAddress, rows: Sequence[Tokens]) -> dict[str, Any]:
        """A request for the log-probabilities of the tokens of rows."""
        n_generated = max(address.max_tokens, self.least_generated)
        sent = [list(row) for row in rows]
        return self.request(address, sent, n_generated) | self.asks_ids | self.asks_echo

    def alternatives(self, address: ServerAddress, prefix: Tokens, n: int) -> dict[str, Any]:
        """A request for the n likeliest tokens after a prefix."""
        sent = self.request(address, [list(prefix)], 1)
        return sent | self.asks_ids | {self.asks_alternatives: n}


def _completion(address: ServerAddress, rows: list[list[int]], n: int) -> dict[str, Any]:
    return {"model": address.model, "prompt": rows, "max_tokens": n} | _PLAIN


def _generation(_address: ServerAddress, rows: list[list[int]], n: int) -> dict[str, Any]:
    return {
        "input_ids": rows,
        "sampling_params": {"max_new_tokens": n} | _PLAIN,
        "return_logprob": True,
        "return_text_in_logprobs": True,
    }


def _echoed_completions(answer: Any, sent: Sequence[Tokens]) -> Echo:
    rows = []
    for choice in _choices(answer, len(sent)):
        logprobs = _member(choice, "logprobs", dict)
        values = _values(_member(logprobs, "token_logprobs", list))
        tokens, text = logprobs.get("tokens"), choice.get("text")
        ids = tuple(map(_id, tokens)) if isinstance(tokens, list) else ()
        known = tuple(i for i in ids if isinstance(i, int))[: len(values)]
        told = isinstance(tokens, list) and all(isinstance(i, int) for i in ids)
        rows.append(EchoedRow(values, known if told else None, _text(text)))
    return rows, _n_read(answer.get("usage")), _identity(answer)


def _echoed_prompts(answer: Any, sent: Sequence[Tokens]) -> Echo:
    rows = []
    for choice, tokens in zip(_choices(answer, len(sent)), sent, strict=True):
        # Nothing is told of the first token; the others have an entry each, in which the likeliest
        # token may stand beside the one that was sent
        ids, facts = [], []
        for place, entry in enumerate(_member(choice, "prompt_logprobs", list)):
            by_id = entry if isinstance(entry, dict) else {}
            expected = str(tokens[place]) if place < len(tokens) else ""
            key = expected if expected in by_id else str(next(iter(by_id), ""))
            ids.append(int(key) if re.fullmatch(_DIGITS, key) else -1)
            fact = by_id.get(key)
            facts.append(fact if isinstance(fact, dict) else {})
        text = "".join(str(fact.get("decoded_token") or "") for fact in facts)
        rows.append(EchoedRow(_values(f.get("logprob") for f in facts), tuple(ids), _text(text)))
    return rows, _n_read(answer.get("usage")), _identity(answer)


def _likeliest_completions(answer: Any) -> dict[int | str, float]:
    (choice,) = _choices(answer, 1)
    likeliest = _member(_member(choice, "logprobs", dict), "top_logprobs", list)
    if not likeliest or not isinstance(likeliest[0], dict):
        return {}
    pairs = zip(likeliest[0], _values(likeliest[0].values()), strict=True)
    return {_id(token): value for token, value in pairs if value is not None}


def _echoed_generations(answer: Any, sent: Sequence[Tokens]) -> Echo:
    rows = []
    facts = _facts(answer, len(sent))
    for fact in facts:
        entries = _triples(_member(fact, "input_token_logprobs", list))
        ids = tuple(i for _, i, _ in entries if isinstance(i, int))
        text = "".join(text for _, _, text in entries if isinstance(text, str))
        told = ids if len(ids) == len(entries) else None
        rows.append(EchoedRow(_values(value for value, _, _ in entries), told, _text(text)))
    read = [n for n in map(_n_read, facts) if n is not None]
    identity = " ".join(sorted({str(fact.get("weight_version", "")) for fact in facts}))
    return rows, sum(read) if len(read) == len(rows) else None, identity


def _likeliest_generations(answer: Any) -> dict[int | str, float]:
    (fact,) = _facts(answer, 1)
    likeliest = _member(fact, "output_top_logprobs", list)
    entries = _triples(likeliest[0]) if likeliest and likeliest[0] else []
    pairs = zip(entries, _values(value for value, _, _ in entries), strict=True)
    return {i: v for (_, i, _), v in pairs if isinstance(i, int) and v is not None}


_COMPLETIONS: dict[str, Any] = {
    "url": "{url}/completions",
    "version_urls": ("{root}/version",),
    "request": _completion,
    "asks_alternatives": "logprobs",
    "reads_alternatives": _likeliest_completions,
    "asks_ids": {"return_tokens_as_token_ids": True},
}
DIALECTS = {
    # OpenAI's completions with `echo`, as vLLM and others speak it
    "completions": Dialect(
        asks_echo={"echo": True, "logprobs": 1}, reads_echo=_echoed_completions, **_COMPLETIONS
    ),
    # vLLM's own `prompt_logprobs`; it generates a token at least
    "vllm": Dialect(
        asks_echo={"prompt_logprobs": 1},
        reads_echo=_echoed_prompts,
        least_generated=1,
        **_COMPLETIONS,
    ),
    "sglang": Dialect(
        url="{root}/generate",
        version_urls=("{root}/server_info", "{root}/get_server_info"),  # the second of old ones
        request=_generation,
        asks_echo={"logprob_start_len": 0},
        asks_alternatives="top_logprobs_num",
        reads_echo=_echoed_generations,
        reads_alternatives=_likeliest_generations,
        asks_ids={},
    ),
}


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


def _facts(answer: Any, n_rows: int) -> list[dict[str, Any]]:
    """What SGLang says of each row."""
    answers = answer if isinstance(answer, list) else [answer]
    if len(answers) != n_rows:
        raise PassingError(f"an answer has {len(answers)} parts in place of {n_rows}.", few=True)
    return [_member(part, "meta_info", dict) for part in answers]


def _triples(entries: Any) -> list[tuple[Any, Any, Any]]:
    """SGLang's (value, id, text)."""
    told = entries if isinstance(entries, list) else [entries]
    if not all(isinstance(entry, list) and len(entry) == 3 for entry in told):
        raise PassingError(
            "an answer has values in another form than value, token and text.", few=True
        )
    return [(value, token, text) for value, token, text in told]


def _values(entries: Iterable[Any]) -> tuple[float | None, ...]:
    """Numbers in nats; nan for what is neither a number nor missing."""
    return tuple(None if entry is None else _number(entry) for entry in entries)


def _number(entry: Any) -> float:
    try:
        return float(entry) if type(entry) in (int, float) else math.nan
    except OverflowError:  # a whole number of hundreds of digits
        return math.nan


def _id(token: object) -> int | str:
    """The id in `token_id:71`; any other text as it stands."""
    match = re.fullmatch(f"token_id:({_DIGITS})", str(token))
    return int(match[1]) if match else str(token)


def _text(text: object) -> str | None:
    return text if isinstance(text, str) and text else None


def _n_read(usage: Any) -> int | None:
    n_read = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return n_read if isinstance(n_read, int) else None


def _identity(answer: Any) -> str:
    return f"{answer.get('model') or ''} {answer.get('system_fingerprint') or ''}".strip()
