"""What is known about every candidate word before any sentence is scored.

log p(sentence) = log p(words before) + log p(candidate | words before) + log p(rest | …), and the
last term is never positive. So the first two are an upper bound. One pass over the words before
gives the second term for words of one token, and for longer words that of their first token, which
bounds it. For the longer words that look likeliest the other tokens are read as well, sharing the
beginnings that they have in common.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contstim.models.base import Replacements

if TYPE_CHECKING:
    from contstim.arrays import FloatArray, IntArray
    from contstim.models.causal.network import CausalNetwork, Prefix
    from contstim.models.word_tokens import WordTokens


def bounds(
    network: CausalNetwork,
    prefix: Prefix,
    candidates: WordTokens,
    read: int,
    window: int | None,
) -> Replacements:
    """Upper bounds and estimates for candidates after a prefix.

    An estimate is the bound; for a long word whose other tokens were not read, each of them is
    taken to cost what those that were read cost on average.

    Args:
        network: what scores.
        prefix: the context and the words before the position.
        candidates: each word's tokens; for a word without any the bound is zero.
        read: how many tokens of long words to read at most.
        window: how many tokens the network reads, the prefix included; None: any number.
    """
    lengths = candidates.lengths
    upper = np.zeros(len(candidates))
    upper[lengths > 0] = prefix.log_prob + prefix.next_log_probs[candidates.firsts]
    room = int(lengths.max(initial=0)) if window is None else window - len(prefix.ids) + 1
    chosen = _likeliest(upper, lengths, read, room)
    terms = network.continuations(prefix, [candidates.tokens[number] for number in chosen])
    rests = terms[:, 1:].sum(axis=1)
    estimate = upper + np.maximum(lengths - 1, 0) * _mean(rests, lengths[chosen] - 1)
    upper[chosen] += rests
    estimate[chosen] = upper[chosen]
    return Replacements(np.full(len(candidates), np.nan), estimate, upper, prefix.log_prob)


def _likeliest(upper: FloatArray, lengths: IntArray, read: int, room: int) -> IntArray:
    """The words of several tokens with the highest bounds, as many as may be read and fit in."""
    longer = np.flatnonzero((lengths > 1) & (lengths <= room))
    longer = longer[np.argsort(-upper[longer], kind="stable")]
    chosen: IntArray = longer[np.cumsum(lengths[longer] - 1) <= read]
    return chosen


def _mean(rests: FloatArray, counts: IntArray) -> float:
    finite = np.isfinite(rests)
    return float(rests[finite].sum() / counts[finite].sum()) if finite.any() else 0.0
