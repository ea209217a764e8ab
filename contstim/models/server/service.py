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
from functools import cached_property, wraps
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeAlias, TypeVar

import numpy as np

from contstim.models.server.client import FIRST_PATIENCE, PassingError, ServerFaultError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.files.arrays import FloatArray
    from contstim.models.server.client import Client
    from contstim.models.words import Tokens

    Row: TypeAlias = tuple[list[float | None], list[int] | None, str]
    Echo: TypeAlias = tuple[list[Row], int | None, str]

_Given = ParamSpec("_Given")
_Told = TypeVar("_Told")

FLOOR = -9999.0
"""What vLLM writes for minus infinity, which JSON does not have; no model comes near it."""

OTHER_TOKENS = "it reads other tokens than those that it was sent"
CHANGED = "the model behind the address, or what it says, is another than before"
ONE_MODEL = "Scores of the two must not be mixed: serve one model, and start the work again."

_SLACK = 1e-3  # nats above 0 that rounding may leave in half precision
_CAPS = (20, 5, 1)  # how many alternatives servers tell: vLLM 20, OpenAI 5
_OF_REQUESTS = frozenset({400, 422})  # statuses of servers that do not know a field or its value
# Under these a server generates by the model's own probabilities
_PLAIN = {"temperature": 1.0, "top_p": 1.0}


