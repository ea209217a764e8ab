"""Token ids in, checked values out.

Every answer is checked against what was sent, not only those of the handshake: as many values as
tokens, for the same tokens where the server tells which, numbers, none above 0.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from contstim.models.server.client import FIRST_PATIENCE, Client, StatusError
from contstim.models.server.dialects import FLOOR, dialect_of
from contstim.models.server.faults import ServerFault, ServerFaultError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import FloatArray
    from contstim.models.server.address import ServerAddress
    from contstim.models.server.dialects import EchoAnswer, EchoedRow

    Tokens: TypeAlias = tuple[int, ...]

_SLACK = 1e-3  # nats above 0 that rounding may leave in half precision
_CAPS = (20, 5, 1)  # how many alternatives servers tell: vLLM 20, OpenAI 5
_OF_REQUESTS = frozenset({400, 422})  # statuses of servers that do not know a field or its value


class ScoringService:
    """A model on a server that reads rows of token ids.

    Args:
        address: of the server and its model.
        tokenizer: a `transformers` tokenizer, to read tokens that a server tells as texts.
        client: sends the requests.

    Attributes:
        dialect: what is asked, and where the answer stands.
        cap: how many alternatives the server tells, once it has been asked.
        texts: what the rows of the last call stand for, where the server tells; white space aside.
    """

    def __init__(self, address: ServerAddress, tokenizer: Any, client: Client) -> None:
        self.address, self.client = address, client
        self.dialect = dialect_of(address)
        self.cap = _CAPS[0]
        self.texts: list[str | None] = []
        self._tokenizer = tokenizer
        self._identity: tuple[str, ...] | None = None

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

        def read(number: int, answer: Any) -> EchoAnswer:
            return self.dialect.read_echo(answer, parts[number])

        bodies = [self.dialect.echo(part) for part in parts]
        values: list[FloatArray] = []
        self.texts = []
        answers = self.client.ask_all(self.dialect.url, bodies, read, longest=longest)
        for part, answer in zip(parts, answers, strict=True):
            self._check_identity(answer.identity)
            # What was read in all is looked at last: the rows themselves say more
            values += [
                self._checked(tokens, row) for tokens, row in zip(part, answer.rows, strict=True)
            ]
            self._check_total(part, answer.n_read)
            self.texts += [row.text for row in answer.rows]
        return values

    def alternatives(self, prefixes: Sequence[Tokens]) -> list[dict[int, float]]:
        """The likeliest next tokens after each prefix and their log-probabilities, nats.

        Raises:
            ServerFaultError: a value is not a log-probability.
            ModelError: see `Client.ask_all`.
        """

        def read(_: int, answer: Any) -> dict[int, float]:
            likeliest = self.dialect.read_alternatives(answer)
            ids = {self._id(token): value for token, value in likeliest.items()}
            for value in ids.values():
                self._check_value(value)
            return {token: value for token, value in ids.items() if token is not None}

        while True:
            bodies = [self.dialect.alternatives(prefix, self.cap) for prefix in prefixes]
            try:
                return self.client.ask_all(self.dialect.url, bodies, read)
            except StatusError as error:
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
        except StatusError as error:
            if error.status not in _OF_REQUESTS or not self.dialect.asks_ids:
                raise
            self.dialect = replace(self.dialect, asks_ids=False)
            self.echo([row])

    def _check_identity(self, identity: tuple[str, ...]) -> None:
        if self._identity is None:
            self._identity = identity
        if identity != self._identity:
            raise ServerFaultError(
                self.address.text,
                ServerFault.CHANGED,
                f"Its answers called it {' '.join(self._identity).strip()!r} and now "
                f"{' '.join(identity).strip()!r}. Scores of the two must not be mixed: serve one "
                f"model, and start the work again.",
            )

    def _check_total(self, rows: Sequence[Tokens], n_read: int | None) -> None:
        """The number of tokens that the server says it has read."""
        n_sent = sum(map(len, rows))
        if n_read is None or n_read == n_sent:
            return
        if n_read < n_sent:
            fault = ServerFault.TRUNCATED
        elif n_read == n_sent + len(rows):
            fault = ServerFault.BEGINNING_ADDED
        else:
            fault = ServerFault.RETOKENISED
        self._refuse(fault, f"It was sent {n_sent} tokens and says that it read {n_read}.")

    def _checked(self, sent: Tokens, row: EchoedRow) -> FloatArray:
        """The values of the tokens that were sent, nan for the first."""
        n, ids, values = len(sent), row.ids, row.values
        # ids of tokens that were generated follow those of the tokens that were sent; -1 is where
        # nothing is told
        read = ids if ids is None else ids[: max(n, len(values) - self.address.max_tokens)]
        same = read is not None and len(read) == n and _alike(read, sent)
        n_more = len(values) - n
        if (read is not None and not same) or not 0 <= n_more <= self.address.max_tokens:
            self._refuse(
                _fault_of_tokens(sent, read, len(values)),
                f"It was sent the {n} tokens {_shortened(sent)} and answered with {len(values)} "
                f"values" + ("." if read is None else f" of the tokens {_shortened(read)}."),
            )
        # Before the first token there is nothing to predict it from: a value there means that the
        # server has read something else first. Some write 0 in place of nothing.
        if values[0] not in {None, 0.0}:
            self._refuse(
                ServerFault.BEGINNING_ADDED,
                f"It says {values[0]:.3f} nats for the first token, {sent[0]}, before which there "
                f"is nothing.",
            )
        for place, value in enumerate(values[1:n], 1):
            if value is None:
                self._refuse(
                    ServerFault.MISSING_VALUE,
                    f"Token {place + 1} of {n}, {sent[place]}, has none.",
                )
            self._check_value(value)
        checked: FloatArray = np.array([np.nan, *values[1:n]], np.float64)
        return np.minimum(checked, 0.0)

    def _check_value(self, value: float | None) -> None:
        if value is None or math.isnan(value):
            self._refuse(ServerFault.NOT_A_NUMBER, "Look at its log; half precision may overflow.")
        elif value > _SLACK:
            self._refuse(ServerFault.POSITIVE, f"The value is {value:g}.")
        elif value <= FLOOR:
            self._refuse(
                ServerFault.IMPOSSIBLE,
                f"The value is {value:g}; models leave some probability to every token. Look at "
                f"its log and at settings that forbid tokens.",
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

    def _refuse(self, fault: ServerFault, detail: str) -> None:
        raise ServerFaultError(self.address.text, fault, detail)


def _fault_of_tokens(sent: Tokens, read: Tokens | None, n_values: int) -> ServerFault:
    """Fault of tokens that came back as others, or in another number."""
    if n_values <= 1 < len(sent):
        return ServerFault.GENERATED_ONLY
    if read is None:  # only their number is told
        added = n_values > len(sent)
        return ServerFault.BEGINNING_ADDED if added else ServerFault.TRUNCATED
    for tokens in (read, read[:-1]):  # the last may have been generated
        if len(tokens) == len(sent) - 1 and _alike(tokens, sent[1:]):
            return ServerFault.BEGINNING_IGNORED
        # The last tokens may be gone where one was put before the first
        if len(tokens) >= len(sent) and _alike(tokens[1:], sent[: len(tokens) - 1]):
            return ServerFault.BEGINNING_ADDED
        starts = range(len(sent) - len(tokens) + 1)
        if any(_alike(tokens, sent[start : start + len(tokens)]) for start in starts):
            return ServerFault.TRUNCATED
    return ServerFault.RETOKENISED


def _alike(read: Tokens, sent: Tokens) -> bool:
    """True if tokens are the same, those of which the server tells nothing (-1) aside."""
    return all(i in {-1, j} for i, j in zip(read, sent, strict=False))


def _shortened(ids: Tokens) -> str:
    shown = " ".join(map(str, ids[:8]))
    return f"{shown} …" if len(ids) > 8 else shown
