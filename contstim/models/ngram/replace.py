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
KenLM's bit for bit, but for those above 1 of pruned models (see `tables`). Their sums are float64,
whose 53 bits hold sums of such numbers of 24 bits exactly, save where a probability is within a
millionth of 1; there they are off by 1e-12 nats at most. So terms may be added in any order: the
sum of the changed ones is cached, and those of the words before and after them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contstim.models.caching import SizedCache

if TYPE_CHECKING:
    from contstim.files.arrays import Float32Array, FloatArray, IntArray
    from contstim.models.ngram.tables import NgramTables


Matches: TypeAlias = "tuple[IntArray, IntArray]"
"""N-grams of one order that have any word at the place: (n_ngrams,) ids of the words there, and the
n-grams' rows in the table of their order."""

_CACHED_NGRAMS = 2**16
_CACHED_MATCHES = 2**22  # n-grams, of 16 bytes each
_CACHED_BYTES = 2**26  # of changed probabilities, and as much of their sums


class ReplacementScores:
    """Log10 probability of a sentence with each word of the vocabulary at one place.

    A search asks about the same places again and again while words change elsewhere. What depends
    on the neighbours of a place alone is cached, in about 200 MB; tables never change, so that
    nothing cached becomes wrong.

    Args:
        tables: the model.
    """

    def __init__(self, tables: NgramTables) -> None:
        self._tables = tables
        self._sum = lru_cache(2 * _CACHED_NGRAMS)(self._sum_of_same)
        self._matches = SizedCache(
            self._find_matches, lambda matches: len(matches[1]), _CACHED_MATCHES
        )
        n_rows = max(1, _CACHED_BYTES // tables.orders[0].log10_prob.nbytes)
        self._changed = lru_cache(n_rows)(self._with_each_word)
        self._all_changed = lru_cache(max(1, n_rows // 2))(self._sum_of_changed)

    def __call__(self, ids: tuple[int, ...], place: int, words: IntArray) -> FloatArray:
        """Log10 probabilities, (n_words,).

        Args:
            ids: the sentence as word ids, with <s> first and </s> last.
            place: index into `ids` of the word to replace, 1 or more.
            words: ids of the words to put there.
        """
        order = self._tables.order
        before, after = ids[:place], ids[place + 1 :]
        changed = self._all_changed(before[1 - order :] if order > 1 else (), after[: order - 1])
        # Before the place all words but <s>; after it those that depend on no word before it
        return changed.take(words) + (self._sum(before, 2) + self._sum(after, order))

    def _sum_of_same(self, ids: tuple[int, ...], first: int) -> float:
        """Log10 probability of words from the `first` on, which counts from 1."""
        order, total = self._tables.order, 0.0
        for end in range(first, len(ids) + 1):
            total += float(self._tables.log10_prob(ids[max(0, end - order) : end]))
        return total

    def _sum_of_changed(self, before: tuple[int, ...], after: tuple[int, ...]) -> FloatArray:
        """Log10 probability, (n_words,), of each word together with the words after it.

        Args:
            before: the words before the place on which one of these depends.
            after: the words after the place that depend on the word there.
        """
        total = self._changed(before, ()).astype(np.float64)
        for right in range(1, len(after) + 1):
            # The words before the place on which the last of `right` words after it depends
            first = max(0, len(before) - (self._tables.order - 1 - right))
            total += self._changed(before[first:], after[:right])
        return total

    def _with_each_word(self, before: tuple[int, ...], after: tuple[int, ...]) -> Float32Array:
        """Log10 probabilities, (n_words,), of the last of the words after each word.

        Without words after it, of the word itself.

        Args:
            before: the words before the place that are among the longest context.
            after: the words after the place, the last of which is predicted.
        """
        tables, length = self._tables, len(before) + len(after)
        if before:  # all shorter contexts
            probs = self._changed(before[1:], after).copy()
        elif after:  # the contexts that end after the place are the same for all words
            probs = np.full(len(tables.words), tables.log10_prob(after), np.float32)
        else:
            return tables.orders[0].log10_prob
        # The longest context, a row of the table of its order: one for all words, or one for each
        if after:
            words, rows = self._matches(before, after[:-1])
            probs[words] += tables.orders[length - 1].log10_backoff[rows]
        elif (context := tables.row(before)) >= 0:
            probs += tables.orders[length - 1].log10_backoff[context]
        words, rows = self._matches(before, after)
        probs[words] = tables.orders[length].log10_prob[rows]
        return probs

    def _find_matches(self, before: tuple[int, ...], after: tuple[int, ...]) -> Matches:
        """The model's n-grams of the words before, any word, and the words after it."""
        tables, order = self._tables, len(before) + 1 + len(after)
        if order == 1:  # every word; a unigram's row is the word's id
            words = rows = np.arange(len(tables.words), dtype=np.int64)
        elif not after:  # the children of the words before
            context = tables.row(before)
            span = tables.children(order, context) if context >= 0 else slice(0, 0)
            rows = np.arange(span.start, span.stop)
            words = tables.word_of(order, rows)
        elif order == 2:  # here the word at the place is the prefix, not the last word
            rows = tables.bigrams_ending_in(after[0])
            words = tables.prefix_of(2, rows)
        else:  # those of one word less that go on with the next word
            words, shorter = self._matches(before, after[:-1])
            rows = tables.orders[order - 1].find(shorter * len(tables.words) + after[-1])
            words, rows = words[rows >= 0], rows[rows >= 0]
        return words, rows
