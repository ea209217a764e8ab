"""Upper bounds and estimates for every candidate word, before any whole sentence is scored.

log p(sentence) = log p(words before) + log p(candidate | words before) + log p(rest | …), and the
last term is never positive. So the first two are an upper bound. One pass over the words before
gives the second term for words of one token, and for longer words that of their first token, which
bounds it. The other tokens of the longer words with the highest bounds are read as well; words that
begin alike share the passes of their beginnings.

For `The ?`, with log p(The) = -2 and up to 2 further tokens read:

    candidate    tokens         first token    other tokens    bound    estimate
    dog          dog               -3              none         -5        -5
    gardener     garden er         -4              -1           -7        -7
    gardening    garden ing        -4              -2           -8        -8
    xylophone    xy lo phone       -9           not read       -11       -11 - 2 * 1.5

The tokens that were read cost 3 nats for 2 tokens, so each token that was not read is taken to cost
1.5 nats in the estimate, and nothing in the bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contstim.models.base import Replacements

if TYPE_CHECKING:
    from contstim.models.causal.network import CausalNetwork, Prefix
    from contstim.models.word_tokens import WordTokens


def bounds(
    network: CausalNetwork,
    prefix: Prefix,
    candidates: WordTokens,
    read: int,
    window: int | None,
) -> Replacements:
    """Upper bounds and estimates for candidates after a prefix, see the top of this file.

    Args:
        network: the causal network.
        prefix: the context and the words before the position.
        candidates: each word's tokens; the bound of a word without tokens is 0.
        read: how many tokens of long words to read at most.
        window: how many tokens the network reads, the prefix included; None for any number.
    """
    lengths = candidates.lengths  # (n_words,)
    upper = prefix.next_log_probs.take(candidates.firsts)
    upper += prefix.log_prob
    upper[lengths == 0] = 0.0
    room = int(lengths.max(initial=0)) if window is None else window - len(prefix.ids) + 1
    # Of the words of several tokens that fit the window, those with the highest bounds
    longer = np.flatnonzero((lengths > 1) & (lengths <= room))
    if len(longer) > read > 0:  # each reads one token or more, so that no more words can be read
        highest = upper[longer]
        longer = longer[highest >= np.partition(highest, -read)[-read]]
    longer = longer[np.argsort(-upper[longer], kind="stable")]
    chosen = longer[np.cumsum(lengths[longer] - 1) <= read]
    terms = network.continuations(prefix, [candidates.tokens[number] for number in chosen.tolist()])
    rests = terms[:, 1:].sum(axis=1)  # (n_chosen,): all tokens of a word but the first
    finite = np.isfinite(rests)
    counts = lengths[chosen] - 1
    mean = float(rests[finite].sum() / counts[finite].sum()) if finite.any() else 0.0
    estimate = candidates.n_later * mean
    estimate += upper
    upper[chosen] += rests
    estimate[chosen] = upper[chosen]
    return Replacements(np.full(len(candidates), np.nan), estimate, upper, prefix.log_prob)
