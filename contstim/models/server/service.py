"""Token ids in, checked values out, in the dialects of servers.

Every answer is checked against what was sent, not only those of the probes: as many values as
tokens, for the same tokens where the server tells which, numbers, none above 0.

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
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from contstim.models.server.client import (
    FIRST_PATIENCE,
    PassingError,
    ServerFault,
    ServerFaultError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.models.server.address import ServerAddress

    Tokens: TypeAlias = tuple[int, ...]
    Echo: TypeAlias = tuple[list["EchoedRow"], int | None, str]
    from contstim.arrays import FloatArray
    from contstim.models.server.client import Client


FLOOR = -9999.0
"""What vLLM writes for minus infinity, which JSON does not have; no model comes near it."""

_DIGITS = "[0-9]{1,9}"  # of a token's id

_PLAIN = {"temperature": 1.0, "top_p": 1.0}
"""The settings under which a server generates by the model's own probabilities."""


class EchoedRow(NamedTuple):
    """Answer of a server about the tokens of one row that it was sent.

    Attributes:
        values: log-probability of each token, nats, None where the server gives none; the values of
            tokens that it generated are still among them.
        ids: the tokens that they belong to; None if the server does not tell.
        text: what the row's tokens stand for, white space aside; empty if it does not tell.
    """

    values: tuple[float | None, ...]
    ids: Tokens | None
    text: str


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
        tokens = logprobs.get("tokens")
        ids = [_id(token) for token in tokens] if isinstance(tokens, list) else [""]
        told = tuple(i for i in ids if isinstance(i, int))
        known = told[: len(values)] if len(told) == len(ids) else None
        rows.append(EchoedRow(values, known, _text(choice.get("text"))))
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
            facts.append(by_id[key] if isinstance(by_id.get(key), dict) else {})
        text = "".join(str(fact.get("decoded_token") or "") for fact in facts)
        rows.append(EchoedRow(_values(f.get("logprob") for f in facts), tuple(ids), text))
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
        rows.append(EchoedRow(_values(value for value, _, _ in entries), told, text))
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
        raise PassingError("an answer has values without a token or a text.", few=True)
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


def _text(text: object) -> str:
    return text if isinstance(text, str) else ""


def _n_read(usage: Any) -> int | None:
    n_read = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return n_read if isinstance(n_read, int) else None


def _identity(answer: Any) -> str:
    return f"{answer.get('model') or ''} {answer.get('system_fingerprint') or ''}".strip()


ONE_MODEL = "Scores of the two must not be mixed: serve one model, and start the work again."

_SLACK = 1e-3  # nats above 0 that rounding may leave in half precision
_CAPS = (20, 5, 1)  # how many alternatives servers tell: vLLM 20, OpenAI 5
_OF_REQUESTS = frozenset({400, 422})  # statuses of servers that do not know a field or its value


