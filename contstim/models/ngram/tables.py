"""A back-off n-gram model as sorted arrays: what the estimator makes and what an ARPA file holds.

N-grams of order n are rows, sorted by (row of the first n-1 words in the table of order n-1, id of
the last word). So all continuations of a context are one slice, and an n-gram is found by binary
search of one integer key. `estimate` has the bigrams of a short text as an example.
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

_PLACES_AT_ONCE = 2**17
_CACHED_NGRAMS = 2**16
MAX_ORDER = 6
"""The longest n-grams that KenLM's Python package is compiled for."""

UNKNOWN, BEGIN, END = 0, 1, 2
SPECIAL_WORDS = ("<unk>", "<s>", "</s>")


@dataclass(frozen=True, eq=False)
class NgramTable:
    """All n-grams of one order; logarithms of base 10 and float32, as KenLM holds them.

    Attributes:
        keys: (n_ngrams,) ascending: row of the prefix × vocabulary size + id of the last word.
        log10_prob: (n_ngrams,) of the last word given the others.
        log10_backoff: (n_ngrams,) weight of the n-gram as a context; 0 if it is not a context.
    """

    keys: IntArray
    log10_prob: Float32Array
    log10_backoff: Float32Array

    def find(self, keys: IntArray) -> IntArray:
        """Rows with these keys, (n_keys,); -1 where the table has none."""
        if not len(self.keys):
            return np.full_like(keys, -1)
        # the row where the key would stand, if the table has it
        rows = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[rows] == keys, rows, -1)


