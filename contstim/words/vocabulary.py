"""The words that may stand in a sentence: first, elsewhere, and twice."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.errors import VocabularyError
from contstim.files.files import write_text
from contstim.words.corpus import read_lines
from contstim.words.sentence import WORDS_ARE, is_word, normalise_text, special_sign

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.files.arrays import BoolArray
    from contstim.words.sentence import Sentence

#: English articles and prepositions: words that a sentence may well hold twice.
REPEATABLE_ENGLISH = frozenset(
    Path(__file__).with_name("repeatable_english.txt").read_text(encoding="utf-8").split()
)

_HEADINGS = ("[initial]", "[inner]", "[repeatable]")


class WordTuple(tuple[str, ...]):
    """Words that compute their hash once: caches are asked about all of them at every visit."""

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[WordTuple], tuple[tuple[str, ...]]]:
        # Without the hash, which is another one in another process
        return WordTuple, (tuple(self),)


@dataclass(frozen=True)
class Vocabulary:
    """Words by where they may stand, in a fixed order without duplicates.

    Attributes:
        initial: words that may start a sentence, written as they stand there.
        inner: words that may stand anywhere else.
        repeatable: words that may occur twice in a sentence, in lower case.

    Raises:
        VocabularyError: there is no word at all, or one contains white space or is a sign of
            models, such as `<unk>` or `[MASK]`.
    """

    initial: tuple[str, ...]
    inner: tuple[str, ...]
    repeatable: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        # A frozen dataclass: its own fields are normalised once, before anybody sees them
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
                    f"{word!r} is not a word: {WORDS_ARE}, nor are they headings of this file."
                )
            sign = special_sign(word)
            if sign is not None:
                raise VocabularyError(
                    f"{word!r} cannot stand in a sentence: language models take {sign!r} for a "
                    f"sign and not for text. Take it out of the vocabulary."
                )

    @property
    def words(self) -> tuple[str, ...]:
        """All distinct words, sentence-initial ones first."""
        return tuple(dict.fromkeys(self.initial + self.inner))

    def at(self, position: int) -> tuple[str, ...]:
        """The words that may stand at a 0-based position of a sentence."""
        return self.initial if position == 0 else self.inner

    def missing(self, sentence: Sentence) -> tuple[str, ...]:
        """The words of a sentence that may not stand where they stand, in order."""
        first, *rest = sentence.words
        initial, inner = self._sets
        return tuple([first] * (first not in initial) + [w for w in rest if w not in inner])

    @cached_property
    def _sets(self) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(self.initial), frozenset(self.inner)

    def restrict(
        self, are_known: Callable[[Sequence[str]], BoolArray]
    ) -> tuple[Vocabulary, tuple[str, ...]]:
        """Keep the words for which `are_known` holds; also return the words dropped, in order.

        Raises:
            VocabularyError: no word is left.
        """
        words = self.words
        known = dict(zip(words, are_known(words), strict=True))
        usable = tuple(word for word in words if known[word])
        if not usable:
            raise VocabularyError(
                f"None of the {len(words):,} words of the vocabulary is known to every model; "
                f"the first are {', '.join(words[:5])}. Use a vocabulary in the models' language "
                f"and case."
            )
        dropped = tuple(word for word in words if not known[word])
        return self.intersect(Vocabulary(usable, usable, self.repeatable)), dropped

    def intersect(self, other: Vocabulary) -> Vocabulary:
        """The words that stand in both, in this one's order.

        Raises:
            VocabularyError: no word does.
        """
        initial, inner = other._sets
        return Vocabulary(
            tuple(w for w in self.initial if w in initial),
            tuple(w for w in self.inner if w in inner),
            self.repeatable & other.repeatable,
        )

    @classmethod
    def from_sentences(cls, sentences: Iterable[Sentence], *, min_count: int = 1) -> Vocabulary:
        """Words by how often they start a sentence, and by how often they stand elsewhere.

        A word is `initial` when it starts at least `min_count` sentences and `inner` when it stands
        at least `min_count` times elsewhere; most frequent first, ties in order of occurrence.
        English articles and prepositions may repeat (`REPEATABLE_ENGLISH`). Signs of models, such
        as `<unk>` or `[MASK]`, are left out.

        Raises:
            VocabularyError: `min_count` is below 1, or no word is that frequent.
        """
        return cls.from_counts(*count_words(sentences), min_count=min_count)

    @classmethod
    def from_counts(
        cls, initial: Counter[str], inner: Counter[str], *, min_count: int = 1
    ) -> Vocabulary:
        """The same from counts of words that start a sentence and of words elsewhere."""
        if min_count < 1:
            raise VocabularyError(f"The least count must be 1 or more, not {min_count}.")
        starts, others = (
            # most_common sorts stably, so that ties stay in order of occurrence
            tuple(w for w, n in counts.most_common() if n >= min_count and special_sign(w) is None)
            for counts in (initial, inner)
        )
        if not starts and not others:
            raise VocabularyError(
                f"No word occurs {min_count} times or more; lower --min-count or give more text."
            )
        # Only words that are there: the file lists what holds for this vocabulary
        repeatable = REPEATABLE_ENGLISH.intersection(map(str.lower, starts + others))
        return cls(starts, others, repeatable)

    @classmethod
    def load(cls, path: Path | str) -> Vocabulary:
        """Read a vocabulary file: a word a line, under optional headings.

        `[initial]`, `[inner]` and `[repeatable]` start the three lists. Without headings every word
        may stand anywhere and starts a sentence capitalised, and no word may repeat.

        Raises:
            CorpusError: the file is missing, empty or not UTF-8.
            VocabularyError: a line holds several words, or there is no word at all.
        """
        lists: dict[str, list[str]] = {name: [] for name in (*_HEADINGS, "")}
        heading = ""
        for line in read_lines(path):
            if line in _HEADINGS:
                heading = line
            elif line.split() != [line]:
                raise VocabularyError(f"{path}: {line!r} is not one word; write one word a line.")
            else:
                lists[heading].append(line)
        # Words above the first heading
        anywhere = lists[""]
        return cls(
            # not str.capitalize, which would write `iPhone` as `Iphone`
            tuple(lists["[initial]"] + [w[:1].upper() + w[1:] for w in anywhere]),
            tuple(lists["[inner]"] + anywhere),
            frozenset(lists["[repeatable]"]),
        )

    def save(self, path: Path | str) -> None:
        """Write the vocabulary file that `load` reads back to an equal vocabulary.

        Raises:
            InputError: the file cannot be written.
        """
        parts = (self.initial, self.inner, sorted(self.repeatable))
        lines = [
            line
            for heading, words in zip(_HEADINGS, parts, strict=True)
            for line in (heading, *words)
        ]
        write_text(path, "".join(f"{line}\n" for line in lines))


def count_words(sentences: Iterable[Sentence]) -> tuple[Counter[str], Counter[str]]:
    """Counts of words that start a sentence, and of words elsewhere."""
    initial: Counter[str] = Counter()
    inner: Counter[str] = Counter()
    for sentence in sentences:
        initial[sentence.words[0]] += 1
        inner.update(sentence.words[1:])
    return initial, inner


def read_repeatable(path: Path | str) -> frozenset[str]:
    """The words that may occur twice, in lower case: a plain list, or a vocabulary file's.

    Raises:
        CorpusError: the file is missing, empty or not UTF-8.
        VocabularyError: it has headings but none of its words may repeat, or is not a word list.
    """
    lines = list(read_lines(path))
    if not set(lines) & set(_HEADINGS):
        return frozenset(map(str.lower, lines))
    words = Vocabulary.load(path).repeatable
    if not words:
        raise VocabularyError(f"{path} lists no words under [repeatable].")
    return words