@dataclass(frozen=True)
class Dialect:
    """A way to ask a server and to read its answers.

    Attributes:
        url: where requests go to; `{root}` is the address without `/v1`.
        version_urls: where the server may tell its version.
        request: a request to a model about rows of tokens, after each of which so many are
            generated.
        asks_echo: fields that ask for the log-probabilities of the rows' tokens.
        asks_alternatives: the field that asks for so many of the likeliest next tokens.
        reads_echo: makes of an answer, and of the rows that were sent, a row each: the
            log-probability of each token, nats, None where the server gives none, those of tokens
            that it generated still among them; the tokens, None if it does not tell; their text.
            With them the number of tokens that the server says it has read, if it does, and what it
            says of its model.
        reads_alternatives: makes of an answer tokens, as ids or as texts, and their
            log-probabilities, nats. Both raise `PassingError` for an answer of another form.
        asks_ids: fields that ask for ids of tokens in place of their texts; some servers refuse.
        least_generated: number of tokens to be generated where none are wanted.
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
    return {"model": model, "prompt": rows, "max_tokens": n} | _PLAIN


def _generation(_model: str, rows: Sequence[Tokens], n: int) -> dict[str, Any]:
    return {
        "input_ids": rows,
        "sampling_params": {"max_new_tokens": n} | _PLAIN,
        "return_logprob": True,
        "return_text_in_logprobs": True,
    }


def _of_form(reads: Callable[_Given, _Told]) -> Callable[_Given, _Told]:
    """A reader that has answers of another form asked for again."""

    @wraps(reads)
    def read(*given: _Given.args, **named: _Given.kwargs) -> _Told:
        try:
            return reads(*given, **named)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            raise PassingError("an answer is not of the form expected.", few=True) from None

    return read


@_of_form
def _echoed_completions(answer: Any, sent: Sequence[Tokens]) -> Echo:
    rows: list[Row] = []
    for choice in _choices(answer, len(sent)):
        values = _values(choice["logprobs"]["token_logprobs"])
        ids = [_id(token) for token in choice["logprobs"].get("tokens") or [""]]
        told = [i for i in ids if isinstance(i, int)]
        known = told[: len(values)] if len(told) == len(ids) else None
        rows.append((values, known, str(choice.get("text") or "")))
    return rows, _n_read(answer.get("usage")), _identity(answer)


@_of_form
def _echoed_prompts(answer: Any, sent: Sequence[Tokens]) -> Echo:
    rows: list[Row] = []
    for choice, tokens in zip(_choices(answer, len(sent)), sent, strict=True):
        # Nothing is told of the first token; the others have an entry each, in which the likeliest
        # token may stand beside the one that was sent
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


@_of_form
def _likeliest_completions(answer: Any) -> dict[int | str, float]:
    (choice,) = _choices(answer, 1)
    likeliest = choice["logprobs"]["top_logprobs"][0]
    pairs = zip(likeliest, _values(likeliest.values()), strict=True)
    return {_id(token): value for token, value in pairs if value is not None}


@_of_form
def _echoed_generations(answer: Any, sent: Sequence[Tokens]) -> Echo:
    rows: list[Row] = []
    facts = _facts(answer, len(sent))
    for fact in facts:
        values, ids, texts = zip(*fact["input_token_logprobs"], strict=True)
        rows.append((_values(values), [int(i) for i in ids], "".join(text or "" for text in texts)))
    read = [_n_read(fact) for fact in facts]
    told = [n for n in read if n is not None]
    identity = " ".join(sorted({str(fact.get("weight_version", "")) for fact in facts}))
    return rows, sum(told) if len(told) == len(read) else None, identity


@_of_form
def _likeliest_generations(answer: Any) -> dict[int | str, float]:
    (fact,) = _facts(answer, 1)
    told = [(int(token), value) for value, token, _ in fact["output_top_logprobs"][0]]
    return {token: float(value) for token, value in told if value is not None}


_COMPLETIONS = Dialect(  # OpenAI's completions with `echo`, as vLLM and others speak it
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
    # vLLM's own `prompt_logprobs`; it generates a token at least
    "vllm": replace(
        _COMPLETIONS,
        asks_echo={"prompt_logprobs": 1},
        reads_echo=_echoed_prompts,
        least_generated=1,
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


def _choices(answer: Any, n_rows: int) -> list[dict[str, Any]]:
    """The parts of an answer in the order of the rows: neither fewer nor more, none twice."""
    by_index = {int(c.get("index", i)): c for i, c in enumerate(answer["choices"])}
    if len(answer["choices"]) != n_rows:
        raise LookupError
    return [by_index[i] for i in range(n_rows)]


def _facts(answer: Any, n_rows: int) -> list[dict[str, Any]]:
    """What SGLang says of each row."""
    answers = answer if isinstance(answer, list) else [answer]
    if len(answers) != n_rows:
        raise LookupError
    return [part["meta_info"] for part in answers]


def _values(entries: Iterable[Any]) -> list[float | None]:
    return [None if entry is None else float(entry) for entry in entries]


def _id(token: object) -> int | str:
    """The id in `token_id:71`; any other text as it stands."""
    match = re.fullmatch("token_id:([0-9]{1,9})", str(token))
    return int(match[1]) if match else str(token)


def _n_read(usage: Any) -> int | None:
    n_read = usage.get("prompt_tokens") if usage else None
    return None if n_read is None else int(n_read)


def _identity(answer: Any) -> str:
    return f"{answer.get('model') or ''} {answer.get('system_fingerprint') or ''}".strip()


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
        version: of the server's program, or empty.
        window: how many tokens the model reads; None if the server does not tell.
        probes: rows that it was tried out with, the shortest first, and their values, nats.
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
        size, dialect, address = batch or self.address.batch, self.dialect, self.address
        parts = [rows[start : start + size] for start in range(0, len(rows), size)]
        n = max(address.max_tokens, dialect.least_generated)
        fields = dialect.asks_ids | dialect.asks_echo
        answers = self.client.ask_all(
            self.url(dialect.url),
            [dialect.request(address.model, part, n) | fields for part in parts],
            lambda number, answer: dialect.reads_echo(answer, parts[number]),
            longest=longest,
        )
        values: list[FloatArray] = []
        self.texts = []
        for sent, (echoed, n_read, identity) in zip(parts, answers, strict=True):
            if self._identity not in {None, identity}:
                what = f"Its answers called it {self._identity!r} and now {identity!r}. {ONE_MODEL}"
                self.refuse(CHANGED, what)
            self._identity = identity
            # What was read in all is looked at last: the rows themselves say more
            for row, (told, ids, text) in zip(sent, echoed, strict=True):
                values.append(self._checked(row, told, ids))
                self.texts.append(text)
            n_sent = sum(map(len, sent))
            if n_read not in {None, n_sent}:
                what = f"It was sent {n_sent} tokens and says that it read {n_read}."
                self.refuse(OTHER_TOKENS, what)
        return values

    def alternatives(self, prefixes: Sequence[Tokens]) -> list[dict[int, float]]:
        """The likeliest next tokens after each prefix and their log-probabilities, nats.

        Raises:
            ServerFaultError: a value is not a log-probability, or see `Client.ask_all`.
            ModelError: see `Client.ask_all`.
        """
        dialect = self.dialect

        def read(_: int, answer: Any) -> dict[int, float]:
            likeliest = dialect.reads_alternatives(answer)
            for value in likeliest.values():
                self._check_value(value, "A token that it tells")
            ids = ((t if isinstance(t, int) else self._id_of_text.get(t)) for t in likeliest)
            pairs = zip(ids, likeliest.values(), strict=True)
            return {token: value for token, value in pairs if token is not None}

        while True:
            fields = dialect.asks_ids | {dialect.asks_alternatives: self.cap}
            bodies = [dialect.request(self.address.model, [row], 1) | fields for row in prefixes]
            try:
                return self.client.ask_all(self.url(dialect.url), bodies, read)
            except ServerFaultError as error:
                # A server that tells fewer alternatives refuses to tell more
                if error.status not in _OF_REQUESTS or self.cap == _CAPS[-1]:
                    raise
                self.cap = _CAPS[_CAPS.index(self.cap) + 1]

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

    def refuse(self, fault: str, detail: str) -> NoReturn:
        """Refuse the server.

        Raises:
            ServerFaultError: always.
        """
        raise ServerFaultError(self.address.text, fault, detail)

    def _checked(
        self, sent: Tokens, values: list[float | None], ids: list[int] | None
    ) -> FloatArray:
        """The values of the tokens that were sent, nan for the first."""
        n, most = len(sent), self.address.max_tokens
        # ids of tokens that were generated follow those of the tokens that were sent; -1 is where
        # nothing is told
        read = None if ids is None else ids[: max(n, len(values) - most)]
        same = read is None or (
            len(read) == n and all(i in {-1, j} for i, j in zip(read, sent, strict=True))
        )
        if not same or not 0 <= len(values) - n <= most:
            told = "" if read is None else f" of the tokens {_shortened(read)}"
            what = f"It was sent the {n} tokens {_shortened(sent)} and answered with {len(values)}"
            self.refuse(OTHER_TOKENS, f"{what} values{told}.")
        # Before the first token there is nothing to predict it from: a value there means that the
        # server has read something else first. Some write 0 in place of nothing.
        if values[0] not in {None, 0.0}:
            self.refuse(
                OTHER_TOKENS, f"It says {values[0]:.3f} nats for the first token, {sent[0]}."
            )
        for place, value in enumerate(values[1:n], 1):
            self._check_value(value, f"Token {place + 1} of {n}, {sent[place]},")
        checked: FloatArray = np.array([np.nan, *values[1:n]], np.float64)
        return np.minimum(checked, 0.0)

    def _check_value(self, value: float | None, token: str) -> None:
        if value is None or not FLOOR < value <= _SLACK:
            given = "none" if value is None else f"{value:g}"
            self.refuse(
                "it gives a token no value, or one that cannot be a log-probability",
                f"{token} has {given}; models leave some probability to every token. Look at its "
                f"log (half precision may overflow) and at settings that forbid tokens.",
            )

    @cached_property
    def _id_of_text(self) -> dict[str, int | None]:
        """The token that stands for a text; None where there are several."""
        ids: dict[str, int | None] = {}
        for token in sorted(self._tokenizer.get_vocab().values()):
            text = self._tokenizer.decode([token], clean_up_tokenization_spaces=False)
            ids[text] = None if text in ids else token
        return ids


def _shortened(ids: Sequence[int]) -> str:
    return " ".join(map(str, ids[:8])) + " …" * (len(ids) > 8)
