"""The tokens of candidate words in the places where they would stand.

A word alone and a word in a sentence may be cut differently: at the start there is no space before
it, at the end the end mark may join its last token. So each kind of place has its own words, cut in
a sentence with such a place, and they are remembered.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from contstim.models.remembering import WORDS, Remembered
from contstim.models.words import END_MARK
from contstim.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.arrays import BoolArray, IntArray
    from contstim.models.words import Encoding

    Tokens: TypeAlias = tuple[int, ...]


_NEIGHBOUR = "a"


class PlaceKind(NamedTuple):
    """All that a word's tokens depend on where words are cut independently of each other.

    Attributes:
        inner: whether another word stands before it.
        end: the end mark where it is the last word, else empty.
    """

    inner: bool
    end: str = ""

    @classmethod
    def of(cls, sentence: Sentence, position: int) -> PlaceKind:
        """Of a 0-based position."""
        last = position == len(sentence) - 1
        return cls(position > 0, sentence.end if last else "")

    def holding(self, word: str) -> Sentence:
        """The shortest sentence with the word in such a place."""
        before, after = (_NEIGHBOUR,) * self.inner, (_NEIGHBOUR,) * (not self.end)
        return Sentence((*before, word, *after), self.end or ".")


class OfOneLength(NamedTuple):
    """The words with as many tokens.

    Attributes:
        words: their numbers, ascending, (n,).
        tokens: (n, length).
    """

    words: IntArray
    tokens: IntArray


@dataclass(frozen=True, eq=False)
class WordTokens:
    """What each word is cut into, and what follows it there.

    Attributes:
        tokens: of each word.
        rest: of each word, the tokens after it in the text that it was cut from.
    """

    tokens: tuple[Tokens, ...]
    rest: tuple[Tokens, ...]

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def lengths(self) -> IntArray:
        """How many tokens each word has, (n_words,)."""
        return np.fromiter(map(len, self.tokens), np.int64, len(self.tokens))

    @cached_property
    def by_length(self) -> dict[int, OfOneLength]:
        """The words of each number of tokens that occurs, the fewest tokens first."""
        groups = {}
        for length in np.unique(self.lengths).tolist():
            words = np.flatnonzero(self.lengths == length)
            table = np.array([self.tokens[word] for word in words.tolist()], np.int64)
            groups[length] = OfOneLength(words, table.reshape(len(words), length))
        return groups

    @cached_property
    def firsts(self) -> IntArray:
        """The first token of each word that has any, in order."""
        return np.array([tokens[0] for tokens in self.tokens if tokens], np.int64)

    def followed_by(self, rest: Tokens) -> BoolArray:
        """Which words these tokens follow, and no others, (n_words,)."""
        return np.fromiter((own == rest for own in self.rest), np.bool_, len(self.rest))


class WordsInPlaces:
    """Cuts words as they are cut in kinds of places, each word once.

    Args:
        encode: cuts whole sentences; a word's tokens depend on nothing else of the model.
    """

    def __init__(self, encode: Callable[[Sequence[Sentence]], Sequence[Encoding]]) -> None:
        self._encode = encode
        self._cut: dict[PlaceKind, dict[str, tuple[Tokens, Tokens]]] = {}
        self._remembered = Remembered(self._look_up, len, WORDS)

    def __call__(self, words: Sequence[str], place: PlaceKind) -> WordTokens:
        """The tokens of each word in such a place.

        Raises:
            ModelError: a word cannot be read.
        """
        return self._remembered(tuple(words), place)

    def _look_up(self, words: tuple[str, ...], place: PlaceKind) -> WordTokens:
        cut = self._cut.setdefault(place, {})
        new = [word for word in dict.fromkeys(words) if word not in cut]
        encodings = self._encode([place.holding(word) for word in new])
        position = int(place.inner)
        cut.update((w, around(e, position)) for w, e in zip(new, encodings, strict=True))
        pairs = [cut[word] for word in words]
        if len(cut) > WORDS:
            del self._cut[place]
        return WordTokens(tuple(own for own, _ in pairs), tuple(rest for _, rest in pairs))


def around(encoding: Encoding, position: int) -> tuple[Tokens, Tokens]:
    """The tokens of the word at a 0-based position, none if it was dropped, and those after it."""
    word_of = encoding.word_of
    later = (i for i, word in enumerate(word_of) if word >= position or word == END_MARK)
    start = next(later, len(word_of))
    stop = start + word_of.count(position)
    return encoding.ids[start:stop], encoding.ids[stop:]
