"""Log-probabilities of continuations of a prefix, which is read once for all of them.

Continuations `big dogs bark`, `big dog` and `small` of a prefix, each word a token:

    rows        big dogs bark | big dog | small      tokens to score
    passes      big dogs                             `shared_paths` of the rows without their last
    logits      after prefix; after big; after big dogs

The last token of a row is never read, since nothing follows it. The first token of every row is
scored from the prefix, so that `small` needs no pass. Row `big dog` needs the logits after `big`,
which the pass `big dogs` has: one pass of two tokens serves both rows, at steps 0 and 1.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property, partial
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer
from transformers.utils.generic import ModelOutput

from contstim.models import batching
from contstim.models.boundaries import Normaliser, token_classes
from contstim.models.costs import count
from contstim.models.merging import NetworkCall, answer, is_merged, stacked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.files.arrays import BoolArray, FloatArray, IntArray
    from contstim.models.batching import Write
    from contstim.models.checkpoints import Checkpoint
    from contstim.models.words import Tokens


_TRIAL = "the old house was not good for people but the small dog had water"
_TRIAL_LENGTH = 12  # tokens by which it is tried out whether a network can go on from its cache
_MERGED_SHARE = 8  # of the calls of several searches, those of an eighth of a batch are merged
# transformers 5.24 renamed the cache of keys and values in all arguments and outputs
_CACHE = "cache" if hasattr(ModelOutput, "past_key_values") else "past_key_values"


@dataclass(frozen=True, eq=False)
class Prefix:
    """Tokens that the network has read: a context, and words after it.

    Attributes:
        ids: the tokens.
        log_prob: of the words' tokens, nats; those of the context do not count.
        next_log_probs: (n_vocabulary,) of the next token, nats.
        cache: keys and values of all layers, for one row; None if rows cannot share them.
    """

    ids: Tokens
    log_prob: float
    next_log_probs: FloatArray
    cache: Any


_NOTHING = Prefix((), 0.0, np.empty(0), None)


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
        parameters = signature(self._model.forward).parameters
        self._chooses_places = "logits_to_keep" in parameters
        # Code that comes with a checkpoint may have the old name
        self._cache_argument = _CACHE if _CACHE in parameters else "past_key_values"
        self._budget = batching.Budget.for_device(self._device)
        size = int(self._model.config.get_text_config().vocab_size)
        classes = token_classes(checkpoint.tokenizer, size) if by_words else None
        self._normaliser = Normaliser(classes, self._device)
        ids = checkpoint.tokenizer(_TRIAL, add_special_tokens=False)["input_ids"]
        self._trial: list[int] = ids[: min(_TRIAL_LENGTH, checkpoint.window or len(ids))]
        self._keeps_prefixes = True
        self._keeps_prefixes = self._continues_its_cache()

    def begin(self, context: Tokens) -> Prefix:
        """Read a context of at least one token; its log-probability is 0."""
        with batching.computing(), batching.single_input(len(context), self._device):
            row = batching.to_device(np.array([context], np.int64), self._device)
            count(1, len(context))
            logits, cache = self._forward(_NOTHING, row, places=1)
            next_log_probs = self._normaliser.log_softmax(logits[0, -1]).double().cpu().numpy()
        return Prefix(context, 0.0, next_log_probs, cache)

    def extend(self, prefix: Prefix, ids: Tokens) -> Prefix:
        """Read one more token or several, and add their log-probability."""
        with batching.computing(), batching.single_input(len(prefix.ids) + len(ids), self._device):
            count(1, len(ids))
            row = batching.to_device(np.array([ids], np.int64), self._device)
            logits, cache = self._read(prefix, row, None, keeps=self._keeps_prefixes)
            after = self._normaliser.log_softmax(logits[0, -1])
            later = np.array(ids[1:], np.int64)
            inner = self._normaliser.log_probs(logits[0], np.arange(len(later)), later)
            # Copied together, since a GPU is waited for at each copy
            copied = torch.cat([after.double(), inner.double().sum()[None]]).cpu().numpy()
        log_prob = prefix.log_prob + float(prefix.next_log_probs[ids[0]]) + float(copied[-1])
        return Prefix(prefix.ids + ids, log_prob, copied[:-1], cache)

    def continuations(self, prefix: Prefix, rows: Sequence[Tokens]) -> FloatArray:
        """Log p(token | prefix and the row's earlier tokens), (n_rows, longest row), nats.

        Zero beyond the end of a row. Rows that begin alike share the passes of their beginnings.

        Args:
            prefix: what comes before each row.
            rows: one or more tokens each.
        """
        log_probs = self._within_rows(prefix, rows, self._normaliser.log_probs)
        if rows:
            log_probs[:, 0] = prefix.next_log_probs[[row[0] for row in rows]]
        return log_probs

    def masses(self, prefix: Prefix, rows: Sequence[Tokens], tokens: BoolArray) -> FloatArray:
        """Log p(the next token is one of these) before each token of a row, nats.

        (n_rows, longest row); before the first token 0 stands for what is not asked, and beyond the
        end of a row.

        Args:
            prefix: what comes before each row.
            rows: one or more tokens each.
            tokens: (n_vocabulary,), which.
        """
        chosen = batching.to_device(np.flatnonzero(tokens), self._device)

        def mass(logits: Tensor, spots: IntArray, _next: IntArray) -> Tensor:
            of_spots = torch.logsumexp(batching.log_softmax32(logits)[:, chosen], dim=-1)
            return of_spots[batching.to_device(spots, logits.device)].double()

        return self._within_rows(prefix, rows, mass)

    def _within_rows(
        self,
        prefix: Prefix,
        rows: Sequence[Tokens],
        value: Callable[[Tensor, IntArray, IntArray], Tensor],
    ) -> FloatArray:
        """A value of every token but the first of each row, (n_rows, longest row); else zero.

        Args:
            prefix: what comes before each row.
            rows: one or more tokens each.
            value: a function of logits (k, V), and of the rows there (q,) after which tokens (q,)
                stand; its values are (q,).
        """
        values = np.zeros((len(rows), max(map(len, rows), default=0)))
        longer = [number for number, row in enumerate(rows) if len(row) > 1]
        paths, path_of = shared_paths([rows[number][:-1] for number in longer])
        members: list[list[int]] = [[] for _ in paths]
        for number, path in zip(longer, path_of, strict=True):
            members[path].append(number)
        # targets[i, t] is the token of row i that follows step t of its path; -1 beyond its end
        targets = np.full(values[:, 1:].shape, -1, np.int64)
        for number in longer:
            targets[number, : len(rows[number]) - 1] = rows[number][1:]

        def run(ids: Tensor, attention: Tensor, batch: IntArray) -> Write:
            whole = all(len(paths[path]) == ids.shape[1] for path in batch)
            logits, _ = self._read(prefix, ids, None if whole else attention)  # (b, l, V)
            # The m rows that the b paths serve, and the path, counted in the batch, of each
            served = np.concatenate([members[path] for path in batch])
            path = np.repeat(np.arange(len(batch)), [len(members[path]) for path in batch])
            # The q tokens to score: the i-th of the m rows, at a step of its path
            i, step = np.nonzero(targets[served, : ids.shape[1]] >= 0)
            spots, tokens = path[i] * ids.shape[1] + step, targets[served[i], step]
            terms = value(logits.flatten(0, 1), spots, tokens)
            return partial(write, (served[i], step + 1), terms)

        def write(places: tuple[IntArray, IntArray], terms: Tensor) -> None:
            values[places] = terms.cpu().numpy()

        batching.forward_in_batches(paths, run, pad=0, budget=self._budget)
        return values

    def _read(
        self, prefix: Prefix, ids: Tensor, attention: Tensor | None, *, keeps: bool = False
    ) -> tuple[Tensor, Any]:
        """Result of `_forward`, in a batch with the calls of other searches if there are any.

        The cache counts only where it is to be kept. The cost is that of the call by itself.
        """
        if prefix.cache is None:
            count(0, len(ids) * len(prefix.ids), calls=0)  # read anew for each row
        call = self.call(prefix, ids, attention, keeps=keeps)
        merges = is_merged() and self.merges(call)
        result: tuple[Tensor, Any] = answer(call) if merges else call.compute()
        return result

    def call(
        self, prefix: Prefix, ids: Tensor, attention: Tensor | None, *, keeps: bool = False
    ) -> NetworkCall:
        """A call for the logits of rows after a prefix, and for the cache of both.

        Args:
            prefix: what comes before each row.
            ids: (b, l)
            attention: (b, l), or None where nothing is padded.
            keeps: whether the cache is wanted; then there is one row.
        """
        compute, about = partial(self._forward, prefix, ids, attention), (prefix, keeps)
        return NetworkCall(
            self._model, self._budget, ids, attention, compute, self._together, about, prefix.ids
        )

    def merges(self, call: NetworkCall) -> bool:
        """True if a call may be merged with others.

        Not so for large calls, which fill a GPU by themselves and gain from the prefix's cache; nor
        where a cache is wanted that cannot be cut in pieces.
        """
        prefix, keeps = call.about
        n_rows, length = call.shape
        if n_rows * length > call.budget.tokens // _MERGED_SHARE:
            return False
        return (not keeps or _is_plain(prefix.cache)) and self.merges_prefixes

    def _together(self, calls: Sequence[NetworkCall]) -> list[tuple[Tensor, Any]]:
        """Several calls in one batch: rows with their prefixes, padded to the longest."""
        ids, attention = stacked(calls)
        # What is in all prefixes has no places of the vocabulary head
        fewest = min(len(call.before) for call in calls)
        places = ids.shape[1] - fewest
        output = self._model(
            input_ids=ids,
            attention_mask=attention,
            use_cache=any(keeps for _, keeps in (call.about for call in calls)),
            **({"logits_to_keep": places} if self._chooses_places else {}),
        )
        logits = output.logits[:, -places:]
        results: list[tuple[Tensor, Any]] = []
        row = 0
        for call in calls:
            n_rows, length = call.shape
            _, keeps = call.about
            own = logits[row : row + n_rows, len(call.before) - fewest : length - fewest]
            cache = _of_row(getattr(output, _CACHE), row, length) if keeps else None
            results.append((own, cache))
            row += n_rows
        return results

    def _forward(
        self,
        prefix: Prefix,
        ids: Tensor,
        attention: Tensor | None = None,
        *,
        places: int | None = None,
    ) -> tuple[Tensor, Any]:
        """Logits (b, l, V) of rows (b, l) after the prefix, and the cache of prefix and rows.

        No attention mask (b, l) stands for rows without padding. The library would find that out
        by a question to the device, for whose answer the host waits.

        The vocabulary head runs at the last `places` only, by default at all l of the rows.
        """
        places = places or ids.shape[1]
        n_before = len(prefix.ids)
        if attention is not None:
            attention = torch.cat([attention.new_ones(len(ids), n_before), attention], dim=1)
        shared = prefix.cache is not None
        if not shared:
            before = batching.to_device(np.array(prefix.ids, np.int64), ids.device)
            ids = torch.cat([before.expand(len(ids), -1), ids], dim=1)
        output = self._model(
            input_ids=ids,
            attention_mask=attention,
            use_cache=True,
            **({self._cache_argument: _for_rows(prefix.cache, len(ids))} if shared else {}),
            **({"logits_to_keep": places} if self._chooses_places else {}),
        )
        logits = output.logits[:, -places:]
        cache = getattr(output, _CACHE, None)
        return logits, cache if self._keeps_prefixes and _can_be_shared(cache) else None

    def _continues_its_cache(self) -> bool:
        """True if a row read in two pieces, the second after the cache of the first, is one row.

        Where it is not (Moshi's cache forgets what its attention still reads), rows after a prefix
        are read with the prefix anew.
        """
        if len(self._trial) < 3:
            return False
        row = torch.tensor([self._trial], device=self._device)
        half = 2 * len(self._trial) // 3
        with batching.computing():
            whole, _ = self._forward(_NOTHING, row)
            prefix = self._read_so_far(row, half)
            if prefix.cache is None:
                return False
            rest, _ = self._forward(prefix, row[:, half:])
        return _agree(rest, whole[:, half:], whole)

    def _read_so_far(self, row: Tensor, n: int) -> Prefix:
        """A prefix of the first n tokens of the trial, for trials alone."""
        _, cache = self._forward(_NOTHING, row[:, :n])
        return Prefix(tuple(self._trial[:n]), 0.0, np.empty(0), cache)

    @cached_property
    def merges_prefixes(self) -> bool:
        """True if calls after different prefixes can be computed in one batch, as tried out once.

        There rows are read with their prefixes anew, padded on the right.
        """
        if len(self._trial) < 6:
            return False
        row = torch.tensor([self._trial], device=self._device)
        half = len(self._trial) // 2
        with batching.computing():
            try:
                whole, _ = self._forward(_NOTHING, row)
                beginning, middle = self._read_so_far(row, 1), self._read_so_far(row, half)
                keeps = self._keeps_prefixes and _is_plain(beginning.cache)
                calls = [
                    self.call(beginning, row[:, 1:half], None, keeps=keeps),
                    self.call(middle, row[:, half:].expand(2, -1), None),
                ]
                (inner, kept), (rest, _) = self._together(calls)
                parts = [(inner, whole[:, 1:half]), (rest, whole[:, half:].expand(2, -1, -1))]
                if keeps:
                    again = Prefix(middle.ids, 0.0, np.empty(0), kept)
                    after, _ = self._forward(again, row[:, half:])
                    parts.append((after, whole[:, half:]))
            except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
                if batching.out_of_memory(error):
                    raise
                return False
        return all(_agree(part, expected, whole) for part, expected in parts)


def _agree(ours: Tensor, theirs: Tensor, whole: Tensor) -> bool:
    """True if logits are equal up to rounding."""
    difference = float((ours - theirs).nan_to_num(0.0).abs().max())
    # Beside stand-ins for infinity, which tokens without a use may have
    size = float(whole.abs().float().median())
    return difference <= max(1e-4, 32 * torch.finfo(whole.dtype).eps) * size


def _is_plain(cache: Any) -> bool:
    """True if all layers keep the keys and values of all tokens, so that a row can be cut out."""
    layers = getattr(cache, "layers", ())
    return bool(layers) and all(type(layer) is DynamicLayer for layer in layers)


def _of_row(cache: Any, row: int, length: int) -> Any:
    """The cache of a row of a batch, without its padding on the right."""
    single = copy.copy(cache)
    single.layers = [copy.copy(layer) for layer in cache.layers]
    for layer in single.layers:
        # Copied, so that what is kept of a row does not keep the whole batch in memory
        layer.keys = layer.keys[row : row + 1, :, :length].clone()
        layer.values = layer.values[row : row + 1, :, :length].clone()
    return single


def _can_be_shared(cache: Any) -> bool:
    """True if all layers cache keys and values; recurrent ones read the prefix for each row."""
    layers, kinds = getattr(cache, "layers", ()), (DynamicLayer, DynamicSlidingWindowLayer)
    return bool(layers) and all(type(e) in kinds and e.is_initialized for e in layers)


def _for_rows(cache: Any, n_rows: int) -> Any:
    """The cache of one row for a batch of rows; copied only when the network adds to it."""
    many = copy.copy(cache)
    many.layers = [copy.copy(layer) for layer in cache.layers]
    for layer in many.layers:
        layer.keys = layer.keys.expand(n_rows, -1, -1, -1)
        layer.values = layer.values.expand(n_rows, -1, -1, -1)
    return many


def shared_paths(rows: Sequence[Tokens]) -> tuple[list[Tokens], list[int]]:
    """The fewest rows that have every row as a beginning, and the index of one for each row.

    They are the leaves of the rows' trie: of (1,), (1, 2) and (3,) they are (3,) and (1, 2), and
    the indices 1, 1 and 0.
    """
    leaves: list[Tokens] = []
    leaf_of: dict[Tokens, int] = {}
    for row in sorted(set(rows), reverse=True):  # in reverse order, extensions of a row precede it
        if not leaves or leaves[-1][: len(row)] != row:
            leaves.append(row)
        leaf_of[row] = len(leaves) - 1
    return leaves, [leaf_of[row] for row in rows]
