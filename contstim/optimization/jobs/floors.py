"""Limit on how rare a sentence may be to a model: no rarer than a share of natural ones."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contstim.sentence import Sentence
    from contstim.vocabulary import Vocabulary

MOST_SENTENCES = 1_000
"""Natural sentences of each number of words whose scores make a floor, at most.

The share of all natural sentences below the floor then has a standard error of 1.4 % at the first
quartile, and a masked model scores them in minutes and not in hours.
"""

Floors = dict[str, dict[int, float]]
"""Of each model, by the number of words: the least log-probability, nats."""


def reference_sentences(
    sentences: Iterable[Sentence], words: Vocabulary | None
) -> tuple[Sentence, ...]:
    """The natural sentences whose scores make floors, a thousand of each number of words.

    They are drawn by their texts alone, so that the order in which they are given does not matter.

    Args:
        sentences: all natural sentences.
        words: those that the model knows where they stand; None for all.
    """

    def random_key(sentence: Sentence) -> str:
        return hashlib.sha256(sentence.text.encode()).hexdigest()

    by_length: defaultdict[int, list[Sentence]] = defaultdict(list)
    for sentence in sorted(dict.fromkeys(sentences), key=random_key):
        some = by_length[len(sentence)]
        if len(some) < MOST_SENTENCES and not (words and words.missing(sentence)):
            some.append(sentence)
    return tuple(s for _, some in sorted(by_length.items()) for s in some)


def floors_of(scores: Mapping[Sentence, float], quantile: float) -> dict[int, float]:
    """The floor for each number of words, nats.

    It is the log-probability of a natural sentence: the least one that at least the share
    `quantile` of the sentences with so many words do not exceed.

    Args:
        scores: log-probabilities of natural sentences, nats.
        quantile: between 0 and 1.
    """
    by_length: defaultdict[int, list[float]] = defaultdict(list)
    for sentence, score in scores.items():
        by_length[len(sentence)].append(score)
    floors = {}
    for n_words, some in sorted(by_length.items()):
        # How many sentences do not exceed it: .28 of 25 are 7, and a little more in floating point.
        rank = max(1, ceil(quantile * len(some) - 1e-9))
        # Not interpolated: between -inf and a number there is nothing.
        floors[n_words] = float(sorted(some)[rank - 1])
    return floors
