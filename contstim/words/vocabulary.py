"""Vocabulary: three lists of words.

The lists contain words that may start a sentence, words that may occur at later positions, and
words that may occur several times in a sentence.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.errors import VocabularyError
from contstim.files.files import write_text
from contstim.words.corpus import read_lines
from contstim.words.sentence import WORDS_ARE, Sentence, is_word, normalise_text, special_sign

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.files.arrays import BoolArray

#: English articles and prepositions, which may occur several times in a sentence.
REPEATABLE_ENGLISH = frozenset(
    Path(__file__).with_name("repeatable_english.txt").read_text(encoding="utf-8").split()
)

_HEADINGS = ("[initial]", "[inner]", "[repeatable]")


class WordTuple(tuple[str, ...]):
    """Tuple of words that stores its hash, because caches of searches hash it often."""

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[WordTuple], tuple[tuple[str, ...]]]:
        # The hash is not pickled, because it differs between processes
        return WordTuple, (tuple(self),)


@dataclass(frozen=True)
class Vocabulary:
    """Words by allowed position, in a fixed order without duplicates.

    Attributes:
        initial: words that may start a sentence, usually capitalised.
        inner: words that may occur at all other positions.
        repeatable: words that may occur several times in a sentence; stored in lower case.

    Raises:
        VocabularyError: if there is no word, or a word is invalid (see `WORDS_ARE`), contains a
            special token such as `[MASK]`, or is a heading of a vocabulary file.
    """

    initial: tuple[str, ...]
    inner: tuple[str, ...]
    repeatable: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name in ("initial", "inner"):
            words = dict.fromkeys(map(normalise_text, getattr(self, name)))
            object.__setattr__(self, name, WordTuple(words))
        repeatable = (normalise_text(word).lower() for word in self.repeatable)
        object.__setattr__(self, "repeatable", frozenset(repeatable))
        if not self.initial and not self.inner:
            raise VocabularyError("A vocabulary needs at least one word.")
        for word in self.words:
            if not is_word(word) or word in _HEADINGS:
                raise VocabularyError(
                    f"{word!r} is not a word: {WORDS_ARE}, and must not be a heading of a "
                    f"vocabulary file ({', '.join(_HEADINGS)})."
                )
            sign = special_sign(word)
            if sign is not None:
                raise VocabularyError(
                    f"{word!r} cannot be part of a sentence: language models read {sign!r} "
                    "as a special token. Remove the word from the vocabulary."
                )

    @property
    def words(self) -> tuple[str, ...]:
        """All distinct words, sentence-initial ones first."""
        return tuple(dict.fromkeys(self.initial + self.inner))

    def at(self, position: int) -> tuple[str, ...]:
        """Return the words allowed at a 0-based position of a sentence."""
        return self.initial if position == 0 else self.inner

    def missing_words(self, sentence: Sentence) -> tuple[str, ...]:
        """Return the words of a sentence that are not allowed at their positions, in order."""
        first, *later_words = sentence.words
        initial, inner = self._sets
        return tuple([first] * (first not in initial) + [w for w in later_words if w not in inner])

    @cached_property
    def _sets(self) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(self.initial), frozenset(self.inner)

    def restrict(
        self, are_known: Callable[[Sequence[str]], BoolArray]
    ) -> tuple[Vocabulary, tuple[str, ...]]:
        """Remove unknown words; return the smaller vocabulary, and the removed words.

        The function `are_known` returns a mask of known words, (n_words,).

        Raises:
            VocabularyError: if no word is left.
        """
        words = self.words
        is_known = are_known(words)
        usable = tuple(compress(words, is_known))
        if not usable:
            raise VocabularyError(
                f"None of the {len(words):,} words of the vocabulary is known to every model; "
                f"the first are {', '.join(words[:5])}. Use a vocabulary in the models' language "
                f"and case."
            )
        known = Vocabulary(usable, usable, self.repeatable)
        return self.intersect(known), tuple(compress(words, ~is_known))

    def intersect(self, vocabulary: Vocabulary) -> Vocabulary:
        """Return the words that are in both vocabularies, in the order of this vocabulary.

        Raises:
            VocabularyError: if no word is left.
        """
        initial, inner = vocabulary._sets
        return Vocabulary(
            tuple(w for w in self.initial if w in initial),
            tuple(w for w in self.inner if w in inner),
            self.repeatable & vocabulary.repeatable,
        )

    @classmethod
    def from_sentences(cls, sentences: Iterable[Sentence], *, min_count: int = 1) -> Vocabulary:
        """Make a vocabulary from the words of sentences.

        A word is `initial` if it starts at least `min_count` sentences, and `inner` if it occurs at
        least `min_count` times at other positions. The most frequent words come first, ties in
        order of first occurrence. Words of `REPEATABLE_ENGLISH` are repeatable. Special tokens of
        models, such as `<unk>`, are left out.

        Raises:
            VocabularyError: if `min_count` is below 1, or no word occurs `min_count` times.
        """
        return cls.from_counts(*count_words(sentences), min_count=min_count)

    @classmethod
    def from_counts(
        cls, initial: Counter[str], inner: Counter[str], *, min_count: int = 1
    ) -> Vocabulary:
        """Make a vocabulary from counts of first words and of other words."""
        if min_count < 1:
            raise VocabularyError(f"min_count must be at least 1, got {min_count}.")
        starts, later_words = (
            tuple(w for w, n in counts.most_common() if n >= min_count and special_sign(w) is None)
            for counts in (initial, inner)
        )
        if not starts and not later_words:
            raise VocabularyError(
                f"No word occurs at least {min_count} times. Lower --min-count, or use a "
                "longer text."
            )
        # Only words of the vocabulary are listed as repeatable
        repeatable = REPEATABLE_ENGLISH.intersection(map(str.lower, starts + later_words))
        return cls(starts, later_words, repeatable)

    @classmethod
    def load(cls, path: Path | str) -> Vocabulary:
        """Read a vocabulary file: one word per line, under optional headings.

        The headings are `[initial]`, `[inner]` and `[repeatable]`. Words above the first heading
        are allowed at all positions; at the start of a sentence they are capitalised. Without
        `[repeatable]`, no word may occur twice in a sentence.

        Raises:
            CorpusError: if the file is missing, empty or not UTF-8.
            VocabularyError: if a line holds several words; also see `Vocabulary`.
        """
        lists: dict[str, list[str]] = {name: [] for name in (*_HEADINGS, "")}
        heading = ""
        for line in read_lines(path):
            if line in _HEADINGS:
                heading = line
            else:
                require_single_word(line, path)
                lists[heading].append(line)
        anywhere = lists[""]
        return cls(
            # str.capitalize would turn `iPhone` into `Iphone`
            tuple(lists["[initial]"] + [w[:1].upper() + w[1:] for w in anywhere]),
            tuple(lists["[inner]"] + anywhere),
            frozenset(lists["[repeatable]"]),
        )

    def save(self, path: Path | str) -> None:
        """Write a vocabulary file, which `load` reads back as an equal vocabulary.

        Raises:
            InputError: if the file cannot be written.
        """
        parts = (self.initial, self.inner, sorted(self.repeatable))
        lists = [(heading, *words) for heading, words in zip(_HEADINGS, parts, strict=True)]
        write_text(path, "".join(f"{line}\n" for words in lists for line in words))


def count_words(sentences: Iterable[Sentence]) -> tuple[Counter[str], Counter[str]]:
    """Count the words that start a sentence, and the words at other positions."""
    initial: Counter[str] = Counter()
    inner: Counter[str] = Counter()
    for sentence in sentences:
        initial[sentence.words[0]] += 1
        inner.update(sentence.words[1:])
    return initial, inner


def require_single_word(line: str, path: Path | str) -> None:
    """Check that a line of a list of words is one word.

    Raises:
        VocabularyError: if the line is not one word.
    """
    if not is_word(line):
        raise VocabularyError(f"{path}: {line!r} is not a single word. Write one word per line.")


def read_repeatable(path: Path | str) -> frozenset[str]:
    """Read repeatable words from a plain list or a vocabulary file; return them in lower case.

    Raises:
        CorpusError: if the file is missing, empty or not UTF-8.
        VocabularyError: if the file has headings but no repeatable words, or a line holds several
            words.
    """
    lines = list(read_lines(path))
    if not set(lines) & set(_HEADINGS):
        return frozenset(map(str.lower, Vocabulary((), tuple(lines)).inner))
    words = Vocabulary.load(path).repeatable
    if not words:
        raise VocabularyError(f"{path} lists no words under [repeatable].")
    return words
