"""The chain rule over words in random order, averaged over all orders exactly.

Golan et al. (2023) start from a sentence of masks, uncover its words in random order, add up their
log-probabilities, and average 100 such orders. The same sets of hidden words come up in many
orders, and one pass with the set M hidden tells log p(w | words outside M) for every word w of M.
In a random order of n words, w follows exactly the words outside M with probability
(n-|M|)! (|M|-1)! / n!, so that the mean over all n! orders is

    sum over M, w in M of  (n-|M|)! (|M|-1)! / n!  log p(w | words outside M).

A word of k tokens is a chain of its own: within each M the same formula averages the orders of its
tokens, where all of them hidden is the pass that M needs anyway.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

import numpy as np

from contstim.models.masked.plan import Plan, all_hidden
from contstim.models.words import SPECIAL

if TYPE_CHECKING:
    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.models.masked.plan import Pattern


def tokens_per_word(pattern: Pattern) -> IntArray:
    """Number of tokens of each word, (n_words,)."""
    words = np.array(pattern)
    return np.bincount(words[words >= 0])


def n_passes(pattern: Pattern) -> int:
    """What the exact mean costs: 2^n - 1 passes, and 2^(n-1) (2^k - 2) for a word of k tokens."""
    sizes: list[int] = tokens_per_word(pattern).tolist()
    n = len(sizes)
    return (1 << n) - 1 + sum((1 << n - 1) * ((1 << k) - 2) for k in sizes)


def exact_plan(pattern: Pattern) -> Plan:
    """The exact mean over all orders of the words, and of the tokens within each word."""
    word_of = np.array(pattern)
    tokens = np.flatnonzero(word_of > SPECIAL)
    tokens = tokens[word_of[tokens] >= 0]  # (n,): tokens of words
    word = word_of[tokens]
    sizes = tokens_per_word(pattern)
    sets = subsets(len(sizes))  # (n_sets, n_words)
    weights = order_weights(sets)  # (n_sets,)

    whole = sets[:, word]  # (n_sets, n)
    row, token = np.nonzero(whole)
    rows, questions = [whole], [(row, token, weights[row] / sizes[word[token]])]
    n_rows = len(whole)
    for w in np.flatnonzero(sizes > 1):
        members = np.flatnonzero(word == w)
        around = np.flatnonzero(sets[:, w])
        parts = subsets(len(members))[:-1]  # (n_parts, k): all but the whole word
        inner = np.repeat(whole[around], len(parts), axis=0)  # (n_around * n_parts, n)
        inner[:, members] = np.tile(parts, (len(around), 1))
        row, token = np.nonzero(inner[:, members])
        weight = np.repeat(weights[around], len(parts)) * np.tile(order_weights(parts), len(around))
        rows.append(inner)
        questions.append((n_rows + row, members[token], weight[row]))
        n_rows += len(inner)
    row, token, weight = (np.concatenate(parts) for parts in zip(*questions, strict=True))
    return Plan(all_hidden(len(pattern), tokens, np.concatenate(rows)), row, tokens[token], weight)


def subsets(n: int) -> BoolArray:
    """The non-empty subsets of n things, (2^n - 1, n), all of them last."""
    return (np.arange(1, 2**n)[:, None] >> np.arange(n) & 1).astype(np.bool_)


def order_weights(hidden: BoolArray) -> FloatArray:
    """(n-s)! (s-1)! / n! for sets of s hidden among n things, (n_sets,)."""
    n = hidden.shape[1]
    table = np.array([0.0] + [1 / (s * comb(n, s)) for s in range(1, n + 1)])
    weights: FloatArray = table[hidden.sum(axis=1)]
    return weights
