"""Back-off n-gram models as sorted arrays.

There is a table for each order n, with a row for each n-gram. Rows are sorted by an integer key.
The key encodes two numbers: the row of the first n-1 words in the table of order n-1, and the id of
the last word. So n-grams with the same first n-1 words are in consecutive rows. A binary search
finds an n-gram. The module `training` shows an example.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import chain, pairwise, repeat
from typing import TYPE_CHECKING

import numpy as np

from contstim.models.vocabularies import with_spellings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.files.arrays import Float32Array, FloatArray, IntArray
    from contstim.words.sentence import Sentence

_SENTENCES_AT_ONCE = 2**13
_CACHED_NGRAMS = 2**16
MAX_ORDER = 6
"""Maximum length of n-grams, as in KenLM's Python package."""

UNKNOWN, BEGIN, END = 0, 1, 2
SPECIAL_WORDS = ("<unk>", "<s>", "</s>")


@dataclass(frozen=True, eq=False)
class NgramTable:
    """All n-grams of one order n, with log10 values in float32, as in KenLM.

    Attributes:
        keys: ascending numbers, (n_ngrams,). A key is r × vocabulary size + w, where r is the row
            of the first n-1 words, and w is the id of the last word.
        log10_prob: log10 probability of the last word given the first n-1 words, (n_ngrams,).
        log10_backoff: log10 back-off weight of the n-gram as a context, (n_ngrams,); 0 if the
            n-gram does not begin a longer one.
    """

    keys: IntArray
    log10_prob: Float32Array
    log10_backoff: Float32Array

    def find(self, keys: IntArray) -> IntArray:
        """Return the rows with these keys, (n_keys,); -1 for missing keys."""
        if not len(self.keys):
            return np.full_like(keys, -1)
        rows = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[rows] == keys, rows, -1)


