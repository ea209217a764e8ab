"""Minimal pairs: two sentences that differ in one thing, of which people accept one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.base import Continuation
    from contstim.sentence import Sentence


class Method(StrEnum):
    """Method of comparing the two sides of a pair (Warstadt et al. 2020, section 4.2)."""

    FULL_SENTENCE = "full-sentence"
    """The scores of the two sentences."""
    ONE_PREFIX = "one-prefix"
    """Two words after the same prefix."""
    TWO_PREFIX = "two-prefix"
    """The same word after two prefixes."""


@dataclass(frozen=True, slots=True)
class MinimalPair:
    """An acceptable and an unacceptable sentence.

    Attributes:
        paradigm: what all pairs made after the same pattern belong to.
        phenomenon: what the paradigm is an example of.
        pair_id: names the pair within its paradigm.
        good: the acceptable sentence.
        bad: the unacceptable one.
        one_prefix: the critical words of the good and of the bad sentence after the words that both
            begin with; None where the pair has no such place.
        two_prefix: the same critical words after what is before them in the good and in the bad
            sentence; None where the pair has no such place.
    """

    paradigm: str
    phenomenon: str
    pair_id: str
    good: Sentence
    bad: Sentence
    one_prefix: tuple[Continuation, Continuation] | None = None
    two_prefix: tuple[Continuation, Continuation] | None = None

    @property
    def sides(self) -> tuple[Sentence, Sentence]:
        """The good and the bad sentence."""
        return self.good, self.bad

    def continuations(self, method: Method) -> tuple[Continuation, Continuation] | None:
        """Continuations for a prefix method, good and bad; None where it cannot be used."""
        prefixes = {Method.ONE_PREFIX: self.one_prefix, Method.TWO_PREFIX: self.two_prefix}
        return prefixes.get(method)

    def is_degenerate(self, method: Method) -> bool:
        """True if both sides of the comparison are the same, so that a model cannot be right."""
        if method is Method.FULL_SENTENCE:
            return self.good == self.bad
        both = self.continuations(method)
        return both is not None and both[0] == both[1]


def applicable(pairs: Sequence[MinimalPair], method: Method) -> list[MinimalPair]:
    """The pairs to which a method applies."""
    if method is Method.FULL_SENTENCE:
        return list(pairs)
    return [pair for pair in pairs if pair.continuations(method)]


def sample_pairs(pairs: Sequence[MinimalPair], size: int, seed: int) -> list[MinimalPair]:
    """Some pairs of each paradigm, all where it has no more, in the order given.

    Which ones depends on nothing but the seed, the paradigm's name and the number of its pairs. A
    smaller sample is part of a larger one.
    """
    chosen = {}  # by paradigm, places of pairs within it
    for paradigm, n in Counter(pair.paradigm for pair in pairs).items():
        # a checksum of the name, since Python's hash of a text is another in every process
        order = np.random.default_rng([seed, crc32(paradigm.encode())]).permutation(n)
        chosen[paradigm] = set(order[:size].tolist())
    place: Counter[str] = Counter()  # of the next pair of each paradigm
    drawn = []
    for pair in pairs:
        if place[pair.paradigm] in chosen[pair.paradigm]:
            drawn.append(pair)
        place[pair.paradigm] += 1
    return drawn