@dataclass(frozen=True, eq=False)
class NgramTables:
    """A whole model; word ids 0, 1, 2 are `<unk>`, `<s>`, `</s>`.

    Many sentences are looked up together. All their words, each sentence with `<s>` before it,
    stand in one array of places. `rows[n]` holds, for each place, the row in the table of order n
    of the n-gram that ends there, or -1. Such an n-gram is a shorter one, which ends one place
    earlier, followed by the word at the place. A trigram model and `<s> the dog sleeps </s>`:

        place      0      1         2              3                 4
        word       <s>    the       dog            sleeps            </s>
        rows[1]    <s>    the       dog            sleeps            </s>
        rows[2]    -1     <s> the   the dog        dog sleeps        sleeps </s>
        rows[3]    -1     -1        <s> the dog    the dog sleeps    dog sleeps </s>

    The probability of a word comes by Katz's back-off recursion (see `replace`) from the empty
    context up. For each longer context, which is an n-gram that ends one place earlier: where the
    model has the context followed by the word, that n-gram's probability is taken; where it has
    only the context, the context's weight is added to the probability so far.

    Values are added in float32 in KenLM's order, so that each conditional probability equals
    KenLM's bit for bit; sums over words are float64, from left to right. Only where back-off
    weights of a pruned model make a probability larger than 1 does KenLM give the inverse.

    Attributes:
        words: the vocabulary; a word's id is its index.
        orders: tables of order 1, 2, …; the unigram row of a word is its id.
    """

    words: tuple[str, ...]
    orders: tuple[NgramTable, ...]

    @property
    def order(self) -> int:
        """The length of the longest n-grams."""
        return len(self.orders)

    @cached_property
    def word_ids(self) -> dict[str, int]:
        """Ids of words of texts, where `<unk>`, `<s>` and `</s>` are unknown words."""
        return with_spellings({word: id_ for id_, word in enumerate(self.words) if id_ > END})

    def ids(self, words: Iterable[str]) -> IntArray:
        """Word ids, (n_words,); 0 for unknown words."""
        return np.fromiter(map(self.word_ids.get, words, repeat(UNKNOWN)), np.int64)

    def children(self, order: int, row: int) -> slice:
        """Rows of the table of that order whose prefix is one row of the table below."""
        # their keys run from row * size to below (row + 1) * size
        size = len(self.words)
        bounds = np.searchsorted(self.orders[order - 1].keys, [row * size, (row + 1) * size])
        return slice(int(bounds[0]), int(bounds[1]))

    def find_one(self, order: int, prefix: int, word: int) -> int:
        """The row of prefix + word in the table of that order; -1 if it has none."""
        keys, key = self.orders[order - 1].keys, prefix * len(self.words) + word
        row = int(keys.searchsorted(key))
        return row if row < len(keys) and keys[row] == key else -1

    @cached_property
    def row(self) -> Callable[[tuple[int, ...]], int]:
        """The row of an n-gram in the table of its order; -1 if the model does not have it."""
        return lru_cache(_CACHED_NGRAMS)(partial(_row, self))

    @cached_property
    def log10_prob(self) -> Callable[[tuple[int, ...]], float]:
        """Log10 probability of the last word given the others, at most `order` words."""
        return lru_cache(_CACHED_NGRAMS)(partial(_log10_prob, self))

    def bigrams_ending_in(self, word: int) -> IntArray:
        """Rows of the bigram table whose second word this is."""
        rows, starts = self._bigrams_by_last_word
        return rows[starts[word] : starts[word + 1]]

    @cached_property
    def _bigrams_by_last_word(self) -> tuple[IntArray, IntArray]:
        # bigrams are sorted by their first word; here by the last, with the start of each word
        last = self.orders[1].keys % len(self.words)
        counts = np.bincount(last, minlength=len(self.words))
        return np.argsort(last, kind="stable"), np.concatenate([[0], np.cumsum(counts)])

    def word_of(self, order: int, rows: IntArray) -> IntArray:
        """Id of the last word of n-grams, (n_rows,)."""
        return self.orders[order - 1].keys[rows] % len(self.words)

    def prefix_of(self, order: int, rows: IntArray) -> IntArray:
        """Rows, in the table below, of n-grams without their last word, (n_rows,)."""
        return self.orders[order - 1].keys[rows] // len(self.words)

    def log10_probs(self, sentence: Sentence) -> list[float]:
        """Of each word given those before it, and of the end of the sentence."""
        ids, _ = self._places([sentence.words], np.array([len(sentence.words)]))
        probs: list[float] = self._of_places(ids)[1:].tolist()
        return probs

    def totals(
        self, sentences: Sequence[Sentence], starts: Sequence[int] | None = None, *, end: bool
    ) -> FloatArray:
        """Sums of the words' log10 probabilities, (n_sentences,).

        Args:
            sentences: the sentences to score.
            starts: the first word of each sentence that counts, 0-based; None for all words.
            end: whether the end of the sentence counts.
        """
        totals = np.zeros(len(sentences))
        if len(sentences) == 1 and starts is None:  # as searches ask, without array operations
            sentence = (BEGIN, *self.ids(sentences[0].words).tolist(), END)
            for i in range(2, len(sentence) + end):
                totals[0] += self.log10_prob(sentence[max(0, i - self.order) : i])
            return totals
        words = [sentence.words for sentence in sentences]
        n_words = np.fromiter(map(len, words), np.int64, len(words))
        first = np.zeros_like(n_words) if starts is None else np.asarray(starts, np.int64)
        # Sentences of similar length together, so that few columns of the loop below are empty
        by_length = np.argsort(n_words, kind="stable")
        parts = np.cumsum(n_words[by_length] + 2) // _PLACES_AT_ONCE
        for part in np.split(by_length, np.flatnonzero(np.diff(parts)) + 1):
            if not len(part):
                continue
            ids, begin = self._places([words[i] for i in part.tolist()], n_words[part])
            probs = self._of_places(ids)
            counted = n_words[part] + end
            for i in range(int(first[part].min()), int(counted.max())):
                has = (first[part] <= i) & (i < counted)
                totals[part[has]] += probs[begin[has] + i + 1]  # word i is i + 1 places after `<s>`
        return totals

    def holds(self, word: str) -> bool:
        """True if the model has a word; never asked about boundaries and the unknown word."""
        return word in self.word_ids

    def _places(
        self, words: Sequence[tuple[str, ...]], n_words: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Word ids of sentences one after the other, and the place of `<s>` of each sentence."""
        begin = np.cumsum(n_words + 2) - n_words - 2
        ids = np.empty(int(n_words.sum()) + 2 * len(words), np.int64)
        ids[begin], ids[begin + n_words + 1] = BEGIN, END
        is_word = np.ones(len(ids), np.bool_)
        is_word[begin] = is_word[begin + n_words + 1] = False
        ids[is_word] = self.ids(chain.from_iterable(words))
        return ids, begin

    def _of_places(self, ids: IntArray) -> Float32Array:
        """Log10 probability of the word at each place, (n_places,); not to be used at `<s>`."""
        orders = self.orders
        probs: Float32Array = orders[0].log10_prob[ids]
        rows = ids  # of the n-grams of one order that end at each place, in the table of the order
        for table, longer in pairwise(orders):
            # The context of a place ends one place earlier, and none reaches beyond `<s>`
            contexts = np.append(-1, rows[:-1])
            contexts[ids == BEGIN] = -1
            has_context = np.flatnonzero(contexts >= 0)
            # In the order of the keys, which are then looked up in memory that lies close together
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
        if context < 0:  # pruned models may lack it, and still have a longer one
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
