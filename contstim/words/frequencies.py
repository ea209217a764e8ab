"""Word frequencies on the Zipf scale.

    Zipf = log10((count + 1) / (tokens in millions + types in millions)) + 3

Tokens are all occurrences of words; types are different words. The Zipf value is log10 of the
frequency in a thousand million words, with Laplace smoothing. Rare words have values from 1 to 3,
frequent words from 4 to 7 (van Heuven, Mandera, Keuleers & Brysbaert 2014, *SUBTLEX-UK*, Quarterly
Journal of Experimental Psychology 67). Case is ignored.
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
from contstim.words.sentence import Sentence, normalise_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contstim.files.tables import Reader

_COUNT_COLUMNS = ("initial", "inner")  # columns in the table of counts of a word-level model


@dataclass(frozen=True, eq=False)  # hashable, as a key of caches
class WordFrequencies:
    """Counts of words.

    Attributes:
        counts: word as written → number of occurrences, 0 or more.

    Raises:
        InputError: if there is no word.
    """

    counts: Mapping[str, int]
    source: str = ""

    def __post_init__(self) -> None:
        if not self.counts:
            raise InputError("The text contains no words to count. Use a longer text.")

    @classmethod
    def of(cls, sentences: Iterable[Sentence], source: str = "") -> WordFrequencies:
        """Count the words of sentences.

        Raises:
            InputError: if there is no sentence.
        """
        return cls(Counter(word for sentence in sentences for word in sentence.words), source)

    def zipf(self, word: str) -> float:
        """Return the Zipf value of a word; a word without a count has the lowest value."""
        # + 3 converts from a million to a thousand million words
        return math.log10((self._lower_counts[word.lower()] + 1) / self._millions) + 3

    def mean_zipf(self, sentence: Sentence) -> float:
        """Return the mean Zipf value of a sentence's words."""
        return math.fsum(map(self.zipf, sentence.words)) / len(sentence.words)

    @cached_property
    def _lower_counts(self) -> Counter[str]:
        lower_counts: Counter[str] = Counter()
        for word, occurrences in self.counts.items():
            lower_counts[normalise_text(word).lower()] += occurrences
        return lower_counts

    @cached_property
    def _millions(self) -> float:
        return (self._lower_counts.total() + len(self._lower_counts)) / 1_000_000

    def sample(self, n: int, *, seed: int) -> list[str]:
        """Sample n distinct words with equal probability, and return them in alphabetical order.

        Only lower-case words are sampled, because a capitalised word may be a name. If there are
        fewer than n such words, all are returned.

        Raises:
            InputError: if there is no lower-case word.
        """
        # Sorted, so that the sample does not depend on the order of `counts`
        words = sorted(word for word in self.counts if word.isalpha() and word.islower())
        if not words:
            raise InputError("The table of frequencies has no lower-case word. Use another table.")
        return sorted(random.Random(seed).sample(words, min(n, len(words))))


def read_frequencies(path: Path | str) -> WordFrequencies:
    """Read frequencies from a text, from a table, or from a trained word-level model.

    Args:
        path: text with one sentence per line; table with the columns `word` and `count`; or
            word-level model trained by contstim. The training of a word-level model stores counts:
            next to the ARPA file of an n-gram model, or in the folder of a recurrent model.

    Raises:
        InputError: if the file cannot be read, lacks a column, names a word twice, or has an
            invalid count.
    """
    file, name = frequency_file(path), Path(path).name
    if file.suffix.lower() in TABLE_KINDS:
        return _read_counts(file, name)
    return WordFrequencies.of(read_sentences(file), name)


def frequency_file(path: Path | str) -> Path:
    """Return the file that `read_frequencies` reads: the path, or a model's file of word counts."""
    of_model = (Path(f"{path}.counts.csv"), Path(path) / "vocabulary.csv")
    is_table = Path(path).suffix.lower() in TABLE_KINDS
    return Path(path) if is_table else next(filter(is_file, of_model), Path(path))


def _read_counts(path: Path, source: str) -> WordFrequencies:
    table = read_table(path)
    # The tables of word-level models count first words of sentences and other words separately
    of_model = "count" not in table and {*_COUNT_COLUMNS} <= table.keys()
    columns = _COUNT_COLUMNS if of_model else ("count",)
    readers: dict[str, Reader] = {"word": (text, "word")}
    readers |= dict.fromkeys(columns, (count, "count; expected a whole number from 0"))
    counts: dict[str, int] = {}
    for word, *parts in zip(*parsed_columns(path, table, readers), strict=True):
        if word in counts:
            raise InputError(f"{path} has two counts for {word!r}. Remove one.")
        counts[word] = sum(parts)
    return WordFrequencies(counts, source)