class ScoringService:
    """A model on a server that reads rows of token ids.

    Args:
        client: sends the requests.
        tokenizer: a `transformers` tokenizer, to read tokens that a server tells as texts.

    Attributes:
        address: of the server and its model.
        dialect: what is asked, and where the answer stands.
        cap: how many alternatives the server tells, once it has been asked.
        texts: what the rows of the last call stand for, white space aside; empty if not told.
    """

    def __init__(self, client: Client, tokenizer: Any) -> None:
        self.client, self.address = client, client.address
        self.dialect = DIALECTS[self.address.dialect]
        self.cap = _CAPS[0]
        self.texts: list[str] = []
        self._tokenizer = tokenizer
        self._identity: str | None = None

    def echo(
        self, rows: Sequence[Tokens], *, batch: int | None = None, longest: float = math.inf
    ) -> list[FloatArray]:
        """Log-probability of each token of each row given those before it, (n_tokens,), nats.

        The value of the first token, before which there is nothing, is nan.

        Args:
            rows: two tokens or more each.
            batch: how many rows a request holds; by default what the address says.
            longest: seconds after which patience is at an end in any case.

        Raises:
            ServerFaultError: an answer does not fit what was sent.
            ModelError: see `Client.ask_all`.
        """
        size = batch or self.address.batch
        parts = [rows[start : start + size] for start in range(0, len(rows), size)]

        bodies = [self.dialect.echo(self.address, part) for part in parts]
        values: list[FloatArray] = []
        self.texts = []
        answers = self.client.ask_all(
            self.url(self.dialect.url),
            bodies,
            lambda number, answer: self.dialect.reads_echo(answer, parts[number]),
            longest=longest,
        )
        for sent, (echoed, n_read, identity) in zip(parts, answers, strict=True):
            self._check_identity(identity)
            # What was read in all is looked at last: the rows themselves say more
            values += [self._checked(row, told) for row, told in zip(sent, echoed, strict=True)]
            n_sent = sum(map(len, sent))
            if n_read not in {None, n_sent}:
                what = f"It was sent {n_sent} tokens and says that it read {n_read}."
                self.refuse(ServerFault.OTHER_TOKENS, what)
            self.texts += [row.text for row in echoed]
        return values

    def alternatives(self, prefixes: Sequence[Tokens]) -> list[dict[int, float]]:
        """The likeliest next tokens after each prefix and their log-probabilities, nats.

        Raises:
            ServerFaultError: a value is not a log-probability, or see `Client.ask_all`.
            ModelError: see `Client.ask_all`.
        """

        def read(_: int, answer: Any) -> dict[int, float]:
            likeliest = self.dialect.reads_alternatives(answer)
            ids = {self._id(token): value for token, value in likeliest.items()}
            for value in ids.values():
                self._check_value(value, "A token that it tells")
            return {token: value for token, value in ids.items() if token is not None}

        url = self.url(self.dialect.url)
        while True:
            bodies = [self.dialect.alternatives(self.address, row, self.cap) for row in prefixes]
            try:
                return self.client.ask_all(url, bodies, read)
            except ServerFaultError as error:
                # A server that tells fewer alternatives refuses to tell more
                fewer = [cap for cap in _CAPS if cap < self.cap]
                if error.status not in _OF_REQUESTS or not fewer:
                    raise
                self.cap = fewer[0]

    def settle_fields(self, row: Tokens) -> None:
        """Leave out what a server does not know, if it refuses a request for that.

        Raises:
            ModelError: it refuses the request without it too.
        """
        try:
            self.echo([row], longest=FIRST_PATIENCE)
        except ServerFaultError as error:
            if error.status not in _OF_REQUESTS or not self.dialect.asks_ids:
                raise
            self.dialect = replace(self.dialect, asks_ids={})
            self.echo([row])

    def url(self, template: str) -> str:
        """An address of the server, from one of the dialect's."""
        return template.format(url=self.address.url, root=self.address.root)

    def refuse(self, fault: ServerFault, detail: str) -> NoReturn:
        """Refuse the server.

        Raises:
            ServerFaultError: always.
        """
        raise ServerFaultError(self.address.text, fault, detail)

    def _check_identity(self, identity: str) -> None:
        if self._identity not in {None, identity}:
            what = f"Its answers called it {self._identity!r} and now {identity!r}. {ONE_MODEL}"
            self.refuse(ServerFault.CHANGED, what)
        self._identity = identity

    def _checked(self, sent: Tokens, row: EchoedRow) -> FloatArray:
        """The values of the tokens that were sent, nan for the first."""
        n, values, most = len(sent), row.values, self.address.max_tokens
        # ids of tokens that were generated follow those of the tokens that were sent; -1 is where
        # nothing is told
        read = row.ids and row.ids[: max(n, len(values) - most)]
        same = read is None or (
            len(read) == n and all(i in {-1, j} for i, j in zip(read, sent, strict=True))
        )
        if not same or not 0 <= len(values) - n <= most:
            told = "." if read is None else f" of the tokens {_shortened(read)}."
            what = f"It was sent the {n} tokens {_shortened(sent)} and answered with {len(values)}"
            self.refuse(ServerFault.OTHER_TOKENS, f"{what} values{told}")
        # Before the first token there is nothing to predict it from: a value there means that the
        # server has read something else first. Some write 0 in place of nothing.
        if values[0] not in {None, 0.0}:
            what = (
                f"It says {values[0]:.3f} nats for the first token, {sent[0]}, before which there"
            )
            self.refuse(ServerFault.OTHER_TOKENS, f"{what} is nothing.")
        for place, value in enumerate(values[1:n], 1):
            self._check_value(value, f"Token {place + 1} of {n}, {sent[place]},")
        checked: FloatArray = np.array([np.nan, *values[1:n]], np.float64)
        return np.minimum(checked, 0.0)

    def _check_value(self, value: float | None, token: str) -> None:
        if value is None or not FLOOR < value <= _SLACK:
            given = "none" if value is None else f"{value:g}"
            self.refuse(
                ServerFault.NO_LOG_PROB,
                f"{token} has {given}; models leave some probability to every token. Look at its "
                f"log (half precision may overflow) and at settings that forbid tokens.",
            )

    def _id(self, token: int | str) -> int | None:
        """The id of a token that a server tells, None where its text leaves that open."""
        return token if isinstance(token, int) else self._id_of_text.get(token)

    @cached_property
    def _id_of_text(self) -> dict[str, int | None]:
        """The token that stands for a text; None where there are several."""
        ids: dict[str, int | None] = {}
        for token in sorted(self._tokenizer.get_vocab().values()):
            text = self._tokenizer.decode([token], clean_up_tokenization_spaces=False)
            ids[text] = None if text in ids else token
        return ids


def _shortened(ids: Tokens) -> str:
    shown = " ".join(map(str, ids[:8]))
    return f"{shown} …" if len(ids) > 8 else shown
