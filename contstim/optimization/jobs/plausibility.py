"""Limit on how rare a sentence may be to a model: no rarer than a share of natural ones."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.tables import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Self

    from contstim.sentence import Sentence
    from contstim.vocabulary import Vocabulary

MOST_SENTENCES = 1_000
"""Natural sentences of each number of words whose scores make a floor, at most.

The share of all natural sentences below the floor then has a standard error of 1.4 % at the first
quartile, and a masked model scores them in minutes and not in hours.
"""

Floors = dict[str, dict[int, float]]
"""Of each model, by the number of words: the least log-probability, nats."""


@dataclass(frozen=True)
class Plausibility:
    """A floor that results must reach, as a quantile of natural sentences.

    Attributes:
        quantile: the share of natural sentences that may be rarer; 0 for no floor.
        model: the specification of the model that judges; empty for the two models of each triplet,
            each of the sentence that it is to accept.

    Raises:
        InputError: the quantile is not at least 0 and below 1.
    """

    quantile: float = 0.0
    model: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.quantile < 1:
            raise InputError(
                f"The floor of plausibility is a quantile from 0 to below 1, not {self.quantile:g}."
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `QUANTILE`, `MODEL:QUANTILE` or `none`, as `str` writes it.

        Raises:
            InputError: there is no quantile behind the last colon.
        """
        if text == "none":
            return cls()
        # Specifications have colons of their own, as kenlm:trigram.arpa, so the last one counts.
        model, _, quantile = text.rpartition(":")
        try:
            value = number(quantile)
        except ValueError:
            raise InputError(
                f"--plausible {text} has no quantile: write none, a number such as 0.25, or a "
                f"model, a colon and a number, such as hf:gpt2:0.25."
            ) from None
        return cls(value, model)

    def __str__(self) -> str:
        if not self.quantile:
            return "none"
        return f"{self.model}:{self.quantile!r}" if self.model else repr(self.quantile)

    def judges(self, models: Iterable[str]) -> tuple[str, ...]:
        """The models whose scores of natural sentences make floors, of a study of some models."""
        if not self.quantile:
            return ()
        return (self.model,) if self.model else tuple(models)


NO_FLOOR = Plausibility()


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
