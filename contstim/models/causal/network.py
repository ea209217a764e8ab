"""Log-probabilities of continuations of a prefix; the prefix is read once and shared by all."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from contstim.models.batching import Budget, computing, forward_in_batches
from contstim.models.boundaries import Normaliser, token_classes
from contstim.models.costs import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import FloatArray, IntArray
    from contstim.models.checkpoints import Checkpoint

    Tokens: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Prefix:
    """Tokens that the network has read.

    Attributes:
        ids: the tokens.
        log_prob: of those that count, nats; a context's count for nothing.
        next_log_probs: (n_vocabulary,) of the token that follows, nats.
        cache: keys and values of all layers, for one row; None where they cannot be shared.
    """

    ids: Tokens
    log_prob: float
    next_log_probs: FloatArray
    cache: Any


class CausalNetwork:
    """A causal network and how its distributions are normalised.

    Args:
        checkpoint: a causal one.
        by_words: whether to normalise each token within its class, word-initial or not.
    """

    def __init__(self, checkpoint: Checkpoint, *, by_words: bool) -> None:
        checkpoint.require_weights()
        self._model = checkpoint.model
        self._device = torch.device(checkpoint.device)
        self._chooses_places = "logits_to_keep" in signature(self._model.forward).parameters
        self._budget = Budget.for_device(self._device)
        size = int(self._model.config.get_text_config().vocab_size)
        classes = token_classes(checkpoint.tokenizer, size) if by_words else None
        self._normaliser = Normaliser(classes, self._device)

    def begin(self, context: Tokens) -> Prefix:
        """Read a context, of at least one token, that does not count."""
        empty = Prefix((), 0.0, np.empty(0), None)
        with computing():
            row = torch.tensor([context], device=self._device)
            count(1, len(context))
            logits, cache = self._forward(empty, row, places=1)
            following = self._following(logits[0, -1])
        return Prefix(context, 0.0, following, cache)

    def extend(self, prefix: Prefix, ids: Tokens) -> Prefix:
        """Read more tokens, at least one, which count."""
        with computing():
            count(1, len(ids))
            logits, cache = self._forward(prefix, torch.tensor([ids], device=self._device))
            following = self._following(logits[0, -1])
            inner = self._normaliser.log_probs(
                logits[0], np.arange(len(ids) - 1), np.array(ids[1:], np.int64)
            )
        log_prob = prefix.log_prob + float(prefix.next_log_probs[ids[0]])
        log_prob += float(inner.double().sum())
        return Prefix(prefix.ids + ids, log_prob, following, cache)

    def continuations(self, prefix: Prefix, rows: Sequence[Tokens]) -> FloatArray:
        """Log p(token | prefix and the row's earlier tokens), (n_rows, longest row), nats.

        Zero beyond the end of a row. Rows that begin alike share the passes of their beginnings.

        Args:
            prefix: what comes before each row.
            rows: one or more tokens each.
        """
        log_probs = np.zeros((len(rows), max(map(len, rows), default=0)))
        if not rows:
            return log_probs
        log_probs[:, 0] = prefix.next_log_probs[[row[0] for row in rows]]
        targets = np.full(log_probs[:, 1:].shape, -1, np.int64)
        longer = [number for number, row in enumerate(rows) if len(row) > 1]
        paths, path_of = shared_paths([rows[number][:-1] for number in longer])
        members: list[list[int]] = [[] for _ in paths]  # the rows that each path serves
        for number, path in zip(longer, path_of, strict=True):
            members[path].append(number)
            targets[number, : len(rows[number]) - 1] = rows[number][1:]

        def run(ids: torch.Tensor, attention: torch.Tensor, batch: IntArray) -> None:
            logits, _ = self._forward(prefix, ids, attention)  # (b, l, V)
            served = np.concatenate([members[path] for path in batch])  # (m,)
            place = np.repeat(np.arange(len(batch)), [len(members[path]) for path in batch])
            row, step = np.nonzero(targets[served, : ids.shape[1]] >= 0)  # (q,)
            found = self._normaliser.log_probs(
                logits.flatten(0, 1),
                place[row] * ids.shape[1] + step,
                targets[served[row], step],
            )
            log_probs[served[row], step + 1] = found.double().cpu().numpy()

        forward_in_batches(paths, run, pad=0, budget=self._budget, device=self._device)
        return log_probs

    def _forward(
        self,
        prefix: Prefix,
        ids: torch.Tensor,
        attention: torch.Tensor | None = None,
        *,
        places: int | None = None,
    ) -> tuple[torch.Tensor, Any]:
        """Logits (b, l, V) of rows (b, l) after the prefix, and the cache that holds both.

        The vocabulary head runs at the last `places` only, by default at the rows' own.
        """
        places = places or ids.shape[1]
        before = ids.new_tensor(prefix.ids).expand(len(ids), -1)
        if attention is not None:
            attention = torch.cat([torch.ones_like(before), attention], dim=1)
        shared = prefix.cache is not None
        if not shared:
            count(0, before.numel(), calls=0)  # read anew for each row
        output = self._model(
            input_ids=ids if shared else torch.cat([before, ids], dim=1),
            attention_mask=attention,
            past_key_values=_for_rows(prefix.cache, len(ids)) if shared else None,
            use_cache=True,
            **({"logits_to_keep": places} if self._chooses_places else {}),
        )
        logits = output.logits[:, -places:]
        cache = getattr(output, "past_key_values", None)
        return logits, cache if _can_be_shared(cache) else None

    def _following(self, logits: torch.Tensor) -> FloatArray:
        log_probs: FloatArray = self._normaliser.log_softmax(logits).double().cpu().numpy()
        return log_probs


def _can_be_shared(cache: Any) -> bool:
    """Whether all layers keep keys and values; recurrent ones read a prefix anew for each row."""
    layers = getattr(cache, "layers", ())
    return bool(layers) and all(
        type(layer) in {DynamicLayer, DynamicSlidingWindowLayer} and layer.is_initialized
        for layer in layers
    )


def _for_rows(cache: Any, n_rows: int) -> Any:
    """A cache of one row for many; nothing is copied until the network adds to it."""
    many = copy.copy(cache)
    many.layers = [copy.copy(layer) for layer in cache.layers]
    for layer in many.layers:
        layer.keys = layer.keys.expand(n_rows, -1, -1, -1)
        layer.values = layer.values.expand(n_rows, -1, -1, -1)
    return many


def shared_paths(rows: Sequence[Tokens]) -> tuple[list[Tokens], list[int]]:
    """The fewest rows that begin with every given row, and which of them does so for each.

    These are the leaves of the rows' trie: what a network has to read to have read all of them.
    """
    leaves: list[Tokens] = []
    leaf_of: dict[Tokens, int] = {}
    for row in sorted(set(rows), reverse=True):  # what extends a row comes right before it
        if not leaves or leaves[-1][: len(row)] != row:
            leaves.append(row)
        leaf_of[row] = len(leaves) - 1
    return leaves, [leaf_of[row] for row in rows]
