"""Causal networks on inference servers, with the interface of every language model."""

from __future__ import annotations

import json
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from contstim.errors import ModelError
from contstim.models.base import Continuation, Convention, LanguageModel, short_hash
from contstim.models.costs import count, timed
from contstim.models.loading import DEFAULT_LOADING, Loading
from contstim.models.server.address import ServerAddress, parse_address
from contstim.models.server.client import Client
from contstim.models.server.probes import check_unchanged, fingerprint, probe_server
from contstim.models.server.service import ScoringService
from contstim.models.subwords import SubwordModel
from contstim.models.tensors import fingerprint_of_tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.files.arrays import FloatArray
    from contstim.models.words import Encoding, Tokens
    from contstim.words.sentence import Sentence


class ServerModel(SubwordModel):
    """Model whose score is the sum of log p(token | context and earlier tokens).

    The score equals that of `CausalModel` with the rule `log-likelihood`, but the network is on a
    server. Sentences are tokenized locally, and token ids are sent to the server. The server is
    tested when the model is created; see `probes`.

    Args:
        address: address of the server and its model.
        tokenizer: `transformers` tokenizer of the model.
        context: text before the sentence; None for the default.
        name: name of the model, by default the address.
        config: `transformers` configuration of the network, or, if the network also processes
            images or sound, of its text part; None if unknown.
        draft: local model with similar scores, which ranks candidates in a search; None for no such
            model.
        connected: whether to use the server; if False, the model can only tokenize.

    Raises:
        ServerFaultError: if the server fails a test.
        ModelError: if the server cannot be reached, or if the context is not usable.
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
        """See `Scorer.convention`. The tolerance is the option `tolerance` of the address."""
        # Settings that determine the tokens of a sentence
        token_settings = [fingerprint_of_tokenizer(self._tokenizer), self._context, self._space]
        if self._service is None:
            digest = f"tokenizer-{short_hash(json.dumps(token_settings))}"
        else:
            digest = f"server-{fingerprint(self._service, token_settings)}"
        return Convention(
            rule="log-likelihood",
            context=self._context_text,
            context_tokens=self._context_tokens,
            end_scored=True,
            fingerprint=digest,
            precision="unknown",  # servers do not report it
            tolerance=self._address.tolerance,
        )

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.log_probs`.

        Raises:
            ServerFaultError: if a response is invalid, or if the server's model has changed.
            ModelError: if a sentence is too long, or if the server cannot be reached.
        """
        rows = [encoding.ids for encoding in self._encode(sentences)]
        return np.array([values.sum() for values in self._terms(rows)], np.float64)

    def continuation_log_probs(self, continuations: Sequence[Continuation]) -> FloatArray:
        """See `LanguageModel.continuation_log_probs`."""
        return self._sums_of_words(continuations, self._terms)

    def draft(self, effort: int = 1) -> LanguageModel | None:  # noqa: ARG002
        """Return the local model named in the address, or None."""
        return self._draft

    def for_another_search(self) -> Self:
        """See `Scorer.for_another_search`; the copy has its own draft model and the same client."""
        model = copy(self)
        model._draft = self._draft and self._draft.for_another_search()
        return model

    def forget_prefixes(self) -> None:
        """See `LanguageModel.forget_prefixes`; only the local draft model has a cache."""
        if self._draft is not None:
            self._draft.forget_prefixes()

    def _needs(self, n_tokens: int) -> int:
        """See `SubwordModel`. Also count the context and the token that a server generates."""
        return len(self._context) + n_tokens + 1

    def _parts(self, encodings: Sequence[Encoding]) -> list[FloatArray]:
        """See `SubwordModel`; entropies are unknown."""
        return [values[:, None] for values in self._terms([e.ids for e in encodings])]

    def _terms(self, rows: Sequence[Tokens]) -> list[FloatArray]:
        """Return log-probabilities of each row's tokens, given the context before the row, nats."""
        if self._service is None:
            raise ModelError(f"{self.name} was loaded without its server: it cannot score.")
        if not rows:
            return []
        n_context = len(self._context)
        with timed():
            answers = self._service.echo([self._context + row for row in rows])
            # Repeat probes, because the server's model may have changed between requests
            check_unchanged(self._service)
        count(len(rows), sum(map(len, rows)) + n_context * len(rows))
        return [values[n_context:] for values in answers]


def check_server(location: str, *, trust_remote_code: bool = False) -> None:  # noqa: ARG001
    """Refuse an invalid address, without a request to the server.

    Raises:
        ModelError: see `parse_address`.
    """
    parse_address(location)


def load_server(
    location: str, *, name: str, loading: Loading = DEFAULT_LOADING, context: str | None = None
) -> ServerModel:
    """Load the tokenizer of a served model, and test the server that serves the model.

    If `loading.weights` is False, the server is not used, and the model can only tokenize.

    Raises:
        ModelError: see `parse_address` and `ServerModel`; or if the tokenizer cannot be loaded.
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
