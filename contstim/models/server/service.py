"""Token ids in, checked values out.

Every answer is checked against what was sent, not only those of the probes: as many values as
tokens, for the same tokens where the server tells which, numbers, none above 0.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from contstim.models.server.client import FIRST_PATIENCE, ServerFault, ServerFaultError
from contstim.models.server.dialects import DIALECTS, FLOOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import FloatArray
    from contstim.models.server.client import Client
    from contstim.models.server.dialects import Echo, EchoedRow

    Tokens: TypeAlias = tuple[int, ...]

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
        texts: what the rows of the last call stand for, where the server tells; white space aside.
    """

    def __init__(self, client: Client, tokenizer: Any) -> None:
        self.client, self.address = client, client.address
        self.dialect = DIALECTS[self.address.dialect]
        self.cap = _CAPS[0]
        self.texts: list[str | None] = []
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

        def read(number: int, answer: Any) -> Echo:
            return self.dialect.reads_echo(answer, parts[number])

        bodies = [self.dialect.echo(self.address, part) for part in parts]
        values: list[FloatArray] = []
        self.texts = []
        answers = self.client.ask_all(self.url(self.dialect.url), bodies, read, longest=longest)
        for sent, (echoed, n_read, identity) in zip(parts, answers, strict=True):
            self._check_identity(identity)
            # What was read in all is looked at last: the rows themselves say more
            values += [self._checked(row, told) for row, told in zip(sent, echoed, strict=True)]
            n_sent = sum(map(len, sent))
            if n_read not in {None, n_sent}:
                self.refuse(
                    ServerFault.OTHER_TOKENS,
                    f"It was sent {n_sent} tokens and says that it read {n_read}.",
                )
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
        if self._identity is None:
            self._identity = identity
        if identity != self._identity:
            self.refuse(
                ServerFault.CHANGED,
                f"Its answers called it {self._identity!r} and now {identity!r}. Scores of the two "
                f"must not be mixed: serve one model, and start the work again.",
            )

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
            self.refuse(
                ServerFault.OTHER_TOKENS,
                f"It was sent the {n} tokens {_shortened(sent)} and answered with {len(values)} "
                f"values{told}",
            )
        # Before the first token there is nothing to predict it from: a value there means that the
        # server has read something else first. Some write 0 in place of nothing.
        if values[0] not in {None, 0.0}:
            self.refuse(
                ServerFault.OTHER_TOKENS,
                f"It says {values[0]:.3f} nats for the first token, {sent[0]}, before which there "
                f"is nothing.",
            )
        for place, value in enumerate(values[1:n], 1):
            self._check_value(value, f"Token {place + 1} of {n}, {sent[place]},")
        checked: FloatArray = np.array([np.nan, *values[1:n]], np.float64)
        return np.minimum(checked, 0.0)

    def _check_value(self, value: float | None, token: str) -> None:
        if value is None or not FLOOR < value <= _SLACK:
            self.refuse(
                ServerFault.NO_LOG_PROB,
                f"{token} has {'none' if value is None else f'{value:g}'}; models leave some "
                f"probability to every token. Look at its log (half precision may overflow) and at "
                f"settings that forbid tokens.",
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
