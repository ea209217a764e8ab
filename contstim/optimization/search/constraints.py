"""Which words may stand where: small objects, as many as one likes, judged by words alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.models.remembering import WORDS, Remembered

if TYPE_CHECKING:
    from contstim.arrays import BoolArray, IntArray
    from contstim.sentence import Sentence


class Constraint(ABC):
    """A rule about the words of a sentence that is made from a natural one."""

    @abstractmethod
    def allowed(
        self, natural: Sentence, sentence: Sentence, position: int, words: tuple[str, ...]
    ) -> BoolArray:
        """Which words may replace the one at a 0-based position of the sentence, (n_words,)."""

    @abstractmethod
    def broken(self, natural: Sentence, sentence: Sentence) -> str:
        """What is wrong with a finished sentence; empty where the rule holds."""

    def fixes(self, position: int) -> bool:  # noqa: ARG002
        """Whether a 0-based position is never to change."""
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
        places = _by_lower_case(words)
        allowed = np.ones(len(words), np.bool_)
        for other, word in enumerate(sentence.words):
            lowered = word.lower()
            if other != position and lowered not in self.repeatable:
                allowed[places.get(lowered, [])] = False
        return allowed

    def broken(self, natural: Sentence, sentence: Sentence) -> str:
        """See `Constraint.broken`."""
        new = self._repeated(sentence) - self._repeated(natural)
        return f"it repeats {', '.join(sorted(new))}" if new else ""

    def _repeated(self, sentence: Sentence) -> set[str]:
        words = [word.lower() for word in sentence.words]
        return {word for word in words if words.count(word) > 1} - self.repeatable


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

    def broken(self, natural: Sentence, sentence: Sentence) -> str:
        """See `Constraint.broken`."""
        changed = sorted(p for p in self.positions if sentence.words[p] != natural.words[p])
        return f"it changes fixed positions {changed}" if changed else ""

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

    def broken(self, natural: Sentence, sentence: Sentence) -> str:
        """See `Constraint.broken`."""
        others = [w for w in _new_words(natural, sentence) if w.lower() not in self.words]
        return f"it has words that are not allowed: {', '.join(others)}" if others else ""


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

    def broken(self, natural: Sentence, sentence: Sentence) -> str:
        """See `Constraint.broken`."""
        excluded = [w for w in _new_words(natural, sentence) if w.lower() in self.words]
        return f"it has excluded words: {', '.join(excluded)}" if excluded else ""


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
        others = len(sentence.bare) - len(sentence.words[position])
        excess = _lengths(words) + (others - len(natural.bare))
        within: BoolArray = np.abs(excess) <= self.margin
        return within

    def broken(self, natural: Sentence, sentence: Sentence) -> str:
        """See `Constraint.broken`."""
        excess = len(sentence.bare) - len(natural.bare)
        return f"it is {excess:+} characters longer" if abs(excess) > self.margin else ""


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
        elsewhere = len(_new_words(natural, sentence))
        elsewhere -= sentence.words[position] != natural.words[position]
        if elsewhere < self.words:
            return np.ones(len(words), np.bool_)
        return np.array([word == natural.words[position] for word in words], np.bool_)

    def broken(self, natural: Sentence, sentence: Sentence) -> str:
        """See `Constraint.broken`."""
        changed = len(_new_words(natural, sentence))
        return f"{changed} of its words are new" if changed > self.words else ""


def _new_words(natural: Sentence, sentence: Sentence) -> list[str]:
    pairs = zip(natural.words, sentence.words, strict=True)
    return [new for old, new in pairs if new != old]


def _listed(words: tuple[str, ...], chosen: frozenset[str]) -> BoolArray:
    places = _by_lower_case(words)
    listed = np.zeros(len(words), np.bool_)
    for word in chosen:
        listed[places.get(word, [])] = True
    return listed


def _places_by_lower_case(words: tuple[str, ...]) -> dict[str, list[int]]:
    places: defaultdict[str, list[int]] = defaultdict(list)
    for index, word in enumerate(words):
        places[word.lower()].append(index)
    return dict(places)


def _count_characters(words: tuple[str, ...]) -> IntArray:
    return np.fromiter(map(len, words), np.int64, len(words))


_by_lower_case = Remembered(_places_by_lower_case, len, WORDS)
_lengths = Remembered(_count_characters, len, WORDS)
