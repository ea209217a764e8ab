"""Requests with token ids, and checks of the responses, in the dialects of servers.

There are two kinds of requests. `echo` requests the log-probability of each token given the tokens
before it. `alternatives` requests the likeliest next tokens and their log-probabilities.

A response to `echo` must have one finite value for each token except the first, and no value above
0. If the server reports tokens, they must be the tokens of the request.

A dialect is the format in which one kind of server reads requests and writes responses. For the
tokens `[0, 71, 9]`, the responses to `echo` are:

    completions  choices[0].logprobs           tokens          ["token_id:0", "token_id:71", …]
                                               token_logprobs  [null, -2.5, -0.7, -1.2]
    vllm         choices[0].prompt_logprobs    [null, {"71": {"logprob": -2.5, …}}, {"9": …}]
    sglang       [0].meta_info                 input_token_logprobs
                                               [[null, 0, "<s>"], [-2.5, 71, "The"], [-0.7, 9, …]]

The fourth value of `completions` belongs to a generated token and is dropped.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from contstim.models.server.client import FIRST_PATIENCE, Client, ServerFaultError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.files.arrays import FloatArray
    from contstim.models.words import Tokens

    Row: TypeAlias = tuple[list[float | None], list[int] | None, str]
    Echo: TypeAlias = tuple[list[Row], int | None, str]

FLOOR = -9999.0
"""vLLM's value for minus infinity, for which JSON has no number."""

OTHER_TOKENS = "it reads other tokens than those sent"
CHANGED = "the model at the address, or its answers, have changed"
ONE_MODEL = "Scores of two models must not be mixed. Serve one model, and run the command again."

_SLACK = 1e-3  # nats; a value may exceed 0 by this rounding error of half precision
_CAPS = (20, 5, 1)  # numbers of alternatives to request, in this order; vLLM allows 20, OpenAI 5
_BAD_REQUEST = frozenset({400, 422})  # statuses for an unknown field or value
# With these settings, a server samples from the unmodified probabilities
_UNMODIFIED = {"temperature": 1.0, "top_p": 1.0}


@dataclass(frozen=True)
class Dialect:
    """Format of the requests and responses of a server.

    Attributes:
        url: URL of requests: a template in which `{url}` is the URL in the address, and `{root}` is
            this URL without `/v1`.
        version_urls: URLs that may return the server's version, as templates.
        request: function that returns the body of a request. Its arguments are the model, the rows
            of tokens, and the number of tokens to generate after each row.
        asks_echo: fields that request the log-probabilities of the rows' tokens.
        asks_alternatives: field for the requested number of likeliest next tokens.
        reads_echo: function of a response and the rows sent to the server. The function returns
            three values for each row: the log-probabilities of the row's tokens and of generated
            tokens, nats (None if missing); the ids of these tokens (or None); and the text of these
            tokens. The function also returns the number of tokens that the server has read (or
            None), and the server's description of the model. The function raises one of
            `FORMAT_ERRORS` if the response has an unexpected format.
        reads_alternatives: function of a response that returns tokens, as ids or texts, with their
            log-probabilities, nats. The function raises errors as `reads_echo` does.
        asks_ids: fields that request token ids instead of texts. Some servers refuse these fields.
        least_generated: minimum number of tokens to generate.
    """

    url: str
    version_urls: tuple[str, ...]
    request: Callable[[str, Sequence[Tokens], int], dict[str, Any]]
    asks_echo: dict[str, Any]
    asks_alternatives: str
    reads_echo: Callable[[Any, Sequence[Tokens]], Echo]
    reads_alternatives: Callable[[Any], dict[int | str, float]]
    asks_ids: dict[str, Any]
    least_generated: int = 0


def _completion(model: str, rows: Sequence[Tokens], n: int) -> dict[str, Any]:
    return {"model": model, "prompt": rows, "max_tokens": n} | _UNMODIFIED


def _generation(_model: str, rows: Sequence[Tokens], n: int) -> dict[str, Any]:
    return {
        "input_ids": rows,
        "sampling_params": {"max_new_tokens": n} | _UNMODIFIED,
        "return_logprob": True,
        "return_text_in_logprobs": True,
    }


