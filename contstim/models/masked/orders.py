"""The chain rule over words in random order, averaged over all orders exactly.

Golan et al. (2023) start from a sentence of masks, uncover its words in random order, add up their
log-probabilities, and average 100 such orders. The same sets of hidden words come up in many
orders, and one pass with the set M hidden tells log p(w | words outside M) for every word w of M.
In a random order of n words, w follows exactly the words outside M with probability
(n-|M|)! (|M|-1)! / n!, so that the mean over all n! orders is

    sum over M, w in M of  (n-|M|)! (|M|-1)! / n!  log p(w | words outside M).

A word of k tokens is a chain of its own: within each M, the same formula averages the orders of its
tokens. The pass that hides all tokens of the word is the one that M needs anyway.

With n = 3 words the weights are 2! 0! / 3! = 1/3 for sets of one word, 1! 1! / 3! = 1/6 for two and
0! 2! / 3! = 1/3 for all three; `plan` lists the passes. A word is in one set of size one, two of
size two, and one of size three: its weights add up to 1/3 + 2/6 + 1/3 = 1.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

import numpy as np

from contstim.models.masked.plan import Plan, all_hidden

if TYPE_CHECKING:
    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.models.masked.plan import Pattern


def tokens_per_word(pattern: Pattern) -> IntArray:
    """Number of tokens of each word, (n_words,)."""
    words = np.array(pattern)
    return np.bincount(words[words >= 0])


def n_passes(pattern: Pattern) -> int:
    """Passes of the exact mean: 2^n - 1, and 2^(n-1) (2^k - 2) more for each word of k tokens.

    A word is in 2^(n-1) of the sets; 2^k - 2 sets of its tokens are neither empty nor whole.
    """
    sizes: list[int] = tokens_per_word(pattern).tolist()
    n = len(sizes)
    return (1 << n) - 1 + sum((1 << n - 1) * ((1 << k) - 2) for k in sizes)


def exact_plan(pattern: Pattern) -> Plan:
    """The exact mean over all orders of the words, and of the tokens within each word."""
    positions = np.flatnonzero(np.array(pattern) >= 0)  # (n,): tokens of words, as in the text
    word = np.array(pattern)[positions]  # (n,): the word of each
    sizes = tokens_per_word(pattern)  # (n_words,)
    sets = subsets(len(sizes))  # (n_sets, n_words): the sets M
    weights = order_weights(sets)  # (n_sets,)

    # All tokens of the words of M hidden. Each of a word's k tokens is the first to be uncovered
    # in 1/k of the orders, given the words outside M and no token of its own word
    whole = sets[:, word]  # (n_sets, n)
    row, token = np.nonzero(whole)  # tokens are numbered 0 to n - 1 until the last line
    rows, questions = [whole], [(row, token, weights[row] / sizes[word[token]])]
    n_rows = len(whole)
    for w in np.flatnonzero(sizes > 1):
        # Some tokens of word w hidden, within every M that holds w: n_holding * n_parts passes,
        # pass i * n_parts + j hides part j of the word within the i-th such M
        members = np.flatnonzero(word == w)  # (k,)
        holding = np.flatnonzero(sets[:, w])  # (n_holding,)
        parts = subsets(len(members))[:-1]  # (n_parts, k): all but the whole word
        hidden = np.repeat(whole[holding], len(parts), axis=0)
        hidden[:, members] = np.tile(parts, (len(holding), 1))
        # Their questions are about word w alone, whose hidden tokens are asked for
        row, token = np.nonzero(hidden[:, members])
        within = np.tile(order_weights(parts), len(holding))
        weight = np.repeat(weights[holding], len(parts)) * within
        rows.append(hidden)
        questions.append((n_rows + row, members[token], weight[row]))
        n_rows += len(hidden)
    row, token, weight = (np.concatenate(column) for column in zip(*questions, strict=True))
    hidden = all_hidden(len(pattern), positions, np.concatenate(rows))
    return Plan(hidden, row, positions[token], weight)


def subsets(n: int) -> BoolArray:
    """The non-empty subsets of n things, (2^n - 1, n), the whole set last.

    Row i - 1 is the number i in binary, the lowest digit first: of 3 things 100, 010, 110, 001, …
    """
    return (np.arange(1, 2**n)[:, None] >> np.arange(n) & 1).astype(np.bool_)


def order_weights(hidden: BoolArray) -> FloatArray:
    """(n-s)! (s-1)! / n! for sets of s hidden among n things, (n_sets,)."""
    n = hidden.shape[1]
    # (n-s)! (s-1)! / n! = 1 / (s * comb(n, s)), by the size s
    table = np.array([0.0] + [1 / (s * comb(n, s)) for s in range(1, n + 1)])
    weights: FloatArray = table[hidden.sum(axis=1)]
    return weights
