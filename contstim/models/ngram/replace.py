"""The score of a sentence with every word of the vocabulary at one position, all at once.

Replacing one word changes at most `order` conditional probabilities: that of the word itself and
those of the words that have it in their context. For each of them the back-off recursion (Katz
1987, *Estimation of probabilities from sparse data*)

    log p(x | context of length c) = log p of the n-gram        if the model has it
                                   = weight of the context + log p(x | context of length c-1)

runs over dense arrays, one entry per word of the vocabulary, from the empty context up. The n-grams
that hold the replaced word at a given place are few, and sorted tables list them without a search:

    l_m … l_1 ?            the children of the context l_m … l_1
              ? x_1        the bigrams that end in x_1
    l_m … l_1 ? x_1 … x_r  those of l_m … l_1 ? x_1 … x_(r-1) that go on with x_r

An example, a trigram model and `<s> the ? sleeps </s>`, with `?` at place 2. Three conditional
probabilities change; `log10_prob(right)` gives that of the word `right` places after the `?`:

    right  target    contexts, the shortest first    n-grams in the tables, (left, right)
    0      ?         (none)   the       <s> the      ?          the ?        <s> the ?
                                                     (0, 0)     (1, 0)       (2, 0)
    1      sleeps    (none)   ?         the ?        sleeps     ? sleeps     the ? sleeps
                                                     (one)      (0, 1)       (1, 1)
    2      </s>      (none)   sleeps    ? sleeps     </s>       sleeps </s>  ? sleeps </s>
                                                     (one)      (one)        (0, 2)

`left` and `right` are the numbers of words before and after the `?` in an n-gram; without a `?`
there is one n-gram for all candidates. For each candidate that has the longer n-gram its value
replaces the shorter one's; to all others the weight of the context is added.

Values are added in float32 per word in KenLM's order, so that each conditional probability equals
KenLM's bit for bit; their sums are float64.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import Float32Array, FloatArray, IntArray
    from contstim.models.ngram.tables import NgramTables


@dataclass(frozen=True, eq=False)
class _Matches:
    """The n-grams of the model that have the candidates in one place, of one order."""

    words: IntArray  # (n,): the candidate's id
    rows: IntArray  # (n,): the n-gram's row in the table of its order


_CACHED_NGRAMS = 2**16
_CACHED_BYTES = 2**26  # of changed probabilities


class ReplacementScores:
    """Log10 probability of a sentence with each word of the vocabulary at one place.

    A search asks about the same places again and again while words change elsewhere. What depends
    on the neighbours of a place alone is cached, in 64 MB at most; tables never change, so that
    nothing cached becomes wrong.

    Args:
        tables: the model.
    """

    def __init__(self, tables: NgramTables) -> None:
        self._tables = tables
        self._log10_prob = lru_cache(_CACHED_NGRAMS)(partial(_log10_prob, tables))
        n_results = max(1, _CACHED_BYTES // tables.orders[0].log10_prob.nbytes)
        self._changed = lru_cache(n_results)(self._between)

    def __call__(self, ids: tuple[int, ...], place: int) -> FloatArray:
        """Log10 probabilities, (n_words,).

        Args:
            ids: the sentence as word ids, with <s> first and </s> last.
            place: index into `ids` of the word to replace, 1 or more.
        """
        order = self._tables.order
        # Terms are added from left to right, as KenLM's are: first those of the words before, which
        # are the same for every word
        same = 0.0
        for target in range(1, place):
            same += float(self._log10_prob(ids[max(0, target + 1 - order) : target + 1]))
        total = np.full(len(self._tables.words), same)
        for target in range(place, min(place + order, len(ids))):
            # The words that the target's probability depends on, on either side of the place
            before = ids[max(0, target + 1 - order) : place]
            total += self._changed(before, ids[place + 1 : target + 1])
        for target in range(place + order, len(ids)):
            total += float(self._log10_prob(ids[target + 1 - order : target + 1]))
        return total

    def _between(self, before: tuple[int, ...], after: tuple[int, ...]) -> Float32Array:
        """Log10 probabilities, (n_words,), of the last of the words after each word.

        Without words after it, of the word itself.
        """
        neighbourhood = _Neighbourhood(self._tables, np.array([*before, 0, *after]), len(before))
        return neighbourhood.log10_prob(len(after))


def _log10_prob(tables: NgramTables, ids: Sequence[int] | IntArray) -> np.float32:
    """Log10 probability of the last word given the others."""
    last = int(ids[-1])
    prob = np.float32(tables.orders[0].log10_prob[last])
    for length in range(1, min(tables.order, len(ids))):
        context = _row(tables, ids[-1 - length : -1])
        if context < 0:  # pruned models may lack it, and still have a longer one
            continue
        row = int(tables.find(length + 1, np.array([context]), last)[0])
        if row >= 0:
            prob = np.float32(tables.orders[length].log10_prob[row])
        else:
            prob += np.float32(tables.orders[length - 1].log10_backoff[context])
    return prob


def _row(tables: NgramTables, ids: Sequence[int] | IntArray) -> int:
    """Row of an n-gram in the table of its order; -1 where the model does not have it."""
    rows = np.array(ids[:1])
    for order, word in enumerate(ids[1:], start=2):
        rows = tables.find(order, rows, int(word))
        if rows[0] < 0:
            break
    return int(rows[0])


@dataclass(eq=False)
class _Neighbourhood:
    """The words around the place, and the model's n-grams there, each looked up once."""

    tables: NgramTables
    ids: IntArray
    place: int
    cache: dict[tuple[int, int], _Matches] = field(default_factory=dict)  # by (left, right)

    def log10_prob(self, right: int) -> Float32Array:
        """Log10 probability, (n_words,), of the word `right` places after the replaced one."""
        tables, size = self.tables, len(self.tables.words)
        if right == 0:
            probs = tables.orders[0].log10_prob.copy()
        else:  # the contexts that end after the candidate are the same for all
            after = self.ids[self.place + 1 : self.place + right + 1]
            probs = np.full(size, _log10_prob(tables, after), np.float32)
        # N-grams of `left` words, the candidate and `right` words, the last of which is predicted;
        # the candidate's own unigram is in `probs` already
        for left in range(right == 0, min(tables.order - 1 - right, self.place) + 1):
            length = left + right  # of the context; `orders[length]` holds n-grams of length + 1
            if right == 0:  # a context of words before the place, the same for all candidates
                context = _row(tables, self.ids[self.place - left : self.place])
                if context >= 0:
                    probs += tables.orders[left - 1].log10_backoff[context]
            else:
                contexts = self.matches(left, right - 1)
                weights = tables.orders[length - 1].log10_backoff
                probs[contexts.words] += weights[contexts.rows]
            ngrams = self.matches(left, right)
            probs[ngrams.words] = tables.orders[length].log10_prob[ngrams.rows]
        return probs

    def matches(self, left: int, right: int) -> _Matches:
        """The model's n-grams of `left` words, any candidate, and `right` words of the sentence."""
        tables, order, key = self.tables, left + right + 1, (left, right)
        if key in self.cache:
            return self.cache[key]
        if left == right == 0:  # every word; a unigram's row is the word's id
            words = rows = np.arange(len(tables.words), dtype=np.int64)
        elif right == 0:  # the children of the words before
            context = _row(tables, self.ids[self.place - left : self.place])
            span = tables.children(order, context) if context >= 0 else slice(0, 0)
            rows = np.arange(span.start, span.stop)
            words = tables.word_of(order, rows)
        elif (left, right) == (0, 1):  # here the candidate is the prefix, not the last word
            rows = tables.bigrams_ending_in(int(self.ids[self.place + 1]))
            words = tables.prefix_of(2, rows)
        else:  # those of one word less that go on with the sentence's next word
            shorter = self.matches(left, right - 1)
            rows = tables.find(order, shorter.rows, int(self.ids[self.place + right]))
            words, rows = shorter.words[rows >= 0], rows[rows >= 0]
        self.cache[key] = _Matches(words, rows)
        return self.cache[key]