def _echoed_completions(answer: Any, sent: Sequence[Tokens]) -> Echo:
    rows: list[Row] = []
    for choice in _choices(answer, len(sent)):
        values = _values(choice["logprobs"]["token_logprobs"])
        ids = [_id(token) for token in choice["logprobs"].get("tokens") or [""]]
        numeric = [i for i in ids if isinstance(i, int)]
        row_ids = numeric[: len(values)] if len(numeric) == len(ids) else None
        rows.append((values, row_ids, str(choice.get("text") or "")))
    return rows, _n_read(answer.get("usage")), _identity(answer)


def _echoed_prompts(answer: Any, sent: Sequence[Tokens]) -> Echo:
    rows: list[Row] = []
    for choice, tokens in zip(_choices(answer, len(sent)), sent, strict=True):
        # The entry of the first token is empty. The other entries have the id of their token as a
        # key, and may have the id of the likeliest token as a second key
        ids, facts = [], []
        expected = chain(map(str, tokens), repeat(""))
        for entry, token in zip(choice["prompt_logprobs"], expected, strict=False):
            by_id = entry or {}
            key = token if token in by_id else next(iter(by_id), "-1")
            ids.append(int(key))
            facts.append(by_id.get(key) or {})
        text = "".join(str(fact.get("decoded_token") or "") for fact in facts)
        rows.append((_values(fact.get("logprob") for fact in facts), ids, text))
    return rows, _n_read(answer.get("usage")), _identity(answer)


def _likeliest_completions(answer: Any) -> dict[int | str, float]:
    (choice,) = _choices(answer, 1)
    likeliest = choice["logprobs"]["top_logprobs"][0]
    pairs = zip(likeliest, _values(likeliest.values()), strict=True)
    return {_id(token): value for token, value in pairs if value is not None}


def _echoed_generations(answer: Any, sent: Sequence[Tokens]) -> Echo:
    rows: list[Row] = []
    facts = _facts(answer, len(sent))
    for fact in facts:
        values, ids, texts = zip(*fact["input_token_logprobs"], strict=True)
        rows.append((_values(values), [int(i) for i in ids], "".join(text or "" for text in texts)))
    counts = [_n_read(fact) for fact in facts]
    identity = " ".join(sorted({str(fact.get("weight_version", "")) for fact in facts}))
    return rows, None if None in counts else sum(filter(None, counts)), identity


def _likeliest_generations(answer: Any) -> dict[int | str, float]:
    (fact,) = _facts(answer, 1)
    pairs = [(int(token), value) for value, token, _ in fact["output_top_logprobs"][0]]
    return {token: float(value) for token, value in pairs if value is not None}


_COMPLETIONS = Dialect(  # OpenAI's completions with `echo`
    url="{url}/completions",
    version_urls=("{root}/version",),
    request=_completion,
    asks_echo={"echo": True, "logprobs": 1},
    asks_alternatives="logprobs",
    reads_echo=_echoed_completions,
    reads_alternatives=_likeliest_completions,
    asks_ids={"return_tokens_as_token_ids": True},
)
DIALECTS = {
    "completions": _COMPLETIONS,
    # vLLM's native `prompt_logprobs`; vLLM generates at least one token
    "vllm": replace(
        _COMPLETIONS,
        asks_echo={"prompt_logprobs": 1},
        reads_echo=_echoed_prompts,
        least_generated=1,
    ),
    "sglang": Dialect(
        url="{root}/generate",
        # `get_server_info` is the URL of old versions
        version_urls=("{root}/server_info", "{root}/get_server_info"),
        request=_generation,
        asks_echo={"logprob_start_len": 0},
        asks_alternatives="top_logprobs_num",
        reads_echo=_echoed_generations,
        reads_alternatives=_likeliest_generations,
        asks_ids={},
    ),
}


def _choices(answer: Any, n_rows: int) -> list[dict[str, Any]]:
    """Return the part of a response for each row."""
    by_index = {int(c.get("index", i)): c for i, c in enumerate(answer["choices"])}
    if len(answer["choices"]) != n_rows:
        raise LookupError
    return [by_index[i] for i in range(n_rows)]


