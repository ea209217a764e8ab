"""Interpolated modified Kneser-Ney estimation, vectorised.

Chen & Goodman (1998), section 3, as Heafield et al. (2013) compute it in KenLM's `lmplz`: raw
counts at the highest order and for n-grams that begin a sentence, elsewhere the number of distinct
words to the left; three discounts per order; interpolation down to the uniform distribution over
the vocabulary, which gives `<unk>` its share.
"""

from __future__ import annotations

import warnings
from array import array
from collections import defaultdict
from dataclasses import dataclass
from itertools import count, islice, pairwise
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import CorpusError, InputError
from contstim.models.ngram.tables import (
    BEGIN,
    END,
    SPECIAL_WORDS,
    UNKNOWN,
    NgramTable,
    NgramTables,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.sentence import Sentence

MAX_ORDER = 6  # what KenLM's Python package is compiled for
FALLBACK_DISCOUNTS = (0.5, 1.0, 1.5)
_LOG10_NEVER = -99.0  # ARPA's customary value for <s>, which is never predicted


class DiscountWarning(UserWarning):
    """The text was too small to estimate discounts from; fixed ones were used."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """A model and what was seen in its training text.

    Attributes:
        tables: the n-gram model.
        discounts: per order, what is subtracted from counts of 1, 2, and 3 or more.
        initial_counts: (n_words,) how often each word starts a sentence.
        inner_counts: (n_words,) how often each word stands elsewhere.
    """

    tables: NgramTables
    discounts: tuple[tuple[float, float, float], ...]
    initial_counts: IntArray
    inner_counts: IntArray


@dataclass(frozen=True, eq=False)
class _Counts:
    """The distinct n-grams of one order, sorted as in `NgramTable`; arrays are (n_ngrams,)."""

    keys: IntArray
    prefixes: IntArray
    suffixes: IntArray
    raw: IntArray
    begins: BoolArray  # whether the n-gram starts with <s>


def estimate(sentences: Iterable[Sentence], order: int) -> Estimate:
    """Train an n-gram model on the words of sentences; end marks are no words.

    Raises:
        InputError: the order is not 1 to 6.
        CorpusError: no sentence is long enough for the order, or a word is `<unk>`, `<s>`, `</s>`.

    Warns:
        DiscountWarning: an order has too few n-grams that occur once to four times for the
            discount formula; 0.5, 1 and 1.5 are used there.
    """
    if not 1 <= order <= MAX_ORDER:
        raise InputError(f"The order must be 1 to {MAX_ORDER}, not {order}.")
    words, tokens = _encode(sentences)
    counts = _count(tokens, len(words), order)
    adjusted = [_continuations(lower, upper) for lower, upper in pairwise(counts)]
    adjusted.append(counts[-1].raw)
    adjusted[0] = np.where(counts[0].begins, 0, adjusted[0])
    discounts = tuple(_discounts(a, n) for n, a in enumerate(adjusted, start=1))
    starts = np.bincount(tokens[1:][tokens[:-1] == BEGIN], minlength=len(words))
    return Estimate(
        NgramTables(words, _interpolate(counts, adjusted, discounts)),
        discounts,
        initial_counts=starts,
        inner_counts=np.bincount(tokens, minlength=len(words)) - starts,
    )


def _encode(sentences: Iterable[Sentence]) -> tuple[tuple[str, ...], IntArray]:
    """Word ids in order of first occurrence, and the text as ids of <s>, words, </s>."""
    ids: defaultdict[str, int] = defaultdict(count().__next__)
    for word in SPECIAL_WORDS:
        ids[word]
    tokens = array("i")
    for sentence in sentences:
        tokens.append(BEGIN)
        tokens.extend([ids[word] for word in sentence.words])
        tokens.append(END)
    text = np.array(tokens, dtype=np.int64)
    if not len(text):
        raise CorpusError("There is no sentence to train on.")
    specials = np.flatnonzero(text <= END)
    plain = len(specials) == 2 * np.count_nonzero(text == BEGIN) and not (text == UNKNOWN).any()
    if not plain or any(word.lower() in SPECIAL_WORDS for word in islice(ids, END + 1, None)):
        raise CorpusError(
            f"The text contains one of {', '.join(SPECIAL_WORDS)} as a word, perhaps in capitals; "
            f"these are reserved for what no word stands for. Replace it by a word, or leave the "
            f"sentence out."
        )
    return tuple(ids), text


def _count(tokens: IntArray, n_words: int, order: int) -> list[_Counts]:
    unigrams = np.arange(n_words)
    counts = [
        _Counts(
            keys=unigrams,
            prefixes=np.zeros(n_words, np.int64),
            suffixes=np.zeros(n_words, np.int64),
            raw=np.bincount(tokens, minlength=n_words),
            begins=unigrams == BEGIN,
        )
    ]
    inside = tokens != BEGIN
    whole = np.ones(len(tokens), bool)  # whether an n-gram within one sentence ends here
    rows = tokens  # and its row in the table of its order
    for n in range(2, order + 1):
        whole = np.concatenate([[False], whole[:-1] & inside[1:]])
        ends = np.flatnonzero(whole)
        if not len(ends):
            raise CorpusError(
                f"No sentence is long enough for order {n}: that needs {n - 2} words or more "
                f"between a sentence's start and end. Use a lower order."
            )
        keys, first, inverse, raw = np.unique(
            rows[ends - 1] * n_words + tokens[ends],
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        prefixes = keys // n_words
        suffixes = rows[ends[first]]
        counts.append(_Counts(keys, prefixes, suffixes, raw, counts[-1].begins[prefixes]))
        rows = np.full(len(tokens), -1)
        rows[ends] = inverse
    return counts


def _continuations(lower: _Counts, upper: _Counts) -> IntArray:
    """Adjusted counts: distinct words to the left, but raw counts where a sentence begins."""
    left = np.bincount(upper.suffixes, minlength=len(lower.keys))
    return np.where(lower.begins, lower.raw, left)


def _discounts(adjusted: IntArray, order: int) -> tuple[float, float, float]:
    """Chen & Goodman's closed-form estimate (1998, Eq. 26) from counts of counts."""
    t1, t2, t3, t4 = (int(np.count_nonzero(adjusted == k)) for k in (1, 2, 3, 4))
    if t1 and t2 and t3:
        y = t1 / (t1 + 2 * t2)
        found = (1 - 2 * y * t2 / t1, 2 - 3 * y * t3 / t2, 3 - 4 * y * t4 / t3)
        if all(0 < d <= k for k, d in enumerate(found, start=1)):
            return found
    warnings.warn(
        f"The text is too small to estimate {order}-gram discounts: {t1:,}, {t2:,}, {t3:,} and "
        f"{t4:,} {order}-grams were counted once, twice, three and four times. The fixed discounts "
        f"{FALLBACK_DISCOUNTS} are used instead; more text gives better ones.",
        DiscountWarning,
        stacklevel=3,
    )
    return FALLBACK_DISCOUNTS


def _interpolate(
    counts: list[_Counts],
    adjusted: list[IntArray],
    discounts: tuple[tuple[float, float, float], ...],
) -> tuple[NgramTable, ...]:
    """Probabilities from the lowest order up, and each context's weight for the order below it."""
    n_words = len(counts[0].keys)
    lower = np.full(1, 1 / (n_words - 1))  # uniform over all words but <s>
    tables: list[tuple[IntArray, FloatArray]] = []
    weights: list[FloatArray] = []
    for table, a, d in zip(counts, adjusted, discounts, strict=True):
        n_contexts = len(lower)
        taken = np.array([0.0, *d])[np.minimum(a, 3)]
        total = np.bincount(table.prefixes, weights=a, minlength=n_contexts)
        with np.errstate(invalid="ignore"):  # 0 / 0 where an n-gram is no context
            weight = np.bincount(table.prefixes, weights=taken, minlength=n_contexts) / total
        lower = (a - taken) / total[table.prefixes] + weight[table.prefixes] * lower[table.suffixes]
        weights.append(np.where(total > 0, weight, 1.0))
        tables.append((table.keys, lower))
    backoffs = [*weights[1:], np.ones(len(lower))]
    made = [
        NgramTable(keys, np.log10(p).astype(np.float32), np.log10(b).astype(np.float32))
        for (keys, p), b in zip(tables, backoffs, strict=True)
    ]
    made[0].log10_prob[BEGIN] = _LOG10_NEVER
    return tuple(made)
