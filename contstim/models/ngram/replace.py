"""Scores of a sentence with each word of the vocabulary at one position, computed together.

A new word changes its own conditional probability. It also changes the probabilities of later words
whose context contains this position. With n-grams of at most `order` words, at most `order`
probabilities change. Each probability is computed by the back-off recursion (Katz 1987, *Estimation
of probabilities from sparse data*):

    log p(x | context of length c) = log p of the n-gram        if the model has it
                                   = weight of the context + log p(x | context of length c-1)

The recursion goes from the empty context to the longest. Each value is an array with an entry for
each word of the vocabulary. The required n-grams contain the position (`?`) and its neighbours in
the sentence: m words l_m … l_1 before it and r words x_1 … x_r after it. These n-grams are found

    l_m … l_1 ?            as children of the context l_m … l_1
              ? x_1        as bigrams that end in x_1
    l_m … l_1 ? x_1 … x_r  from the n-grams l_m … l_1 ? x_1 … x_(r-1), followed by x_r

For example, a candidate word replaces the `?` in `<s> the ? sleeps </s>`. In a trigram model, three
conditional probabilities change. Their target words are 0, 1 and 2 positions to the right of `?`:

    right  target    contexts, the shortest first    n-grams in the tables, (left, right)
    0      ?         (none)   the       <s> the      ?          the ?        <s> the ?
                                                     (0, 0)     (1, 0)       (2, 0)
    1      sleeps    (none)   ?         the ?        sleeps     ? sleeps     the ? sleeps
                                                     (one)      (0, 1)       (1, 1)
    2      </s>      (none)   sleeps    ? sleeps     </s>       sleeps </s>  ? sleeps </s>
                                                     (one)      (one)        (0, 2)

`left` and `right` are the numbers of words before and after the `?` in an n-gram. N-grams without a
`?`, marked (one), are equal for all candidates.

Conditional log-probabilities are float32. The terms of their recursion are added in the same
sequence as in KenLM, see `tables`. Sums over words are float64 and nearly exact (the error is at
most 1e-12 nats), so their terms may be added in any sequence.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contstim.models.caching import SizedCache
from contstim.models.ngram.tables import BEGIN

if TYPE_CHECKING:
    from contstim.files.arrays import Float32Array, FloatArray, IntArray
    from contstim.models.ngram.tables import NgramTables


WordIds: TypeAlias = tuple[int, ...]

Matches: TypeAlias = "tuple[IntArray, IntArray]"
"""All n-grams of the model that differ from one another only in the word at the position. The first
array contains the ids of these words, (n_ngrams,). The second array contains the row of each n-gram
in the table of its order, (n_ngrams,)."""

_CACHED_NGRAMS = 2**16
_CACHED_MATCHES = 2**22  # n-grams, of 16 bytes each
_CACHED_BYTES = 2**26  # size of each of two caches: changed probabilities, and their sums


class ReplacementScores:
    """Function that computes a sentence's log10 probability with each word at one position.

    A search scores a position again after changes elsewhere in the sentence. Values that depend
    only on the neighbours of a position are therefore cached, in about 200 MB.
    """

    def __init__(self, tables: NgramTables) -> None:
        self._tables = tables
        self._sum_from = lru_cache(2 * _CACHED_NGRAMS)(tables.sum_from)
        self._matches = SizedCache(
            self._find_matches, lambda matches: len(matches[1]), _CACHED_MATCHES
        )
        n_rows = max(1, _CACHED_BYTES // tables.orders[0].log10_prob.nbytes)
        self._changed = lru_cache(n_rows)(self._log10_probs_by_word)
        self.entropy_after = lru_cache(_CACHED_NGRAMS)(self._entropy_after)
        self._all_changed = lru_cache(max(1, n_rows // 2))(self._sum_of_changed)

    def __call__(self, ids: WordIds, position: int, words: IntArray) -> FloatArray:
        """Return the sentence's log10 probability with each of the words, (n_words,).

        Args:
            ids: word ids of the sentence, with <s> first and </s> last.
            position: index into `ids` of the word to replace, at least 1.
            words: ids of the replacements.
        """
        order = self._tables.order
        ids_before, ids_after = ids[:position], ids[position + 1 :]
        context = ids_before[1 - order :] if order > 1 else ()
        changed = self._all_changed(context, ids_after[: order - 1])
        # Add the terms of the words before the position, but not the term of <s>. Also add the
        # terms of words that are at least `order` words after the position. The contexts of these
        # words do not contain the position
        unchanged = self._sum_from(1, ids_before) + self._sum_from(order - 1, ids_after)
        return changed.take(words) + unchanged

    def _entropy_after(self, ids_before: WordIds) -> float:
        """Return the entropy of the next word or `</s>` after at most `order` - 1 words, nats."""
        log_probs = self._changed(ids_before, ()).astype(np.float64) * np.log(10)
        probs = np.exp(log_probs)
        probs[BEGIN] = 0.0  # `<s>` is never predicted, but some files give it a probability
        return -float(probs @ np.maximum(log_probs, -1e3))  # avoid -inf: 0 · -inf is nan

    def _sum_of_changed(self, ids_before: WordIds, ids_after: WordIds) -> FloatArray:
        """Return log10 p(word, words after it | words before it) for each word, (n_words,).

        Args:
            ids_before: words before the position, at most order - 1.
            ids_after: words after the position, at most order - 1.
        """
        total = self._changed(ids_before, ()).astype(np.float64)
        for right in range(1, len(ids_after) + 1):
            # Index in `ids_before` of the first word in the context of the predicted word
            first = max(0, len(ids_before) - (self._tables.order - 1 - right))
            total += self._changed(ids_before[first:], ids_after[:right])
        return total

    def _log10_probs_by_word(self, ids_before: WordIds, ids_after: WordIds) -> Float32Array:
        """Return the log10 probability of a predicted word, for each word at the position.

        Args:
            ids_before: words before the position that the longest context contains.
            ids_after: words after the position; the last one is predicted. If empty, the word at
                the position is predicted.

        Returns:
            Log10 probabilities, (n_words,).
        """
        tables, length = self._tables, len(ids_before) + len(ids_after)
        if ids_before:  # start from the context without its first word
            probs = self._changed(ids_before[1:], ids_after).copy()
        elif ids_after:  # contexts without the position are equal for all candidates
            probs = np.full(len(tables.words), tables.log10_prob(ids_after), np.float32)
        else:
            return tables.orders[0].log10_prob
        # Add the back-off weight of the longest context. If words follow the position, this context
        # contains the position
        if ids_after:
            words, rows = self._matches(ids_before, ids_after[:-1])
            probs[words] += tables.orders[length - 1].log10_backoff[rows]
        elif (context := tables.row(ids_before)) >= 0:
            probs += tables.orders[length - 1].log10_backoff[context]
        words, rows = self._matches(ids_before, ids_after)
        probs[words] = tables.orders[length].log10_prob[rows]
        return probs

    def _find_matches(self, ids_before: WordIds, ids_after: WordIds) -> Matches:
        """Find the n-grams that consist of `ids_before`, any word, and `ids_after`."""
        tables, order = self._tables, len(ids_before) + 1 + len(ids_after)
        if order == 1:  # all words; a unigram's row is the word's id
            words = rows = np.arange(len(tables.words), dtype=np.int64)
        elif not ids_after:  # n-grams of the words before the position and one more word
            context = tables.row(ids_before)
            span = tables.children(order, context) if context >= 0 else slice(0, 0)
            rows = np.arange(span.start, span.stop)
            words = tables.word_of(order, rows)
        elif order == 2:  # the word at the position is the first word
            rows = tables.bigrams_ending_in(ids_after[0])
            words = tables.prefix_of(2, rows)
        else:  # extend the n-grams that lack the last word
            words, shorter = self._matches(ids_before, ids_after[:-1])
            rows = tables.orders[order - 1].find(shorter * len(tables.words) + ids_after[-1])
            words, rows = words[rows >= 0], rows[rows >= 0]
        return words, rows
