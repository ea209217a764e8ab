"""Frequencies of words: one measure for all that asks, the Zipf scale.

    Zipf = log10((count + 1) / (tokens in millions + types in millions)) + 3

which is log10 of the frequency in a thousand million words, smoothed after Laplace: 1 to 3 are rare
words, 4 to 7 frequent ones (van Heuven, Mandera, Keuleers & Brysbaert 2014, *SUBTLEX-UK*, Quarterly
Journal of Experimental Psychology 67). Capital and small letters are the same.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.files.files import is_file
from contstim.files.tables import TABLE_KINDS, count, parsed_columns, read_table, text
from contstim.words.corpus import read_sentences
from contstim.words.sentence import normalise_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contstim.files.tables import Reader
    from contstim.words.sentence import Sentence

_MILLION = 1_000_000
_COUNTS_OF_MODELS = ("initial", "inner")  # where a word stands in a sentence


@dataclass(frozen=True)
class WordFrequencies:
    """Counts of words.

    Attributes:
        counts: by word, as it was written; 0 or more.
        source: the name of what they were counted in.

    Raises:
        InputError: there is no word.
    """

    counts: Mapping[str, int]
    source: str = ""

    def __post_init__(self) -> None:
        if not self.counts:
            raise InputError("There are no words to take frequencies from: give a longer text.")

    @classmethod
    def of(cls, sentences: Iterable[Sentence], source: str = "") -> WordFrequencies:
        """Of the words of some sentences, which `source` names.

        Raises:
            InputError: there is no sentence.
        """
        return cls(Counter(word for sentence in sentences for word in sentence.words), source)

    def zipf(self, word: str) -> float:
        """A word's place on the Zipf scale; words that were never counted have the lowest."""
        return self._zipfs.get(word.lower(), self._lowest)

    def mean_zipf(self, sentence: Sentence) -> float:
        """The mean over a sentence's words."""
        return math.fsum(map(self.zipf, sentence.words)) / len(sentence.words)

    @cached_property
    def _zipfs(self) -> dict[str, float]:
        return {word: self._zipf_of(n) for word, n in self._folded.items()}

    @cached_property
    def _lowest(self) -> float:
        return self._zipf_of(0)

    def _zipf_of(self, n: int) -> float:
        # + 1: Laplace's; + 3: from a million words to a thousand million
        return math.log10((n + 1) / self._millions) + 3

    @cached_property
    def _folded(self) -> Counter[str]:
        folded: Counter[str] = Counter()
        for word, occurrences in self.counts.items():
            folded[normalise_text(word).lower()] += occurrences
        return folded

    @cached_property
    def _millions(self) -> float:
        """Tokens and types, which Laplace's rule adds to the count of all words."""
        return (self._folded.total() + len(self._folded)) / _MILLION

    def sample(self, n: int, *, seed: int) -> list[str]:
        """Distinct words, all equally likely, in alphabetical order.

        Only words of small letters are drawn: names and first words look different inside a
        sentence. All of them where there are no more than n.

        Raises:
            InputError: there is no such word.
        """
        # Sorted before drawing: the order of a table must not change which words a seed draws
        words = sorted(word for word in self.counts if word.isalpha() and word.islower())
        if not words:
            raise InputError("The frequencies have no word of small letters only.")
        return sorted(random.Random(seed).sample(words, min(n, len(words))))


def read_frequencies(path: Path | str) -> WordFrequencies:
    """Frequencies from a text, from a table, or from the text of a model of words.

    Args:
        path: a text, one sentence a line; a table with the columns word and count; or the ARPA file
            or folder of a model that contstim trained, which has such counts.

    Raises:
        InputError: the file cannot be read, lacks a column, names a word twice, or a count is not a
            whole number from 0.
    """
    file, name = frequency_file(path), Path(path).name
    if file.suffix.lower() in TABLE_KINDS:
        return _read_counts(file, name)
    return WordFrequencies.of(read_sentences(file), name)


def frequency_file(path: Path | str) -> Path:
    """File that `read_frequencies` reads: the path itself, or the counts of a model of words."""
    of_model = (Path(f"{path}.counts.csv"), Path(path) / "vocabulary.csv")
    is_table = Path(path).suffix.lower() in TABLE_KINDS
    return Path(path) if is_table else next(filter(is_file, of_model), Path(path))


def _read_counts(path: Path, source: str) -> WordFrequencies:
    table = read_table(path)
    # Models of words count first words and others apart, and have no sum of both
    of_model = "count" not in table and {*_COUNTS_OF_MODELS} <= table.keys()
    columns = _COUNTS_OF_MODELS if of_model else ("count",)
    readers: dict[str, Reader] = {"word": (text, "word")}
    readers |= dict.fromkeys(columns, (count, "count; expected a whole number from 0"))
    counts: dict[str, int] = {}
    for word, *parts in zip(*parsed_columns(path, table, readers), strict=True):
        if word in counts:
            raise InputError(f"{path} counts {word!r} twice.")
        counts[word] = sum(parts)
    return WordFrequencies(counts, source)
