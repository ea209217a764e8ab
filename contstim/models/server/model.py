"""A causal model on an inference server, as a language model."""

from __future__ import annotations

import json
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from contstim.errors import ModelError
from contstim.models.base import Convention, short_hash
from contstim.models.costs import count, timed
from contstim.models.loading import DEFAULT_LOADING
from contstim.models.server.address import parse_address
from contstim.models.server.client import Client
from contstim.models.server.probes import check_unchanged, fingerprint, probe_server
from contstim.models.server.service import ScoringService
from contstim.models.subwords import SubwordModel
from contstim.models.tensors import fingerprint_of_tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.files.arrays import FloatArray
    from contstim.models.base import Continuation, LanguageModel
    from contstim.models.loading import Loading
    from contstim.models.server.address import ServerAddress
    from contstim.models.words import Encoding, Tokens
    from contstim.words.sentence import Sentence


class ServerModel(SubwordModel):
    """Sum over tokens of log p(token | context and earlier tokens), the end mark included.

    As `CausalModel` under the rule `log-likelihood`, with the network elsewhere: sentences are cut
    here, and the server is sent token ids. It is tried out when the model is made (`probes`).

    A search knows nothing of a sentence but its score and its number of tokens, and asks a draft
    where there is one.

    Args:
        address: of the server and its model.
        tokenizer: a `transformers` tokenizer, the model's own.
        context: a text before the sentence; None for the default.
        name: the model's name, by default the address.
        config: the network's text configuration, where it is at hand.
        draft: a local model whose scores resemble the server's.
        connected: whether to try the server out; without it the model scores nothing, and tells
            how it reads words.

    Raises:
        ServerFaultError: the server has a fault; says which.
        ModelError: it cannot be reached, or there is no context.
    """

    is_black_box = True

    def __init__(
        self,
        address: ServerAddress,
        tokenizer: Any,
        *,
        context: str | None = None,
        name: str | None = None,
        config: Any = None,
        draft: LanguageModel | None = None,
        connected: bool = True,
    ) -> None:
        self.name = name or address.text
        self._address = address
        self._draft, self.window = draft, address.window
        self._begin_with(context, tokenizer, address.text, config)
        self._service = ScoringService(Client(address), tokenizer) if connected else None
        if self._service is not None:
            probe_server(self._service, tokenizer, self._context)
            self.window = self.window or self._service.window

    @cached_property
    def convention(self) -> Convention:
        """The rule, the context, and the tolerance within which the server agreed with itself."""
        # How sentences are cut and what stands before them, as in local causal models
        reading = [fingerprint_of_tokenizer(self._tokenizer), self._context, self._space]
        if self._service is None:
            digest = f"tokenizer-{short_hash(json.dumps(reading))}"
        else:
            digest = f"server-{fingerprint(self._service, reading)}"
        return Convention(
            rule="log-likelihood",
            context=self._context_text,
            context_tokens=self._context_tokens,
            end_scored=True,
            fingerprint=digest,
            precision="unknown",  # of weights elsewhere; results are held to the tolerance
            tolerance=self._address.tolerance,
        )

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.log_probs`.

        Raises:
            ServerFaultError: the server has a fault, or its model has changed.
            ModelError: a sentence is too long, or the server cannot be reached for long.
        """
        return np.array([row.sum() for row in self._parts(self._encode(sentences))], np.float64)

    def continuation_log_probs(self, continuations: Sequence[Continuation]) -> FloatArray:
        """See `LanguageModel.continuation_log_probs`: sums over the words' tokens in context."""
        return self._sums_of_words(continuations, self._terms)

    def draft(self, effort: int = 1) -> LanguageModel | None:  # noqa: ARG002
        """The local model that the address names, or None."""
        return self._draft

    def for_another_search(self) -> Self:
        """See `Scorer.for_another_search`: of the draft."""
        twin = copy(self)
        if self._draft is not None:
            twin._draft = self._draft.for_another_search()
        return twin

    def forget_prefixes(self) -> None:
        """See `LanguageModel.forget_prefixes`: those of the draft."""
        if self._draft is not None:
            self._draft.forget_prefixes()

    def _needs(self, n_tokens: int) -> int:
        """See `SubwordModel`: with the context, and the token that a server is to generate."""
        return len(self._context) + n_tokens + 1

    def _parts(self, encodings: Sequence[Encoding]) -> list[FloatArray]:
        """See `SubwordModel`."""
        return self._terms([encoding.ids for encoding in encodings])

    def _terms(self, rows: Sequence[Tokens]) -> list[FloatArray]:
        """Log-probabilities of the tokens of each row in context, nats."""
        if self._service is None:
            raise ModelError(f"{self.name} was loaded without its server: it cannot score.")
        if not rows:
            return []
        before = len(self._context)
        with timed():
            answers = self._service.echo([self._context + row for row in rows])
            # Another model, or values in another form, may be there from one request to the next:
            # none are given out before the probes have shown that they are as they were
            check_unchanged(self._service)
        count(len(rows), sum(map(len, rows)) + before * len(rows))
        return [values[before:] for values in answers]


def check_server(location: str, *, trust_remote_code: bool = False) -> None:  # noqa: ARG001
    """Refuse an address that cannot be read; the server is not asked.

    Raises:
        ModelError: see `parse_address`.
    """
    parse_address(location)


def load_server(
    location: str, *, name: str, loading: Loading = DEFAULT_LOADING, context: str | None = None
) -> ServerModel:
    """Load the tokenizer of a served model, and try its server out.

    Raises:
        ModelError: see `parse_address` and `ServerModel`; or the tokenizer cannot be loaded.
    """
    from contstim.models.catalog import load_model
    from contstim.models.checkpoints import load_tokenizer

    address = parse_address(location)
    tokenizer, config = load_tokenizer(address.tokenizer, loading)
    draft = load_model(address.draft) if address.draft and loading.weights else None
    return ServerModel(
        address,
        tokenizer,
        context=context,
        name=name,
        config=config,
        draft=draft,
        connected=loading.weights,
    )
