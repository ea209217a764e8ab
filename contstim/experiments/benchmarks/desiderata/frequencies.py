"""How often words occur, smoothed."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.corpus import read_sentences
from contstim.errors import InputError
from contstim.tables import TABLE_KINDS, parsed, read_table, text, whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class WordFrequencies:
    """Counts of words.

    Attributes:
        counts: by word, case kept; 0 or more.
    """

    counts: Mapping[str, int]

    def log_frequency(self, word: str) -> float:
        """log((count + 1) / (all counts + number of words)), natural, after Laplace."""
        return math.log((self.counts.get(word, 0) + 1) / self._smoothed_total)

    @cached_property
    def _smoothed_total(self) -> int:
        return sum(self.counts.values()) + len(self.counts)

    def sample(self, n: int, *, seed: int) -> list[str]:
        """Distinct words, all equally likely, in alphabetical order.

        Only words of small letters are drawn: names and first words look different inside a
        sentence. All of them where there are no more than n.

        Raises:
            InputError: there is no such word.
        """
        words = sorted(word for word in self.counts if word.isalpha() and word.islower())
        if not words:
            raise InputError("The frequencies have no word of small letters only.")
        return sorted(random.Random(seed).sample(words, min(n, len(words))))


def read_frequencies(path: Path | str) -> WordFrequencies:
    """Frequencies from a text, one sentence a line, or from a table with columns word and count.

    Raises:
        InputError: the file cannot be read, lacks a column, names a word twice, or a count is no
            whole number from 0.
    """
    if Path(path).suffix.lower() not in TABLE_KINDS:
        return WordFrequencies(Counter(w for s in read_sentences(path) for w in s.words))
    table = read_table(path)
    missing = [name for name in ("word", "count") if name not in table]
    if missing:
        raise InputError(
            f"{path} lacks {', '.join(missing)}; a frequency list has the columns word and count."
        )
    words = parsed(path, "word", table["word"], text, "word")
    numbers = parsed(path, "count", table["count"], _count, "count; expected a whole number from 0")
    counts: dict[str, int] = {}
    for word, count in zip(words, numbers, strict=True):
        if word in counts:
            raise InputError(f"{path} counts {word!r} twice.")
        counts[word] = count
    return WordFrequencies(counts)


def _count(cell: object) -> int:
    count = whole_number(cell)
    if count < 0:
        raise ValueError(cell)
    return count
