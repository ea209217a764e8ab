"""The best of all sentences that a search could find between two n-gram models, and its proof.

Wanted is the sentence of n words that the reject model finds least likely while the accept model
gives it at least the floor, and in which no word stands twice but those that may. There are far too
many to try all: 150 words at seven places make 10^15. Branch and bound writes sentences from left
to right and drops the beginnings that no continuation can make better than the best sentence known.

What a beginning can come to is bounded by Lagrangian relaxation. With `a` and `b` for the
log-probabilities of its words under the accept and the reject model, and any price λ ≥ 0 of a nat
above the floor, every sentence that keeps the floor and begins so has

    log p(sentence | reject) ≥ b - λ (a - floor) + min over continuations of [b' - λ a'],

since what is subtracted on the way is not negative in the end. The minimum depends on nothing but
the last two words and the number of words to come, so that one table for each price, computed from
the end of the sentence backwards, serves all beginnings of all sentences. The tables let a word
follow neither itself nor its neighbour's neighbour; other repetitions they allow, which only lowers
the bound. A second table, the most that the accept model can still give, drops beginnings from
which the floor cannot be reached.
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
LONGEST = 8  # words of a sentence
_ROUNDING = 1e-9  # nats; sums of the same terms in another order
_CHILDREN_AT_ONCE = 2**21


@dataclass(frozen=True)
class Best:
    """The best sentence, or what is known of it.

    Attributes:
        sentence: the best one that was met; None if no sentence keeps the floor.
        loss: its log-probability under the reject model, nats; inf without a sentence.
        proven: whether no other sentence is better.
        nodes: beginnings that were looked at.
    """

    sentence: Sentence | None
    loss: float
    proven: bool
    nodes: int


@dataclass(frozen=True, eq=False)
class Conditionals:
    """Log-probabilities of words given the two before them, nats; rows and columns are words.

    Attributes:
        first: (n_words,) of a word at the start of a sentence.
        second: (n_words, n_words) of a second word given the first.
        later: (n_words, n_words, n_words) of a word given the two before it.
        end: (n_words, n_words) of the end of the sentence given its last two words.
    """

    first: FloatArray
    second: FloatArray
    later: FloatArray
    end: FloatArray

    @classmethod
    @cache
    def of(cls, model: NgramModel, words: tuple[str, ...]) -> Conditionals:
        """Of a model of order 3 or less, from the scores of whole sentences of three words."""
        assert model.order <= 3
        n = len(words)
        pairs = [Sentence((u, v)) for u in words for v in words]
        first = model.continuation_log_probs([Continuation(Sentence((w,)), 0) for w in words])
        second = model.continuation_log_probs([Continuation(pair, 1) for pair in pairs])
        with_end = model.log_probs(pairs)
        before = model.continuation_log_probs([Continuation(pair, 0) for pair in pairs])
        end = (with_end - before).reshape(n, n)
        later = np.empty((n, n, n))
        for row, pair in enumerate(pairs):
            u, v = divmod(row, n)
            if u and model.order < 3:  # the word before the last one is not read
                later[u] = later[0]
                continue
            # log p(u v w </s>) less those of u v, and of </s> after v w
            three = Sentence(pair.words + words[:1])
            scores = model.replacement_log_probs(three, 2, words)
            later[u, v] = scores - before[row] - end[v]
        return cls(first, second.reshape(n, n), later, end)


class BestSentence:
    """Finds the best sentence of any length that begins anywhere, for one direction of a pair.

    Args:
        accept: keeps the floor.
        reject: is to find the sentence as unlikely as possible.
        vocabulary: the words, by where they may stand; none stands twice but its repeatable ones.
    """

    def __init__(self, accept: NgramModel, reject: NgramModel, vocabulary: Vocabulary) -> None:
        self.words = tuple(dict.fromkeys((*vocabulary.initial, *vocabulary.inner)))
        self.accept = Conditionals.of(accept, self.words)
        self.reject = Conditionals.of(reject, self.words)
        initial, inner = set(vocabulary.initial), set(vocabulary.inner)
        self.is_initial: BoolArray = np.array([word in initial for word in self.words])
        self.is_inner: BoolArray = np.array([word in inner for word in self.words])
        # Which words may not stand in one sentence, being the same in lower case
        lowered = np.array([word.lower() for word in self.words])
        may_repeat = np.array([word in vocabulary.repeatable for word in lowered.tolist()])
        same = lowered[:, None] == lowered[None, :]
        self.clash: BoolArray = same & ~may_repeat[:, None]
        # Computed once for each price
        self._to_come, self._start = cache(self._tables), cache(self._first_two)

    def _tables(self, price: float | None) -> tuple[FloatArray, ...]:
        """For 0, 1, … words to come, the least they and the end add after each pair of words.

        (n_words, n_words) each, as many as the longest sentences need.
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
        """What terms add to the relaxed loss; without a price, to the floor, negated."""
        if price is None:
            return -accepted
        mixed: FloatArray = rejected - price * accepted
        return mixed

    def bound(self, floor: float, length: int) -> tuple[float, FloatArray]:
        """No sentence of that length has a lower loss; and the bounds from all prices, (n,)."""
        bounds = []
        for price in PRICES:
            start, to_come = self._start(float(price)), self._to_come(float(price))
            bounds.append((start + to_come[length - 2]).min() + price * floor)
        return float(max(bounds)), np.array(bounds)

    def _first_two(self, price: float | None) -> FloatArray:
        """What the first two words add, (n_words, n_words); inf where they may not stand."""
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
        """The best sentence of a length.

        Args:
            floor: the accept model's least log-probability, nats.
            length: number of words, 2 to 8.
            loss: of a sentence that keeps the floor; the lower, the shorter the search.
            most_nodes: beginnings after which it gives up.
        """
        floor -= _ROUNDING
        beam = self._expand(floor, length, np.inf, most_nodes, width=20_000)
        limit = min(loss, beam.loss)
        exact = self._expand(floor, length, limit, most_nodes, width=None)
        nodes = beam.nodes + exact.nodes
        if exact.loss < beam.loss:
            return Best(exact.sentence, exact.loss, exact.proven, nodes)
        # Nothing better than the limit: the best is whatever has that loss
        return Best(beam.sentence, limit, exact.proven, nodes)

    def _expand(
        self, floor: float, length: int, limit: float, most_nodes: int, width: int | None
    ) -> Best:
        """Write sentences word by word, in parallel; with a width, a beam that keeps the best.

        Args:
            floor: see `find`.
            length: see `find`.
            limit: beginnings that cannot fall below this loss are dropped.
            most_nodes: see `find`.
            width: how many beginnings of one length are kept; None for all.
        """
        _, bounds = self.bound(floor, length)
        near = np.argsort(-bounds)[:5]
        prices = [float(PRICES[i]) for i in sorted(near)]
        to_come = {price: self._to_come(price) for price in (*prices, None)}
        a, b = self.accept, self.reject
        # Beginnings of two words: their words, and their log-probabilities under both models
        u, v = np.nonzero(np.isfinite(self._start(0.0)))
        prefix = np.stack([u, v], axis=1)
        accepted, rejected = a.first[u] + a.second[u, v], b.first[u] + b.second[u, v]
        n_nodes = 0
        for n_left in range(length - 2, -1, -1):
            # Bound the beginnings by all prices together
            last = prefix[:, -2], prefix[:, -1]
            lowest = np.full(len(prefix), -np.inf)
            for price in prices:
                relaxed = rejected - price * (accepted - floor) + to_come[price][n_left][last]
                lowest = np.maximum(lowest, relaxed)
            keep = accepted - to_come[None][n_left][last] >= floor
            keep &= lowest < limit - _ROUNDING
            kept = np.flatnonzero(keep)
            if width is not None and len(kept) > width:
                kept = kept[np.argpartition(lowest[kept], width)[:width]]
            prefix, accepted, rejected = prefix[kept], accepted[kept], rejected[kept]
            n_nodes += len(kept)
            if n_nodes > most_nodes:
                return Best(None, np.inf, proven=False, nodes=n_nodes)
            if not len(kept) or n_left == 0:
                break
            # Go on with every word that may follow, a part of the beginnings at a time
            parts = []
            for part in np.array_split(
                np.arange(len(prefix)), len(prefix) * len(self.words) // _CHILDREN_AT_ONCE + 1
            ):
                u, v = prefix[part, -2], prefix[part, -1]
                more = accepted[part, None] + a.later[u, v]  # (n_part, n_words)
                less = rejected[part, None] + b.later[u, v]
                may = np.broadcast_to(self.is_inner, more.shape).copy()
                for column in range(prefix.shape[1]):
                    may &= ~self.clash[prefix[part, column]]
                may &= more - to_come[None][n_left - 1][v] >= floor
                for price in prices if np.isfinite(limit) else ():
                    relaxed = less - price * (more - floor) + to_come[price][n_left - 1][v]
                    may &= relaxed < limit - _ROUNDING
                row, word = np.nonzero(may)
                children = np.concatenate([prefix[part][row], word[:, None]], axis=1)
                parts.append((children, more[row, word], less[row, word]))
            prefix = np.concatenate([p for p, _, _ in parts])
            accepted = np.concatenate([p for _, p, _ in parts])
            rejected = np.concatenate([p for _, _, p in parts])
        if not len(prefix):
            return Best(None, np.inf, proven=True, nodes=n_nodes)
        # All words stand; with the end, what is left keeps the floor and falls below the limit
        u, v = prefix[:, -2], prefix[:, -1]
        rejected = rejected + b.end[u, v]
        best = int(np.argmin(rejected))
        sentence = Sentence(tuple(self.words[i] for i in prefix[best].tolist()))
        return Best(sentence, float(rejected[best]), proven=True, nodes=n_nodes)
