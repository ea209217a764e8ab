"""Words that may stand at a position: those of the vocabulary that every constraint allows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from contstim.models.caching import WORDS, SizedCache

if TYPE_CHECKING:
    from collections.abc import Set

    from contstim.arrays import BoolArray, IntArray
    from contstim.optimization.search.objectives import ScoredSentence
    from contstim.sentence import Sentence
    from contstim.vocabulary import Vocabulary


class Constraint(ABC):
    """A rule about the words of a sentence that is made from a natural one; they combine freely."""

    @abstractmethod
    def allowed(
        self, natural: Sentence, sentence: Sentence, position: int, words: tuple[str, ...]
    ) -> BoolArray:
        """Mask of words that may replace the sentence's word at a 0-based position, (n_words,)."""

    def fixes(self, position: int) -> bool:  # noqa: ARG002
        """True if a 0-based position is never to change."""
        return False


@dataclass(frozen=True)
class NoRepeats(Constraint):
    """No word occurs twice, compared in lower case, save those listed and those of the natural one.

    Attributes:
        repeatable: words that may occur twice, in lower case.
    """

    repeatable: frozenset[str] = frozenset()

    def allowed(
        self, natural: Sentence, sentence: Sentence, position: int, words: tuple[str, ...]
    ) -> BoolArray:
        """See `Constraint.allowed`."""
        del natural
        others = {word.lower() for i, word in enumerate(sentence.words) if i != position}
        return ~_listed(words, others - self.repeatable)


@dataclass(frozen=True)
class Fixed(Constraint):
    """Some positions keep the natural sentence's words.

    Attributes:
        positions: 0-based.
    """

    positions: frozenset[int]

    def allowed(
        self, natural: Sentence, sentence: Sentence, position: int, words: tuple[str, ...]
    ) -> BoolArray:
        """See `Constraint.allowed`."""
        del natural, sentence
        return np.full(len(words), position not in self.positions)

    def fixes(self, position: int) -> bool:
        """See `Constraint.fixes`."""
        return position in self.positions


@dataclass(frozen=True)
class OnlyWords(Constraint):
    """New words come from a list, compared in lower case.

    Attributes:
        words: in lower case.
    """

    words: frozenset[str]

    def allowed(
        self, natural: Sentence, sentence: Sentence, position: int, words: tuple[str, ...]
    ) -> BoolArray:
        """See `Constraint.allowed`."""
        del natural, sentence, position
        return _listed(words, self.words)


@dataclass(frozen=True)
class WithoutWords(Constraint):
    """New words are none of a list, compared in lower case.

    Attributes:
        words: in lower case.
    """

    words: frozenset[str]

    def allowed(
        self, natural: Sentence, sentence: Sentence, position: int, words: tuple[str, ...]
    ) -> BoolArray:
        """See `Constraint.allowed`."""
        del natural, sentence, position
        return ~_listed(words, self.words)


@dataclass(frozen=True)
class SameLength(Constraint):
    """About as many characters as the natural sentence.

    Attributes:
        margin: how many more or fewer there may be.
    """

    margin: int = 0

    def allowed(
        self, natural: Sentence, sentence: Sentence, position: int, words: tuple[str, ...]
    ) -> BoolArray:
        """See `Constraint.allowed`."""
        # Characters of the sentence without the word, spaces included, and then with each word.
        others = len(sentence.bare) - len(sentence.words[position])
        excess = _lengths(words) + (others - len(natural.bare))
        within: BoolArray = np.abs(excess) <= self.margin
        return within


@dataclass(frozen=True)
class MaxChanges(Constraint):
    """At most so many words differ from the natural sentence's.

    Attributes:
        words: how many.
    """

    words: int

    def allowed(
        self, natural: Sentence, sentence: Sentence, position: int, words: tuple[str, ...]
    ) -> BoolArray:
        """See `Constraint.allowed`; the natural sentence's own word always is."""
        # Words that are new at other positions; if they use up what is allowed, this one may only
        # become the natural sentence's again.
        pairs = enumerate(zip(natural.words, sentence.words, strict=True))
        elsewhere = sum(new != old for i, (old, new) in pairs if i != position)
        if elsewhere < self.words:
            return np.ones(len(words), np.bool_)
        return np.array([word == natural.words[position] for word in words], np.bool_)


@dataclass(frozen=True)
class Capitals(Constraint):
    """New words are capitalised only at the start of a sentence, and small only inside it.

    Names are capitalised anywhere: they are the capitalised words of the vocabulary that stand
    nowhere in it in small letters. The natural sentence's words stay as they are.

    Attributes:
        capitalised: words that may not stand inside a sentence.
        small: words that may not start one.
    """

    capitalised: frozenset[str]
    small: frozenset[str]

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> Capitals:
        """The words of a vocabulary that also stand there with the other case.

        A list that was made by the rules for words has none of them; one of every word of a text
        holds `The` beside `the` for words inside sentences, from headings and from quotations.
        """
        inner, initial = set(vocabulary.inner), set(vocabulary.initial)
        return cls(
            frozenset(
                word
                for word in inner
                if (word[0] != word[0].lower() and word[0].lower() + word[1:] in inner)
                or (word != word.lower() and word.lower() in inner)
            ),
            frozenset(word for word in initial if _capitalise(word) in initial - {word}),
        )

    def allowed(
        self, natural: Sentence, sentence: Sentence, position: int, words: tuple[str, ...]
    ) -> BoolArray:
        """See `Constraint.allowed`."""
        del sentence
        misplaced = self.capitalised if position else self.small
        return ~_members(words, misplaced - {natural.words[position]})


