"""Find the best sentence for a search between two n-gram models, and prove that it is the best.

The best sentence of n words has the lowest log-probability under the reject model. Its
log-probability under the accept model is at least the floor, and only repeatable words occur twice.
There are too many sentences to score all: 150 words at seven positions make 10^15. Branch and bound
extends prefixes word by word. It drops a prefix if no continuation can be better than the best
sentence known.

The bound is a Lagrangian relaxation. Let a and b be the log-probabilities of a prefix under the
accept and the reject model, and a' and b' those of a continuation. Let λ ≥ 0 be a price for each
nat above the floor. Sentences with this prefix that keep the floor have λ (a + a' - floor) ≥ 0, so

    log p(sentence | reject) ≥ b - λ (a - floor) + min over continuations of [b' - λ a'].

The minimum depends only on the last two words of the prefix and on the number of missing words. So
one table for each price, computed from the end backwards, serves all prefixes. The tables exclude
u v u and u v v; they allow more distant repetitions, which only lowers the bound. Another table has
the maximum of a'; it drops prefixes that cannot reach the floor.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from contstim.models.base import Continuation
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from contstim.files.arrays import BoolArray, FloatArray
    from contstim.models.ngram.adapter import NgramModel
    from contstim.words.vocabulary import Vocabulary

PRICES = np.concatenate([[0.0], np.geomspace(0.05, 8, 28)])
LONGEST = 8  # maximum number of words of a sentence
_ROUNDING = 1e-9  # nats; the order of summation changes sums by less
_CHILDREN_AT_ONCE = 2**21


@dataclass(frozen=True)
class Best:
    """Result of a search for the best sentence.

    Attributes:
        sentence: best sentence found; None if none was found.
        loss: lowest known log-probability under the reject model, nats. It may be the `loss` passed
            to `find`; inf if no sentence is known.
        proven: whether no sentence has a lower loss.
        nodes: number of prefixes that were not dropped.
    """

    sentence: Sentence | None
    loss: float
    proven: bool
    nodes: int


@dataclass(frozen=True, eq=False)
class Conditionals:
    """Conditional log-probabilities of words, nats; each axis is indexed by words.

    Attributes:
        first: (n_words,), of the first word.
        second: (n_words, n_words), of the second word given the first.
        later: (n_words, n_words, n_words), of a word given the two words before it.
        end: (n_words, n_words), of the end of the sentence given its last two words.
    """

    first: FloatArray
    second: FloatArray
    later: FloatArray
    end: FloatArray

    @classmethod
    @cache
    def of(cls, model: NgramModel, words: tuple[str, ...]) -> Conditionals:
        """Compute them for a model of order 3 or less, from scores of sentences of three words."""
        assert model.order <= 3
        n = len(words)
        pairs = [Sentence((u, v)) for u in words for v in words]
        first = model.continuation_log_probs([Continuation(Sentence((w,)), 0) for w in words])
        second = model.continuation_log_probs([Continuation(pair, 1) for pair in pairs])
        with_end = model.log_probs(pairs)
        without_end = model.continuation_log_probs([Continuation(pair, 0) for pair in pairs])
        end = (with_end - without_end).reshape(n, n)
        later = np.empty((n, n, n))
        for row, pair in enumerate(pairs):
            u, v = divmod(row, n)
            if u and model.order < 3:  # the model does not read u
                later[u] = later[0]
                continue
            # log p(w | u v) = log p(u v w </s>) - log p(u v) - log p(</s> | v w)
            three_words = Sentence(pair.words + words[:1])
            scores = model.replacement_log_probs(three_words, 2, words)
            later[u, v] = scores - without_end[row] - end[v]
        return cls(first, second.reshape(n, n), later, end)


class BestSentence:
    """Solver for one direction of a pair of models.

    Args:
        accept: model under which sentences must reach the floor.
        reject: model whose log-probability is minimised.
        vocabulary: allowed initial, inner and repeatable words.
    """

    def __init__(self, accept: NgramModel, reject: NgramModel, vocabulary: Vocabulary) -> None:
        self.words = tuple(dict.fromkeys((*vocabulary.initial, *vocabulary.inner)))
        self.accept = Conditionals.of(accept, self.words)
        self.reject = Conditionals.of(reject, self.words)
        initial, inner = set(vocabulary.initial), set(vocabulary.inner)
        self.is_initial: BoolArray = np.array([word in initial for word in self.words])
        self.is_inner: BoolArray = np.array([word in inner for word in self.words])
        # Mask of word pairs that may not occur together: equal in lower case and not repeatable
        lowered = np.array([word.lower() for word in self.words])
        may_repeat = np.array([word in vocabulary.repeatable for word in lowered.tolist()])
        equal_words = lowered[:, None] == lowered[None, :]
        self.clash: BoolArray = equal_words & ~may_repeat[:, None]
        self._to_come, self._start = cache(self._tables), cache(self._first_two)

    def _tables(self, price: float | None) -> tuple[FloatArray, ...]:
        """Return for 0, 1, … missing words the minimum cost of a continuation and the end mark.

        Each table has shape (n_words, n_words), by the last two words.
        """
        later = self._mix(self.accept.later, self.reject.later, price)
        later[:, :, ~self.is_inner] = np.inf
        later[self.clash[:, None, :].repeat(len(self.words), 1)] = np.inf  # u v u
        later[self.clash[None, :, :].repeat(len(self.words), 0)] = np.inf  # u v v
        tables = [self._mix(self.accept.end, self.reject.end, price)]
        for _ in range(LONGEST - 2):
            tables.append((later + tables[-1][None, :, :]).min(axis=2))
        return tuple(tables)

    @staticmethod
    def _mix(accepted: FloatArray, rejected: FloatArray, price: float | None) -> FloatArray:
        """Return the cost of terms: b - λ a, or -a without a price."""
        if price is None:
            return -accepted
        mixed: FloatArray = rejected - price * accepted
        return mixed

    def bound(self, floor: float, length: int) -> tuple[float, FloatArray]:
        """Return a lower bound of the loss of all sentences of a length; and bounds by price."""
        bounds = []
        for price in PRICES:
            start, to_come = self._start(float(price)), self._to_come(float(price))
            bounds.append((start + to_come[length - 2]).min() + price * floor)
        return float(max(bounds)), np.array(bounds)

    def _first_two(self, price: float | None) -> FloatArray:
        """Return the cost of the first two words, (n_words, n_words); inf if they are forbidden."""
        a, b = self.accept, self.reject
        first = self._mix(a.first, b.first, price)
        second = self._mix(a.second, b.second, price)
        start = first[:, None] + second
        start[~self.is_initial] = np.inf
        start[:, ~self.is_inner] = np.inf
        start[self.clash] = np.inf
        return start

    def find(
        self,
        floor: float,
        length: int,
        loss: float = np.inf,
        most_nodes: int = 20_000_000,
    ) -> Best:
        """Find the best sentence of a length.

        Args:
            floor: minimum log-probability under the accept model, nats.
            length: number of words, 2 to 8.
            loss: known loss of a sentence that keeps the floor; a low loss shortens the search.
            most_nodes: maximum number of prefixes of each of two passes.
        """
        floor -= _ROUNDING
        beam = self._expand(floor, length, np.inf, most_nodes, width=20_000)
        limit = min(loss, beam.loss)
        exact = self._expand(floor, length, limit, most_nodes, width=None)
        nodes = beam.nodes + exact.nodes
        if exact.loss < beam.loss:
            return Best(exact.sentence, exact.loss, exact.proven, nodes)
        # No sentence better than the limit was found
        return Best(beam.sentence, limit, exact.proven, nodes)

    def _expand(
        self, floor: float, length: int, limit: float, most_nodes: int, width: int | None
    ) -> Best:
        """Extend prefixes word by word, in parallel; for other arguments see `find`.

        Prefixes that cannot reach a loss below `limit` are dropped. `width` is the maximum number
        of prefixes of a length (beam search); None for all.
        """
        _, bounds = self.bound(floor, length)
        best_prices = np.argsort(-bounds)[:5]
        prices = [float(PRICES[i]) for i in sorted(best_prices)]
        to_come = {price: self._to_come(price) for price in (*prices, None)}
        a, b = self.accept, self.reject
        # Prefixes of two words: indices of words, and log-probabilities under both models
        u, v = np.nonzero(np.isfinite(self._start(0.0)))
        prefix = np.stack([u, v], axis=1)
        accepted, rejected = a.first[u] + a.second[u, v], b.first[u] + b.second[u, v]
        n_nodes = 0
        for n_left in range(length - 2, -1, -1):
            # The highest bound of each prefix over the prices
            last = prefix[:, -2], prefix[:, -1]
            lowest = np.full(len(prefix), -np.inf)
            for price in prices:
                relaxed = rejected - price * (accepted - floor) + to_come[price][n_left][last]
                lowest = np.maximum(lowest, relaxed)
            keep = accepted - to_come[None][n_left][last] >= floor
            keep &= lowest < limit - _ROUNDING
            rows = np.flatnonzero(keep)
            if width is not None and len(rows) > width:
                rows = rows[np.argpartition(lowest[rows], width)[:width]]
            prefix, accepted, rejected = prefix[rows], accepted[rows], rejected[rows]
            n_nodes += len(rows)
            if n_nodes > most_nodes:
                return Best(None, np.inf, proven=False, nodes=n_nodes)
            if not len(rows) or n_left == 0:
                break
            # Extend by every allowed word, a part of the prefixes at a time
            parts = []
            for part in np.array_split(
                np.arange(len(prefix)), len(prefix) * len(self.words) // _CHILDREN_AT_ONCE + 1
            ):
                u, v = prefix[part, -2], prefix[part, -1]
                accept_sums = accepted[part, None] + a.later[u, v]  # (n_part, n_words)
                reject_sums = rejected[part, None] + b.later[u, v]
                may = np.broadcast_to(self.is_inner, accept_sums.shape).copy()
                for column in range(prefix.shape[1]):
                    may &= ~self.clash[prefix[part, column]]
                may &= accept_sums - to_come[None][n_left - 1][v] >= floor
                for price in prices if np.isfinite(limit) else ():
                    relaxed = (
                        reject_sums - price * (accept_sums - floor) + to_come[price][n_left - 1][v]
                    )
                    may &= relaxed < limit - _ROUNDING
                row, word = np.nonzero(may)
                children = np.concatenate([prefix[part][row], word[:, None]], axis=1)
                parts.append((children, accept_sums[row, word], reject_sums[row, word]))
            prefix = np.concatenate([p for p, _, _ in parts])
            accepted = np.concatenate([p for _, p, _ in parts])
            rejected = np.concatenate([p for _, _, p in parts])
        if not len(prefix):
            return Best(None, np.inf, proven=True, nodes=n_nodes)
        # All sentences are complete and keep the floor
        u, v = prefix[:, -2], prefix[:, -1]
        rejected = rejected + b.end[u, v]
        best = int(np.argmin(rejected))
        sentence = Sentence(tuple(self.words[i] for i in prefix[best].tolist()))
        return Best(sentence, float(rejected[best]), proven=True, nodes=n_nodes)
