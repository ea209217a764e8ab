"""The words that a recurrent network tells apart: their numbers, and how often they occurred."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError, ModelError
from contstim.models.recurrent.network import UNKNOWN
from contstim.sentence import is_word
from contstim.tables import read_table, write_table
from contstim.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from contstim.arrays import BoolArray, IntArray
    from contstim.sentence import Sentence

SPECIAL_WORDS = ("<s>", "<unk>")
"""What numbers 0 and 1 stand for; no word of a text is ever one of them, nor `</s>`."""

MOST_WORDS = 20_000
_DIGITS = 18  # of a count
_NO_WORDS = frozenset({*SPECIAL_WORDS, "</s>"})


@dataclass(frozen=True)
class WordList:
    """Words, most frequent first; the first one has number 2.

    Attributes:
        words: as they stand in the text, case kept.
        initial: how often each started a sentence.
        inner: how often each stood elsewhere.
    """

    words: tuple[str, ...]
    initial: tuple[int, ...]
    inner: tuple[int, ...]

    @classmethod
    def from_sentences(
        cls, sentences: Iterable[Sentence], *, size: int | None = None, min_count: int = 1
    ) -> WordList:
        """The most frequent words of a text; equally frequent ones in order of occurrence.

        Args:
            sentences: the text.
            size: how many words; by default all that are frequent enough, 20,000 at most.
            min_count: how often a word must occur.

        Raises:
            InputError: the text has fewer such words than asked for, or none.
        """
        initial: Counter[str] = Counter()
        inner: Counter[str] = Counter()
        for sentence in sentences:
            initial[sentence.words[0]] += 1
            inner.update(sentence.words[1:])
        together = initial + inner
        frequent = [
            word
            for word, count in together.most_common()
            if count >= min_count and word.lower() not in _NO_WORDS
        ]
        if not frequent or (size is not None and not 0 < size <= len(frequent)):
            wanted = "any size" if size is None else f"{size:,}"
            raise InputError(
                f"The text has {len(frequent):,} distinct words that occur {min_count:,} times or "
                f"more; a vocabulary of {wanted} cannot be made of them. Ask for a size from 1 to "
                f"their number, lower the least count, or give more text."
            )
        kept = tuple(frequent[: size or MOST_WORDS])
        return cls(kept, tuple(initial[w] for w in kept), tuple(inner[w] for w in kept))

    def __len__(self) -> int:
        """How many numbers there are, those of `SPECIAL_WORDS` included."""
        return len(SPECIAL_WORDS) + len(self.words)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words, start=len(SPECIAL_WORDS))}

    def numbers(self, words: Sequence[str]) -> IntArray:
        """The number of each word, (n_words,); unknown words share one."""
        found = (self._numbers.get(word, UNKNOWN) for word in words)
        return np.fromiter(found, np.int64, len(words))

    def knows(self, words: Sequence[str]) -> BoolArray:
        """Which words have a number of their own, (n_words,)."""
        return np.fromiter((word in self._numbers for word in words), np.bool_, len(words))

    def vocabulary(self, min_count: int) -> Vocabulary:
        """The words that are frequent enough where they stand.

        Raises:
            VocabularyError: no word is.
        """
        initial, inner = (
            Counter(dict(zip(self.words, counts, strict=True)))
            for counts in (self.initial, self.inner)
        )
        return Vocabulary.from_counts(initial, inner, min_count=min_count)

    def write(self, path: Path) -> None:
        """Write a table of words and counts.

        Raises:
            InputError: the file cannot be written.
        """
        write_table(path, {"word": self.words, "initial": self.initial, "inner": self.inner})

    @classmethod
    def read(cls, path: Path) -> WordList:
        """Read what `write` wrote.

        Raises:
            ModelError: it is missing or not such a table, or holds a word twice.
        """
        try:
            table = read_table(path)
            initial, inner = (tuple(map(_count, table[name])) for name in ("initial", "inner"))
            return cls(_distinct(table["word"]), initial, inner)
        except (InputError, KeyError, ValueError) as error:
            raise ModelError(
                f"{path} is not a table of words and counts ({error}). Train the model anew."
            ) from error


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise ValueError(f"{text[:40]!r} is not a count")
    return int(text)


def _distinct(words: Sequence[str]) -> tuple[str, ...]:
    for word, count in Counter(words).items():
        if count > 1 or not is_word(word) or word in _NO_WORDS:
            what = "is there twice" if count > 1 else "is not a word"
            raise ValueError(f"{word[:40]!r} {what}")
    return tuple(words)
