"""Training of n-gram models: vectorised, interpolated modified Kneser-Ney estimation.

The model is that of Chen & Goodman (1998, *An empirical study of smoothing techniques for language
modeling*, TR-10-98), computed as in KenLM's `lmplz` (Heafield, Pouzyrevsky, Clark & Koehn 2013,
*Scalable modified Kneser-Ney language model estimation*, section 3). Below, C. & G. and H. are
these papers. An n-gram uw has the context u and the last word w. u' is u without its first word:

    adjusted count     a(uw) = count of uw in the text if uw has the highest order or begins
                               with <s>; otherwise, number of distinct words before uw (H. 3.2)
    discount           D(0) = 0, D(1) = D1, D(2) = D2, and D(a) = D3 for all larger a
                       Dk   = k - (k + 1) y t_(k+1) / t_k        (C. & G. eq. 26)
                       y    = t_1 / (t_1 + 2 t_2)
                       t_k  = number of n-grams of this order with a = k
    probability        p(w | u) = (a(uw) - D(a(uw))) / A(u) + b(u) p(w | u')
                       with A(u) = sum over x of a(ux)           (C. & G. section 3; H. 3.4)
    back-off weight    b(u) = sum over x of D(a(ux)) / A(u)      (H. 3.3)

Unigrams are interpolated with the uniform distribution over the vocabulary without <s>. So <unk>,
whose count is 0, gets a positive probability (H. 3.4).

This table shows the bigrams of a text with one sentence, `a b a`. The ids of the five words are
<unk> 0, <s> 1, </s> 2, a 3, b 4:

    row   bigram     key = row of the first word * 5 + id     prefix    suffix    count
    0     <s> a      1 * 5 + 3 =  8                           1         3         1
    1     a </s>     3 * 5 + 2 = 17                           3         2         1
    2     a b        3 * 5 + 4 = 19                           3         4         1
    3     b a        4 * 5 + 3 = 23                           4         3         1

`prefix` is the row of u, and `suffix` is the row of u'w, both in the table of unigrams. The
adjusted count of the unigram `a` is 2, since `a` is the suffix of two bigrams, <s> a and b a.
"""

from __future__ import annotations

import hashlib
import warnings
from array import array
from collections import defaultdict
from dataclasses import dataclass
from itertools import count, pairwise
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import CorpusError, InputError
from contstim.files.records import write_record
from contstim.models.ngram.arpa import write_arpa
from contstim.models.ngram.tables import (
    BEGIN,
    END,
    MAX_ORDER,
    SPECIAL_WORDS,
    NgramTable,
    NgramTables,
)
from contstim.models.training_text import sentence_hash, training_text_path, write_training_text
from contstim.models.vocabularies import WordList, counts_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from contstim.files.arrays import BoolArray, FloatArray, IntArray
    from contstim.words.sentence import Sentence


FALLBACK_DISCOUNTS = (0.5, 1.0, 1.5)