@dataclass(frozen=True, eq=False)
class NgramTables:
    """N-gram model with tables of all orders. Word ids 0, 1, 2 are `<unk>`, `<s>`, `</s>`.

    Many sentences are looked up together. One array contains all their words, with `<s>` before and
    `</s>` after each sentence. For each index of this array, `rows[n]` is the row of the n-gram
    that ends at the index, or -1. This n-gram consists of the (n-1)-gram that ends one index
    earlier, and the word at the index. For `<s> the dog sleeps </s>` in a trigram model, this table
    shows the n-grams instead of their rows:

        index      0      1         2              3                 4
        word       <s>    the       dog            sleeps            </s>
        rows[1]    <s>    the       dog            sleeps            </s>
        rows[2]    -1     <s> the   the dog        dog sleeps        sleeps </s>
        rows[3]    -1     -1        <s> the dog    the dog sleeps    dog sleeps </s>

    The probability of a word is computed by Katz's back-off recursion, see the module `replace`.
    Values are added in float32 in the same sequence as in KenLM, so that each conditional
    probability equals KenLM's bit for bit. There is one exception: if back-off weights of a pruned
    model make a probability p larger than 1, KenLM returns 1/p. Sums over words are float64, from
    left to right.

    Attributes:
        words: vocabulary; the id of a word is its index.
        orders: tables of order 1, 2, …; in the table of order 1, the row of a word is its id.
    """

    words: tuple[str, ...]
    orders: tuple[NgramTable, ...]

    @property
    def order(self) -> int:
        """Length of the longest n-grams."""
        return len(self.orders)

    @cached_property
    def word_ids(self) -> dict[str, int]:
        """Ids of words and of their alternative spellings.

        `<unk>`, `<s>` and `</s>` are omitted: in a sentence, these strings are unknown words.
        """
        return with_spellings({word: id_ for id_, word in enumerate(self.words) if id_ > END})

    def ids(self, words: Iterable[str]) -> IntArray:
        """Return the ids of words, (n_words,); 0 for unknown words."""
        return np.fromiter(map(self.word_ids.get, words, repeat(UNKNOWN)), np.int64)

    def sentence_ids(self, words: Sequence[str]) -> tuple[int, ...]:
        """Return the ids of a sentence's words, with `<s>` first and `</s>` last."""
        return (BEGIN, *map(self.word_ids.get, words, repeat(UNKNOWN)), END)

    def children(self, order: int, row: int) -> slice:
        """Return the rows of all n-grams of order `order` that begin with a shorter n-gram.

        The shorter n-gram has order - 1 words, and `row` is its row in the table of that order.
        """
        size = len(self.words)
        bounds = np.searchsorted(self.orders[order - 1].keys, [row * size, (row + 1) * size])
        return slice(int(bounds[0]), int(bounds[1]))

    def find_one(self, order: int, prefix: int, word: int) -> int:
        """Return the row of the n-gram of order `order` that ends in `word`; -1 if missing.

        `prefix` is the row of the n-gram without its last word, in the table of the next lower
        order.
        """
        keys, key = self.orders[order - 1].keys, prefix * len(self.words) + word
        row = int(keys.searchsorted(key))
        return row if row < len(keys) and keys[row] == key else -1

    @cached_property
    def row(self) -> Callable[[tuple[int, ...]], int]:
        """Function from the word ids of an n-gram to its row; -1 if the n-gram is missing."""
        return lru_cache(_CACHED_NGRAMS)(partial(_row, self))

    @cached_property
    def log10_prob(self) -> Callable[[tuple[int, ...]], float]:
        """Function from the ids of at most `order` words to log10 p(last word | words before)."""
        return lru_cache(_CACHED_NGRAMS)(partial(_log10_prob, self))

    def bigrams_ending_in(self, word: int) -> IntArray:
        """Return the rows of bigrams with this second word."""
        rows, starts = self._bigrams_by_last_word
        return rows[starts[word] : starts[word + 1]]

    @cached_property
    def _bigrams_by_last_word(self) -> tuple[IntArray, IntArray]:
        # Rows sorted by second word; and, for each second word, the index of its first row
        last = self.orders[1].keys % len(self.words)
        counts = np.bincount(last, minlength=len(self.words))
        return np.argsort(last, kind="stable"), np.concatenate([[0], np.cumsum(counts)])

    def word_of(self, order: int, rows: IntArray) -> IntArray:
        """Return the ids of the last words of n-grams, (n_rows,)."""
        return self.orders[order - 1].keys[rows] % len(self.words)

    def prefix_of(self, order: int, rows: IntArray) -> IntArray:
        """Return the row of each n-gram's first n-1 words in the table of order n-1, (n_rows,)."""
        return self.orders[order - 1].keys[rows] // len(self.words)

    def log10_probs(self, sentence: Sentence) -> list[float]:
        """Return the log10 probability of each word given the words before it, and of `</s>`."""
        ids = np.array(self.sentence_ids(sentence.words))
        return [*map(float, self._flat_log10_probs(ids)[1:])]

    def sum_from(self, first: int, ids: tuple[int, ...]) -> float:
        """Sum the log10 probabilities of the words from index `first` of `ids` to the last."""
        total = 0.0
        for end in range(first + 1, len(ids) + 1):
            total += self.log10_prob(ids[max(0, end - self.order) : end])
        return total

    def totals(
        self, sentences: Sequence[Sentence], starts: Sequence[int] | None = None, *, end: bool
    ) -> FloatArray:
        """Return the sums of the words' log10 probabilities, (n_sentences,).

        Args:
            sentences: sentences to score.
            starts: index of the first word to score in each sentence; None for all words.
            end: whether to score the end of the sentence.
        """
        totals = np.zeros(len(sentences))
        first = np.zeros(len(sentences), np.int64) if starts is None else np.asarray(starts)
        for start in range(0, len(sentences), _SENTENCES_AT_ONCE):
            batch = slice(start, start + _SENTENCES_AT_ONCE)
            rows = [self.sentence_ids(sentence.words) for sentence in sentences[batch]]
            ids = np.fromiter(chain.from_iterable(rows), np.int64)
            probs = self._flat_log10_probs(ids)
            # For each index of `ids`: its sentence in the batch, and its index in the sentence
            sentence_of = np.cumsum(ids == BEGIN) - 1
            index = np.arange(len(ids)) - np.flatnonzero(ids == BEGIN)[sentence_of]
            # `<s>` precedes word 0
            is_scored = index > first[batch][sentence_of]
            if not end:
                is_scored &= ids != END
            totals[batch] = np.bincount(sentence_of[is_scored], probs[is_scored], len(rows))
        return totals

    def holds(self, word: str) -> bool:
        """Return True if the model has this word; False for `<unk>`, `<s>` and `</s>`."""
        return word in self.word_ids

    def _flat_log10_probs(self, ids: IntArray) -> Float32Array:
        """Return the log10 probability of each word, (n_ids,); values at `<s>` have no meaning.

        `ids` are the `sentence_ids` of several sentences, one after another.
        """
        orders = self.orders
        probs: Float32Array = orders[0].log10_prob[ids]
        rows = ids  # row of the n-gram of the current order that ends at each index
        for table, longer in pairwise(orders):
            # The context of a word ends one index earlier and never crosses `<s>`
            contexts = np.append(-1, rows[:-1])
            contexts[ids == BEGIN] = -1
            has_context = np.flatnonzero(contexts >= 0)
            # Sorted look-ups are close in memory, and thus faster
            keys = contexts[has_context] * len(self.words) + ids[has_context]
            by_key = np.argsort(keys)
            has_context = has_context[by_key]
            context, ngrams = contexts[has_context], longer.find(keys[by_key])
            has_ngram = ngrams >= 0
            probs[has_context[~has_ngram]] += table.log10_backoff[context[~has_ngram]]
            probs[has_context[has_ngram]] = longer.log10_prob[ngrams[has_ngram]]
            rows = np.full_like(ids, -1)
            rows[has_context] = ngrams
        return probs


def _log10_prob(tables: NgramTables, ids: tuple[int, ...]) -> float:
    last = ids[-1]
    prob = np.float32(tables.orders[0].log10_prob[last])
    for length in range(1, min(tables.order, len(ids))):
        context = tables.row(ids[-1 - length : -1])
        if context < 0:  # a pruned model may still have a longer context
            continue
        ngram = tables.find_one(length + 1, context, last)
        if ngram >= 0:
            prob = np.float32(tables.orders[length].log10_prob[ngram])
        else:
            prob += np.float32(tables.orders[length - 1].log10_backoff[context])
    return float(prob)


def _row(tables: NgramTables, ids: tuple[int, ...]) -> int:
    row = ids[0]
    for order, word in enumerate(ids[1:], start=2):
        row = tables.find_one(order, row, word)
        if row < 0:
            break
    return row