@dataclass(frozen=True, eq=False)
class Position:
    """A position of a sentence where a better word is looked for, and the words for it.

    Attributes:
        current: the sentence as it stands.
        index: 0-based.
        words: all words of the vocabulary for the position.
        allowed: which of them may replace the one that stands there, (n_words,).
        visit: the number of the climb's visit, from 1; 0 outside of visits.
    """

    current: ScoredSentence
    index: int
    words: tuple[str, ...]
    allowed: BoolArray
    visit: int

    @property
    def sentence(self) -> Sentence:
        """The sentence as it stands."""
        return self.current.sentence

    @property
    def word(self) -> str:
        """The word that stands there."""
        return self.sentence.words[self.index]

    @property
    def column(self) -> int:
        """The index among `words` of the word that stands there."""
        return _places(self.words)[self.word]

    def replace(self, word: str) -> Sentence:
        """The sentence with another word there."""
        return self.sentence.replace(self.index, word)


@dataclass(frozen=True)
class Candidates:
    """Words for the positions of sentences that are made from a natural one.

    Attributes:
        vocabulary: all words, by where they may stand.
        natural: the sentence that the search started from.
        constraints: what new words must keep.
    """

    vocabulary: Vocabulary
    natural: Sentence
    constraints: tuple[Constraint, ...] = ()

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """The 0-based positions that are not fixed."""
        every = range(len(self.natural))
        return tuple(p for p in every if not any(c.fixes(p) for c in self.constraints))

    def at(self, current: ScoredSentence, index: int, visit: int = 0) -> Position:
        """A position of a sentence, and the words for it."""
        words, allowed = self.vocabulary.at(index), self.allowed(current.sentence, index)
        return Position(current, index, words, allowed, visit)

    def allowed(self, sentence: Sentence, index: int) -> BoolArray:
        """Mask of the vocabulary's words that may replace that at a 0-based position, (n_words,).

        The word itself is none of them.
        """
        words = self.vocabulary.at(index)
        allowed = np.ones(len(words), np.bool_)
        for constraint in self.constraints:
            allowed &= constraint.allowed(self.natural, sentence, index, words)
        allowed[_places(words).get(sentence.words[index], [])] = False
        return allowed

    def broken(self, sentence: Sentence) -> list[str]:
        """Faults of a finished sentence, vocabulary included; empty if there are none."""
        missing = self.vocabulary.missing(sentence)
        faults = [f"words outside the vocabulary: {', '.join(missing)}"] if missing else []
        for index, (old, new) in enumerate(zip(self.natural.words, sentence.words, strict=True)):
            words = self.vocabulary.at(index)
            if new == old or new not in _places(words):
                continue
            for constraint in self.constraints:
                if not constraint.allowed(self.natural, sentence, index, words)[
                    _places(words)[new]
                ]:
                    name = type(constraint).__name__
                    faults.append(f"{name} does not allow {new!r} as word {index + 1}")
        return faults


def _capitalise(word: str) -> str:
    return word[0].upper() + word[1:]  # not str.capitalize, which writes `iPhone` as `Iphone`


def _listed(words: tuple[str, ...], chosen: Set[str]) -> BoolArray:
    """Which words are among some, in lower case, (n_words,)."""
    places = _by_lower_case(words)
    listed = np.zeros(len(words), np.bool_)
    for word in chosen:
        for index in places.get(word, ()):  # mostly one or none: quicker than indexing by a list
            listed[index] = True
    return listed


# A vocabulary's tens of thousands of words are asked about at every visit: computed once.


def _find_places(words: tuple[str, ...]) -> dict[str, int]:
    return {word: index for index, word in enumerate(words)}


def _places_by_lower_case(words: tuple[str, ...]) -> dict[str, list[int]]:
    places: defaultdict[str, list[int]] = defaultdict(list)
    for index, word in enumerate(words):
        places[word.lower()].append(index)
    return dict(places)


def _count_characters(words: tuple[str, ...]) -> IntArray:
    return np.fromiter(map(len, words), np.int64, len(words))


def _find_members(words: tuple[str, ...], chosen: frozenset[str]) -> BoolArray:
    return np.fromiter((word in chosen for word in words), np.bool_, len(words))


_places = SizedCache(_find_places, len, WORDS)
_by_lower_case = SizedCache(_places_by_lower_case, len, WORDS)
_lengths = SizedCache(_count_characters, len, WORDS)
_members = SizedCache(_find_members, len, WORDS)