class DiscountWarning(UserWarning):
    """Warning that the text is too small to estimate discounts. Fixed discounts are used."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """A trained n-gram model, and the word counts of its training text.

    Attributes:
        discounts: D1, D2, D3 of each order, see the top of this file.
        words: words of the text with their counts, in the order of their ids in `tables`.
    """

    tables: NgramTables
    discounts: tuple[tuple[float, float, float], ...]
    words: WordList


@dataclass(frozen=True, eq=False)
class _Counts:
    """Distinct n-grams of one order, sorted as in `NgramTable`; arrays are (n_ngrams,)."""

    keys: IntArray
    suffixes: IntArray  # row of each n-gram's last n-1 words, in the table of order n-1
    raw: IntArray  # occurrences in the text
    begins: BoolArray  # whether the n-gram starts with <s>


def estimate(sentences: Iterable[Sentence], order: int) -> Estimate:
    """Train an n-gram model on the words of sentences; end marks such as full stops are ignored.

    Raises:
        InputError: if the order is not 1 to 6.
        CorpusError: if there is no sentence; if no sentence is long enough for the order; or if a
            word is `<unk>`, `<s>` or `</s>`, in small or capital letters.

    Warns:
        DiscountWarning: if the fixed discounts 0.5, 1 and 1.5 are used for an order, because it
            has too few n-grams with the adjusted counts 1, 2, 3 and 4.
    """
    if not 1 <= order <= MAX_ORDER:
        raise InputError(f"order must be from 1 to {MAX_ORDER}, got {order}.")
    words, tokens = _encode(sentences)
    counts = _count(tokens, len(words), order)
    adjusted = [
        np.where(c.begins, c.raw, np.bincount(longer.suffixes, minlength=len(c.keys)))
        for c, longer in pairwise(counts)
    ]
    adjusted.append(counts[-1].raw)
    adjusted[0] = np.where(counts[0].begins, 0, adjusted[0])  # <s> is never predicted
    discounts = tuple(_discounts(a, n) for n, a in enumerate(adjusted, start=1))
    # Occurrences of each word: at the start of a sentence, and at other positions
    starts = np.bincount(tokens[1:][tokens[:-1] == BEGIN], minlength=len(words))
    columns = (starts, np.bincount(tokens, minlength=len(words)) - starts)
    initial, inner = (tuple(column.tolist()[END + 1 :]) for column in columns)
    tables = NgramTables(words, _interpolate(counts, adjusted, discounts))
    return Estimate(tables, discounts, WordList(words[END + 1 :], initial, inner))


def _encode(sentences: Iterable[Sentence]) -> tuple[tuple[str, ...], IntArray]:
    """Return the words in order of first occurrence, and the text as ids with <s> and </s>."""
    ids: defaultdict[str, int] = defaultdict(count(len(SPECIAL_WORDS)).__next__)
    tokens = array("i")
    for sentence in sentences:
        tokens.extend([BEGIN, *(ids[word] for word in sentence.words), END])
    if not tokens:
        raise CorpusError("The training text has no sentences.")
    if any(word.lower() in SPECIAL_WORDS for word in ids):
        raise CorpusError(
            f"The text contains one of the reserved words {', '.join(SPECIAL_WORDS)}, perhaps in "
            "capitals. Replace it by another word, or remove the sentence."
        )
    return (*SPECIAL_WORDS, *ids), np.array(tokens, np.int64)


def _count(tokens: IntArray, n_words: int, order: int) -> list[_Counts]:
    """Count the n-grams of orders 1 to `order` in a text, (n_tokens,)."""
    unigrams = np.arange(n_words)
    raw = np.bincount(tokens, minlength=n_words)
    counts = [_Counts(unigrams, np.zeros(n_words, np.int64), raw, unigrams == BEGIN)]
    inside = tokens != BEGIN
    # For each token: whether an n-gram of the token's sentence ends there, and this n-gram's row
    has_ngram = np.ones(len(tokens), bool)
    rows = tokens
    for n in range(2, order + 1):
        # An n-gram ends one token after an (n-1)-gram of the same sentence
        has_ngram = np.concatenate([[False], has_ngram[:-1] & inside[1:]])
        ends = np.flatnonzero(has_ngram)
        if not len(ends):
            raise CorpusError(
                f"No sentence is long enough for order {n}, which needs at least {n - 2} "
                "words. Use a lower order."
            )
        keys, first, inverse, raw = np.unique_all(rows[ends - 1] * n_words + tokens[ends])
        # The suffix of an n-gram is the (n-1)-gram that ends at the same token
        counts.append(_Counts(keys, rows[ends[first]], raw, counts[-1].begins[keys // n_words]))
        rows = np.full(len(tokens), -1)
        rows[ends] = inverse
    return counts


def _discounts(adjusted: IntArray, order: int) -> tuple[float, float, float]:
    """Compute D1, D2, D3 from adjusted counts, (n_ngrams,) (Chen & Goodman 1998, eq. 26)."""
    t1, t2, t3, t4 = (int(np.count_nonzero(adjusted == k)) for k in (1, 2, 3, 4))
    if t1 and t2 and t3:
        y = t1 / (t1 + 2 * t2)
        discounts = (1 - 2 * y * t2 / t1, 2 - 3 * y * t3 / t2, 3 - 4 * y * t4 / t3)
        if all(0 < d <= k for k, d in enumerate(discounts, start=1)):
            return discounts
    warnings.warn(
        f"The text is too small to estimate {order}-gram discounts. The numbers of {order}-grams "
        f"with the adjusted counts 1, 2, 3 and 4 are {t1:,}, {t2:,}, {t3:,} and {t4:,}. The fixed "
        f"discounts {FALLBACK_DISCOUNTS} are used instead.",
        DiscountWarning,
        stacklevel=3,
    )
    return FALLBACK_DISCOUNTS


def _interpolate(
    counts: list[_Counts],
    adjusted: list[IntArray],
    discounts: tuple[tuple[float, float, float], ...],
) -> tuple[NgramTable, ...]:
    """Compute probabilities, from the lowest order to the highest, and back-off weights."""
    n_words = len(counts[0].keys)
    lower = np.full(1, 1 / (n_words - 1))  # p(w | u'): uniform over all words but <s>
    tables: list[tuple[IntArray, FloatArray]] = []
    weights: list[FloatArray] = []
    for table, a, d in zip(counts, adjusted, discounts, strict=True):
        n_contexts = len(lower)
        prefixes = table.keys // n_words  # rows of u in the table of order n-1
        discount = np.array([0.0, *d])[np.minimum(a, 3)]  # (n_ngrams,): D(a(uw))
        total = np.bincount(prefixes, weights=a, minlength=n_contexts)  # A(u)
        with np.errstate(invalid="ignore"):  # 0 / 0 if no n-gram of the text has context u
            weight = np.bincount(prefixes, weights=discount, minlength=n_contexts) / total
        lower = (a - discount) / total[prefixes] + (weight[prefixes] * lower[table.suffixes])
        weights.append(np.where(total > 0, weight, 1.0))
        tables.append((table.keys, lower))
    # weights[n] has the weights of contexts of n words. An ARPA file has no weight for the empty
    # context
    backoffs = [*weights[1:], np.ones(len(lower))]
    results = [
        NgramTable(keys, np.log10(p).astype(np.float32), np.log10(b).astype(np.float32))
        for (keys, p), b in zip(tables, backoffs, strict=True)
    ]
    results[0].log10_prob[BEGIN] = -99  # the usual ARPA value for <s>, which is never predicted
    return tuple(results)


def train_ngram(
    sentences: Iterable[Sentence], order: int, out: Path | str, *, text: Path | None = None
) -> Estimate:
    """Train an n-gram model and write its files.

    The files are the model, the word counts, hashes of the sentences, and a record. The record is a
    file with the settings and with checksums of the input and output files.

    Args:
        sentences: sentences of the text; may be a stream.
        order: length of the longest n-grams.
        out: path of the ARPA file.
        text: file from which the sentences were read; the record contains its checksum.

    Raises:
        InputError: if the order is not 1 to 6, or the file cannot be written.
        CorpusError: see `estimate`.
    """
    digest, hashes = hashlib.sha256(), array("Q")

    # Hash the sentences while `estimate` reads them, since a stream can be read only once
    def hash_and_yield() -> Iterator[Sentence]:
        for sentence in sentences:
            digest.update(f"{sentence.text}\n".encode())
            hashes.append(sentence_hash(sentence))
            yield sentence

    trained = estimate(hash_and_yield(), order)
    write_arpa(trained.tables, out)
    trained.words.write(counts_path(out))
    write_training_text(out, np.frombuffer(hashes, np.uint64))
    write_record(
        out,
        [text],
        [counts_path(out), training_text_path(out)],
        order=order,
        smoothing="interpolated modified Kneser-Ney",
        discounts=trained.discounts,
        ngrams=[len(table.keys) for table in trained.tables.orders],
        text_sha256=digest.hexdigest(),
    )
    return trained
