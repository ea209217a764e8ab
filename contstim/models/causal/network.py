"""Log-probabilities of continuations of a prefix; the network processes the prefix only once.

Example: continuations `big dogs bark`, `big dog` and `small` of a prefix, with one token per word:

    rows        big dogs bark | big dog | small      tokens to score
    passes      big dogs                             `shared_paths` of rows without the last token
    logits      after the prefix; after big; after big dogs

The network does not read the last token of a row, since no token follows it. The logits after the
prefix score the first token of each row, so `small` needs no pass. Row `big dog` needs the logits
after `big`, which the pass for `big dogs bark` also computes. So one pass of two tokens serves both
rows.

If rows have the same beginning, the network reads a tree of their tokens. A common beginning is
then read once. For example, the tree of `big dogs` and `big cats` has three tokens. An attention
mask hides `dogs` from `cats`.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property, partial
from inspect import signature
from math import inf, prod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer
from transformers.utils.generic import ModelOutput

from contstim.models import batching
from contstim.models.boundaries import Normaliser, token_classes
from contstim.models.costs import count
from contstim.models.merging import NetworkCall, answer, is_merged, stack_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.files.arrays import BoolArray, FloatArray, IntArray
    from contstim.models.batching import Write
    from contstim.models.checkpoints import Checkpoint
    from contstim.models.words import Tokens


_MAX_TREE = 2048  # maximum number of tokens in a tree; its mask has n * n values for n tokens
_TRIAL = "the old house was not good for people but the small dog had water"
# transformers 5.24 renamed the cache of keys and values in all arguments and outputs
_CACHE = "cache" if hasattr(ModelOutput, "past_key_values") else "past_key_values"


@dataclass(frozen=True, eq=False)
class Prefix:
    """Tokens that the network has processed: a context and the words after it.

    Attributes:
        ids: ids of the tokens.
        log_prob: log p(words | context), nats.
        next_log_probs: log-probabilities of the next token, (n_vocabulary,), nats.
        cache: keys and values of all layers for one row; None if several rows cannot share it.
    """

    ids: Tokens
    log_prob: float
    next_log_probs: FloatArray
    cache: Any


_NOTHING = Prefix((), 0.0, np.empty(0), None)


class CausalNetwork:
    """Causal network that returns normalised log-probabilities.

    With `by_words`, the probability of a token is normalised within its class: tokens at word
    boundaries, or tokens within words (see `boundaries`).
    """

    def __init__(self, checkpoint: Checkpoint, *, by_words: bool) -> None:
        checkpoint.require_weights()
        self._model = checkpoint.model
        self._device = torch.device(checkpoint.device)
        parameters = signature(self._model.forward).parameters
        self._limits_logits = "logits_to_keep" in parameters
        # Python code of a checkpoint may use the old name
        self._cache_argument = _CACHE if _CACHE in parameters else "past_key_values"
        self._budget = batching.Budget.for_device(self._device)
        size = int(self._model.config.get_text_config().vocab_size)
        classes = token_classes(checkpoint.tokenizer, size) if by_words else None
        self._normaliser = Normaliser(classes, self._device)
        ids = checkpoint.tokenizer(_TRIAL, add_special_tokens=False)["input_ids"]
        # Tokens for tests of the cache
        self._trial: list[int] = ids[: min(12, checkpoint.window or len(ids))]
        self._reads_trees, self._largest_tree = True, 0
        self._keeps_prefixes = True
        self._keeps_prefixes = self._can_continue_from_cache()

    def begin(self, context: Tokens) -> Prefix:
        """Process a context of at least one token; the resulting prefix has `log_prob` 0."""
        with batching.computing(), batching.single_input(len(context), self._device):
            row = batching.to_device(np.array([context], np.int64), self._device)
            count(1, len(context))
            logits, cache = self._forward(_NOTHING, row, n_positions=1)
            next_log_probs = self._normaliser.log_softmax(logits[0, -1]).double().cpu().numpy()
        return Prefix(context, 0.0, next_log_probs, cache)

    def extend(self, prefix: Prefix, ids: Tokens) -> Prefix:
        """Process one or more tokens after a prefix, and return the longer prefix."""
        with batching.computing(), batching.single_input(len(prefix.ids) + len(ids), self._device):
            count(1, len(ids))
            row = batching.to_device(np.array([ids], np.int64), self._device)
            logits, cache = self._compute(prefix, row, None, keeps=self._keeps_prefixes)
            next_log_probs = self._normaliser.log_softmax(logits[0, -1])
            later = np.array(ids[1:], np.int64)
            inner = self._normaliser.log_probs(logits[0], np.arange(len(later)), later)
            # Copy all values together, since each copy waits for the GPU
            copied = torch.cat([next_log_probs.double(), inner.double().sum()[None]]).cpu().numpy()
        log_prob = prefix.log_prob + float(prefix.next_log_probs[ids[0]]) + float(copied[-1])
        return Prefix(prefix.ids + ids, log_prob, copied[:-1], cache)

    def continuations(
        self, prefix: Prefix, rows: Sequence[Tokens], *, entropies: bool = False
    ) -> FloatArray:
        """Return log p(token | prefix and the row's earlier tokens), (n_rows, longest row), nats.

        Rows have at least one token. Values are 0 beyond the end of a row. Rows with the same first
        tokens share passes. With `entropies`, the result is (n_rows, longest row, 2): log p, and
        the entropy of the distribution that predicts the token, nats.
        """
        value = partial(self._normaliser.log_probs, entropies=entropies)
        values = self._within_rows(prefix, rows, value, (2,) if entropies else ())
        if rows:
            firsts = [row[0] for row in rows]
            first = prefix.next_log_probs[firsts]
            if entropies:
                first = np.c_[first, self._normaliser.entropies(prefix.next_log_probs, firsts)]
            values[:, 0] = first
        return values

    def masses(self, prefix: Prefix, rows: Sequence[Tokens], tokens: BoolArray) -> FloatArray:
        """Return log p(the next token is one of `tokens` | prefix and tokens before it), nats.

        `tokens` is a mask of the vocabulary, (n_vocabulary,). The result has a value for each
        position of each row, (n_rows, longest row). Two kinds of values are not computed and are 0:
        at the first position of a row, and beyond the end of a row.
        """
        chosen = batching.to_device(np.flatnonzero(tokens), self._device)

        def mass(logits: Tensor, spots: IntArray, _next: IntArray) -> Tensor:
            log_masses = torch.logsumexp(batching.log_softmax32(logits)[:, chosen], dim=-1)
            return log_masses[batching.to_device(spots, logits.device)].double()

        return self._within_rows(prefix, rows, mass)

    def _within_rows(
        self,
        prefix: Prefix,
        rows: Sequence[Tokens],
        value: Callable[[Tensor, IntArray, IntArray], Tensor],
        shape: tuple[int, ...] = (),
    ) -> FloatArray:
        """Compute a value for each token of a row except the first, (n_rows, longest row).

        Values are 0 for the first token, and beyond the end of a row.

        Args:
            prefix: tokens before each row.
            rows: rows of at least one token each.
            value: function that returns values for q tokens. Its arguments are logits after k
                tokens, (k, V); for each of the q tokens, the index of the logits that predict it,
                (q,); and the ids of the q tokens, (q,).
            shape: shape of a value; by default, a value is a number.
        """
        values = np.zeros((len(rows), max(map(len, rows), default=0), *shape))
        longer = [index for index, row in enumerate(rows) if len(row) > 1]
        paths, path_of = shared_paths([rows[index][:-1] for index in longer])
        members: list[list[int]] = [[] for _ in paths]
        for index, path in zip(longer, path_of, strict=True):
            members[path].append(index)
        # targets[i, t] is the token of row i after step t of its path; -1 beyond the row's end
        targets = np.full(values[:, 1:].shape[:2], -1, np.int64)
        for index in longer:
            targets[index, : len(rows[index]) - 1] = rows[index][1:]

        def run(ids: Tensor, attention: Tensor, batch: IntArray) -> Write:
            tree = self._read_tree(prefix, [paths[path] for path in batch])
            if tree is not None:
                logits, nodes = tree
            else:
                is_unpadded = all(len(paths[path]) == ids.shape[1] for path in batch)
                logits, _ = self._compute(prefix, ids, None if is_unpadded else attention)
                logits = logits.flatten(0, 1)  # (b * l, V)
                nodes = np.arange(len(logits)).reshape(ids.shape)
            # The m rows that use the b paths of this batch, and the index of each row's path
            served = np.concatenate([members[path] for path in batch])
            path = np.repeat(np.arange(len(batch)), [len(members[path]) for path in batch])
            # The q tokens to score: row i of the m rows, at a step of its path
            i, step = np.nonzero(targets[served, : ids.shape[1]] >= 0)
            spots, tokens = nodes[path[i], step], targets[served[i], step]
            terms = value(logits, spots, tokens)
            return lambda: values.__setitem__((served[i], step + 1), terms.cpu().numpy())

        batching.forward_in_batches(paths, run, pad=0, budget=self._budget)
        return values

    def _read_tree(self, prefix: Prefix, rows: Sequence[Tokens]) -> tuple[Tensor, IntArray] | None:
        """Return logits after each node of the tree of rows, (n_nodes, V), and each row's nodes.

        For the nodes, see `token_tree`. The result is None if a tree saves little, or if the
        network does not support trees. Some networks support only small trees, because a token
        attends to a limited number of tokens before it. So if a tree has more nodes than all
        earlier trees, the logits of its last row are compared with those of a separate call.
        """
        n_tokens = sum(map(len, rows))
        fits = len(prefix.ids) + max(map(len, rows)) <= _shortest_window(prefix.cache)
        is_possible = self._reads_trees and fits and not is_merged()
        if len(rows) == 1 or n_tokens > _MAX_TREE or not is_possible:
            return None
        node_of, nodes = token_tree(rows)
        if len(node_of) > 0.9 * n_tokens:
            return None
        if len(node_of) <= self._largest_tree:
            return self._forward_tree(prefix, node_of), nodes
        try:
            logits = self._forward_tree(prefix, node_of)
        except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
            if batching.out_of_memory(error):
                raise
            self._reads_trees = False
            return None
        row = torch.tensor([rows[-1]], device=self._device)
        expected, _ = self._forward(prefix, row)
        self._reads_trees = _agree(logits[nodes[-1, : len(rows[-1])]], expected[0], expected)
        self._largest_tree = len(node_of)
        return (logits, nodes) if self._reads_trees else None

    def _forward_tree(self, prefix: Prefix, node_of: dict[Tokens, int]) -> Tensor:
        """Return logits after each node, (n_nodes, V), given the first result of `token_tree`."""
        n_before = len(prefix.ids)
        ids = np.array([tokens[-1] for tokens in node_of])
        positions = np.array([n_before + len(tokens) - 1 for tokens in node_of])
        # Each node attends to itself, to the nodes before it in its rows, and to the prefix
        sees = np.eye(len(node_of), dtype=np.bool_)
        for tokens, node in node_of.items():
            if len(tokens) > 1:
                sees[node] |= sees[node_of[tokens[:-1]]]
        sees = np.pad(sees, ((0, 0), (n_before, 0)), constant_values=True)
        dtype = self._model.dtype
        mask = torch.zeros(sees.shape, dtype=dtype).masked_fill_(
            torch.from_numpy(~sees), torch.finfo(dtype).min
        )
        output = self._model(
            input_ids=batching.to_device(ids[None], self._device),
            position_ids=batching.to_device(positions[None], self._device),
            attention_mask=mask[None, None].to(self._device),
            use_cache=True,
            **{self._cache_argument: _for_rows(prefix.cache, 1)},
        )
        return torch.as_tensor(output.logits[0])

    def _compute(
        self, prefix: Prefix, ids: Tensor, attention: Tensor | None, *, keeps: bool = False
    ) -> tuple[Tensor, Any]:
        """Return the result of `_forward`, computed with calls of other searches if possible.

        The cache is valid only if `keeps` is True. Costs are counted as for a separate call.
        """
        if prefix.cache is None:  # the prefix is processed again for each row
            count(0, len(ids) * len(prefix.ids), calls=0)
        call = self.call(prefix, ids, attention, keeps=keeps)
        merges = is_merged() and self.merges(call)
        result: tuple[Tensor, Any] = answer(call) if merges else call.compute()
        return result

    def call(
        self, prefix: Prefix, ids: Tensor, attention: Tensor | None, *, keeps: bool = False
    ) -> NetworkCall:
        """Create a call that computes the logits of rows (b, l) after a prefix.

        If `keeps` is True, which requires b = 1, the call also computes the cache of the prefix and
        the row.
        """
        compute, about = partial(self._forward, prefix, ids, attention), (prefix, keeps)
        return NetworkCall(
            self._model, self._budget, ids, attention, compute, self._run_merged, about, prefix.ids
        )

    def merges(self, call: NetworkCall) -> bool:
        """Return True if a call may be merged with calls of other searches.

        A call with more than 1/8 of the budget's tokens is not merged, because it is large enough
        to use a GPU well. A call that must return a cache is merged only if the cache of a batch
        can be divided into rows.
        """
        prefix, keeps = call.about
        is_small = prod(call.shape) <= call.budget.tokens // 8
        return is_small and (not keeps or _is_plain(prefix.cache)) and self.merges_prefixes

    def _run_merged(self, calls: Sequence[NetworkCall]) -> list[tuple[Tensor, Any]]:
        """Compute several calls in one batch, in which each row includes its prefix."""
        ids, attention = stack_calls(calls)
        # The first `shortest` tokens of each row belong to a prefix. No call needs their logits
        shortest = min(len(call.prefix_ids) for call in calls)
        n_logits = ids.shape[1] - shortest
        output = self._model(
            input_ids=ids,
            attention_mask=attention,
            use_cache=any(keeps for _, keeps in (call.about for call in calls)),
            **({"logits_to_keep": n_logits} if self._limits_logits else {}),
        )
        logits = output.logits[:, -n_logits:]
        results: list[tuple[Tensor, Any]] = []
        row = 0
        for call in calls:
            n_rows, length = call.shape
            _, keeps = call.about
            begin = len(call.prefix_ids) - shortest
            call_logits = logits[row : row + n_rows, begin : length - shortest]
            cache = _of_row(getattr(output, _CACHE), row, length) if keeps else None
            results.append((call_logits, cache))
            row += n_rows
        return results

    def _forward(
        self,
        prefix: Prefix,
        ids: Tensor,
        attention: Tensor | None = None,
        *,
        n_positions: int | None = None,
    ) -> tuple[Tensor, Any]:
        """Return logits (b, l, V) of rows (b, l) after a prefix, and the cache of prefix and rows.

        If `n_positions` is set, only the logits of the last `n_positions` tokens are computed.
        """
        n_positions = n_positions or ids.shape[1]
        n_before = len(prefix.ids)
        if attention is not None:
            attention = torch.cat([attention.new_ones(len(ids), n_before), attention], dim=1)
        has_cache = prefix.cache is not None
        if not has_cache:
            prefix_ids = batching.to_device(np.array(prefix.ids, np.int64), ids.device)
            ids = torch.cat([prefix_ids.expand(len(ids), -1), ids], dim=1)
        output = self._model(
            input_ids=ids,
            attention_mask=attention,
            use_cache=True,
            **({self._cache_argument: _for_rows(prefix.cache, len(ids))} if has_cache else {}),
            **({"logits_to_keep": n_positions} if self._limits_logits else {}),
        )
        logits = output.logits[:, -n_positions:]
        cache = getattr(output, _CACHE, None)
        return logits, cache if self._keeps_prefixes and _can_be_shared(cache) else None

    def _can_continue_from_cache(self) -> bool:
        """Return True if a row has the same logits in one pass and in two passes with a cache.

        Moshi's network is a counterexample: its cache drops tokens that its attention still reads.
        """
        if len(self._trial) < 3:
            return False
        row = torch.tensor([self._trial], device=self._device)
        half = 2 * len(self._trial) // 3
        with batching.computing():
            full_logits, _ = self._forward(_NOTHING, row)
            prefix = self._trial_prefix(row, half)
            if prefix.cache is None:
                return False
            continued_logits, _ = self._forward(prefix, row[:, half:])
        return _agree(continued_logits, full_logits[:, half:], full_logits)

    def _trial_prefix(self, row: Tensor, n: int) -> Prefix:
        _, cache = self._forward(_NOTHING, row[:, :n])
        return Prefix(tuple(self._trial[:n]), 0.0, np.empty(0), cache)

    @cached_property
    def merges_prefixes(self) -> bool:
        """True if two calls with different prefixes have correct logits when merged in a test."""
        if len(self._trial) < 6:
            return False
        row = torch.tensor([self._trial], device=self._device)
        half = len(self._trial) // 2
        with batching.computing():
            try:
                full_logits, _ = self._forward(_NOTHING, row)
                beginning, middle = self._trial_prefix(row, 1), self._trial_prefix(row, half)
                keeps = self._keeps_prefixes and _is_plain(beginning.cache)
                calls = [
                    self.call(beginning, row[:, 1:half], None, keeps=keeps),
                    self.call(middle, row[:, half:].expand(2, -1), None),
                ]
                (inner, inner_cache), (continued_logits, _) = self._run_merged(calls)
                parts = [
                    (inner, full_logits[:, 1:half]),
                    (continued_logits, full_logits[:, half:].expand(2, -1, -1)),
                ]
                if keeps:
                    again = Prefix(middle.ids, 0.0, np.empty(0), inner_cache)
                    logits_after, _ = self._forward(again, row[:, half:])
                    parts.append((logits_after, full_logits[:, half:]))
            except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
                if batching.out_of_memory(error):
                    raise
                return False
        return all(_agree(part, expected, full_logits) for part, expected in parts)


def _agree(logits: Tensor, expected: Tensor, full_logits: Tensor) -> bool:
    if not torch.equal(logits.isnan(), expected.isnan()):
        return False
    # Equal infinite logits have the difference nan
    difference = float((logits - expected).nan_to_num(0.0).abs().max())
    # The median ignores the huge values of unused tokens
    size = float(full_logits.abs().float().median())
    return difference <= max(1e-4, 32 * torch.finfo(full_logits.dtype).eps) * size


def _is_plain(cache: Any) -> bool:
    """Return True if all layers cache keys and values of all tokens."""
    layers = getattr(cache, "layers", ())
    return bool(layers) and all(type(layer) is DynamicLayer for layer in layers)


def _shortest_window(cache: Any) -> float:
    """Return the smallest number of tokens to which a layer attends; infinity without limits.

    Return 0 if a layer has no keys and values.
    """
    if not _can_be_shared(cache):
        return 0
    return min(getattr(layer, "sliding_window", None) or inf for layer in cache.layers)


def _of_row(cache: Any, row: int, length: int) -> Any:
    # Clone, since a view would keep the cache of the whole batch in memory
    return _with_states(cache, lambda states: states[row : row + 1, :, :length].clone())


def _can_be_shared(cache: Any) -> bool:
    """Return True if all layers cache keys and values; recurrent layers do not."""
    layers, kinds = getattr(cache, "layers", ()), (DynamicLayer, DynamicSlidingWindowLayer)
    return bool(layers) and all(type(layer) in kinds and layer.is_initialized for layer in layers)


def _for_rows(cache: Any, n_rows: int) -> Any:
    """Expand the cache of one row to a batch of rows, without copying keys and values."""
    return _with_states(cache, lambda states: states.expand(n_rows, -1, -1, -1))


def _with_states(cache: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return a copy of a cache with changed keys and values; `change` is applied in all layers."""
    changed = copy.copy(cache)
    changed.layers = [copy.copy(layer) for layer in cache.layers]
    for layer in changed.layers:
        layer.keys, layer.values = change(layer.keys), change(layer.values)
    return changed


def token_tree(rows: Sequence[Tokens]) -> tuple[dict[Tokens, int], IntArray]:
    """Return the tree of rows: rows with the same first tokens share nodes.

    No row may be the beginning of another row.

    Returns:
        A map from each beginning of a row to the number of the node where this beginning ends. Also
        the numbers of each row's nodes, in the order of the row's tokens, (n_rows, longest); 0
        beyond the end of a row.
    """
    node_of: dict[Tokens, int] = {}
    nodes = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for row, steps in zip(rows, nodes, strict=True):
        for step in range(len(row)):
            steps[step] = node_of.setdefault(row[: step + 1], len(node_of))
    return node_of, nodes


def shared_paths(rows: Sequence[Tokens]) -> tuple[list[Tokens], list[int]]:
    """Return paths, and for each row the index of a path that begins with the row.

    Paths are the rows that are not the beginning of another row. For the rows (1,), (1, 2) and
    (3,), the paths are (3,) and (1, 2), and the indices are 1, 1 and 0.
    """
    leaves: list[Tokens] = []
    leaf_of: dict[Tokens, int] = {}
    for row in sorted(set(rows), reverse=True):  # in reverse order, extensions of a row precede it
        if not leaves or leaves[-1][: len(row)] != row:
            leaves.append(row)
        leaf_of[row] = len(leaves) - 1
    return leaves, [leaf_of[row] for row in rows]
