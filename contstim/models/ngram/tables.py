"""A back-off n-gram model as sorted arrays: what the estimator makes and what an ARPA file holds.

N-grams of order n are rows, sorted by (row of the first n-1 words in the table of order n-1, id of
the last word). So all continuations of a context are one slice, and an n-gram is found by binary
search of one integer key. `estimate` has the bigrams of a short text as an example.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contstim.arrays import Float32Array, IntArray

MAX_ORDER = 6
"""The longest n-grams that KenLM's Python package is compiled for."""

UNKNOWN, BEGIN, END = 0, 1, 2
SPECIAL_WORDS = ("<unk>", "<s>", "</s>")


class WordIds(dict[str, int]):
    """Word ids; a word that the model does not have is the unknown word."""

    def __missing__(self, word: str) -> int:
        return UNKNOWN


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

    def find_one(self, key: int) -> int:
        """The row with this key; -1 if the table has none."""
        row = int(self.keys.searchsorted(key))
        return row if row < len(self.keys) and self.keys[row] == key else -1

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
    def word_ids(self) -> WordIds:
        """Ids of words of texts, where `<unk>`, `<s>` and `</s>` are unknown words."""
        return WordIds({word: id_ for id_, word in enumerate(self.words) if id_ > END})

    def ids(self, words: Iterable[str]) -> IntArray:
        """Word ids, (n_words,); 0 for unknown words."""
        return np.fromiter(map(self.word_ids.__getitem__, words), np.int64)

    def children(self, order: int, row: int) -> slice:
        """Rows of the table of that order whose prefix is one row of the table below."""
        # their keys run from row * size to below (row + 1) * size
        size = len(self.words)
        bounds = np.searchsorted(self.orders[order - 1].keys, [row * size, (row + 1) * size])
        return slice(int(bounds[0]), int(bounds[1]))

    def find(self, order: int, prefixes: IntArray, word: int) -> IntArray:
        """Rows of prefix + word in the table of that order, (n_prefixes,); -1 where it has none."""
        return self.orders[order - 1].find(prefixes * len(self.words) + word)

    def find_one(self, order: int, prefix: int, word: int) -> int:
        """The row of prefix + word in the table of that order; -1 if it has none."""
        return self.orders[order - 1].find_one(prefix * len(self.words) + word)

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