def _facts(answer: Any, n_rows: int) -> list[dict[str, Any]]:
    """Return the metadata of each row in a response of SGLang."""
    answers = answer if isinstance(answer, list) else [answer]
    if len(answers) != n_rows:
        raise LookupError
    return [part["meta_info"] for part in answers]


def _values(entries: Iterable[Any]) -> list[float | None]:
    return [None if entry is None else float(entry) for entry in entries]


def _id(token: object) -> int | str:
    """Return 71 for `token_id:71`, and any other text unchanged."""
    match = re.fullmatch("token_id:([0-9]{1,9})", str(token))
    return int(match[1]) if match else str(token)


def _n_read(usage: Any) -> int | None:
    n_read = usage.get("prompt_tokens") if usage else None
    return None if n_read is None else int(n_read)


def _identity(answer: Any) -> str:
    return f"{answer.get('model') or ''} {answer.get('system_fingerprint') or ''}".strip()


class ScoringService:
    """Model on a server; the model reads rows of token ids.

    Args:
        client: client that sends the requests.
        tokenizer: `transformers` tokenizer, for the ids of tokens that a server reports as texts.

    Attributes:
        cap: number of likeliest next tokens to request; lowered if the server refuses this number.
        texts: text of each row of the last `echo`; empty if the server does not report texts.
        version: version of the server; empty if the server does not report it.
        window: maximum number of tokens of an input; None if the server does not report it.
        probes: rows of tokens with which `probes.probe_server` tests the server, and the values of
            these tokens, nats.
    """

    def __init__(self, client: Client, tokenizer: Any) -> None:
        self.client, self.address = client, client.address
        self.dialect = DIALECTS[self.address.dialect]
        self.cap = _CAPS[0]
        self.texts: list[str] = []
        self.version = ""
        self.window: int | None = None
        self.probes: list[tuple[Tokens, FloatArray]] = []
        self._tokenizer = tokenizer
        self._identity: str | None = None

    def echo(
        self, rows: Sequence[Tokens], *, batch: int | None = None, longest: float = math.inf
    ) -> list[FloatArray]:
        """Return log p of each row's tokens given earlier tokens, (n_tokens,) each, nats.

        The value of the first token is nan.

        Args:
            rows: rows of at least two tokens each.
            batch: number of rows in a request; by default `batch` of the address.
            longest: maximum time of retries, seconds. If `patience` of the address is shorter,
                `patience` is used instead.

        Raises:
            ServerFaultError: if a response does not match its request.
            ModelError: see `Client.ask_all`.
        """
        size, dialect, address = batch or self.address.batch, self.dialect, self.address
        parts = [rows[start : start + size] for start in range(0, len(rows), size)]
        n = max(address.max_tokens, dialect.least_generated)
        fields = dialect.asks_ids | dialect.asks_echo
        answers = self.client.ask_all(
            self.url(dialect.url),
            [dialect.request(address.model, part, n) | fields for part in parts],
            lambda index, answer: dialect.reads_echo(answer, parts[index]),
            longest=longest,
        )
        values: list[FloatArray] = []
        self.texts = []
        for sent, (echoed, n_read, identity) in zip(parts, answers, strict=True):
            if self._identity not in {None, identity}:
                detail = f"Its identity was {self._identity!r} and is now {identity!r}. {ONE_MODEL}"
                self.refuse(CHANGED, detail)
            self._identity = identity
            # Check the total number of tokens after the rows, since an error message about one row
            # is more specific
            for row, (row_values, ids, text) in zip(sent, echoed, strict=True):
                values.append(self._check_row(row, row_values, ids))
                self.texts.append(text)
            n_sent = sum(map(len, sent))
            if n_read not in {None, n_sent}:
                self.refuse(OTHER_TOKENS, f"It received {n_sent} tokens, but reports {n_read}.")
        return values

    def alternatives(self, prefixes: Sequence[Tokens]) -> list[dict[int, float]]:
        """Return the likeliest next tokens after each prefix, with their log-probabilities, nats.

        Raises:
            ServerFaultError: if a value is not a log-probability; for other reasons, see
                `Client.ask_all`.
            ModelError: see `Client.ask_all`.
        """
        dialect = self.dialect

        def parse_alternatives(_: int, answer: Any) -> dict[int, float]:
            likeliest = dialect.reads_alternatives(answer)
            for value in likeliest.values():
                self._check_value(value, "A returned token")
            ids = ((t if isinstance(t, int) else self._id_of_text.get(t)) for t in likeliest)
            pairs = zip(ids, likeliest.values(), strict=True)
            return {token: value for token, value in pairs if token is not None}

        while True:
            fields = dialect.asks_ids | {dialect.asks_alternatives: self.cap}
            bodies = [dialect.request(self.address.model, [row], 1) | fields for row in prefixes]
            try:
                return self.client.ask_all(self.url(dialect.url), bodies, parse_alternatives)
            except ServerFaultError as error:
                # A server refuses requests for more alternatives than its maximum
                if error.status not in _BAD_REQUEST or self.cap == _CAPS[-1]:
                    raise
                self.cap = _CAPS[_CAPS.index(self.cap) + 1]

    def settle_fields(self, row: Tokens) -> None:
        """Try a request that asks for token ids. If the server refuses it, never ask for ids again.

        Raises:
            ModelError: if the server also refuses the request for texts instead of ids.
        """
        try:
            self.echo([row], longest=FIRST_PATIENCE)
        except ServerFaultError as error:
            if error.status not in _BAD_REQUEST or not self.dialect.asks_ids:
                raise
            self.dialect = replace(self.dialect, asks_ids={})
            self.echo([row])

    def url(self, template: str) -> str:
        """Return a URL of the server, given a template of the dialect."""
        return template.format(url=self.address.url, root=self.address.root)

    def refuse(self, fault: str, detail: str) -> NoReturn:
        """Raise a `ServerFaultError`."""
        raise ServerFaultError(self.address.text, fault, detail)

    def _check_row(
        self, sent: Tokens, values: list[float | None], ids: list[int] | None
    ) -> FloatArray:
        """Check a response to a row; return the values of the row's tokens, nan for the first."""
        n, max_generated = len(sent), self.address.max_tokens
        # Drop the ids of generated tokens; -1 means that the server has not reported an id
        read_ids = None if ids is None else ids[: max(n, len(values) - max_generated)]
        is_same = read_ids is None or (
            len(read_ids) == n and all(i in {-1, j} for i, j in zip(read_ids, sent, strict=True))
        )
        if not is_same or not 0 <= len(values) - n <= max_generated:
            tokens = "" if read_ids is None else f" of the tokens {_shortened(read_ids)}"
            detail = f"It received the {n} tokens {_shortened(sent)} and returned {len(values)}"
            self.refuse(OTHER_TOKENS, f"{detail} values{tokens}.")
        # If the first token has a value, the server has read a token before it. But some servers
        # report 0 instead of no value
        if values[0] not in {None, 0.0}:
            detail = f"It returns {values[0]:.3f} nats for the first token, {sent[0]}."
            self.refuse(OTHER_TOKENS, detail)
        for index, value in enumerate(values[1:n], 1):
            self._check_value(value, f"Token {index + 1} of {n}, {sent[index]},")
        return np.minimum(np.array([np.nan, *values[1:n]], np.float64), 0.0)

    def _check_value(self, value: float | None, token: str) -> None:
        if value is None or not FLOOR < value <= _SLACK:
            value_text = "none" if value is None else f"{value:g}"
            self.refuse(
                "it gives a token no value, or a value that cannot be a log-probability",
                f"{token} has the value {value_text}; models give every token some probability. "
                "Check the log of the server (half precision may overflow), and settings that "
                "exclude tokens.",
            )

    @cached_property
    def _id_of_text(self) -> dict[str, int | None]:
        """Map from each text to the id of its token, or to None if several tokens have the text."""
        ids: dict[str, int | None] = {}
        for token in sorted(self._tokenizer.get_vocab().values()):
            text = self._tokenizer.decode([token], clean_up_tokenization_spaces=False)
            ids[text] = None if text in ids else token
        return ids


def _shortened(ids: Sequence[int]) -> str:
    return " ".join(map(str, ids[:8])) + " …" * (len(ids) > 8)
