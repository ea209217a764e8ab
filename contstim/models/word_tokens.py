"""The tokens of candidate words in the places where they would stand.

A word alone and a word in a sentence may be cut differently: at the start there is no space before
it, at the end the end mark may join its last token. So words are cut in a short sentence, in the
kind of place where they would stand, and their tokens are cached for each kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from contstim.models.caching import WORDS, SizedCache
from contstim.models.words import END_MARK
from contstim.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.models.words import Encoding

    Tokens: TypeAlias = tuple[int, ...]


_NEIGHBOUR = "a"


class PlaceKind(NamedTuple):
    """A kind of place in a sentence, for tokenizers that cut words independently of each other.

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

    def sentence_with(self, word: str) -> Sentence:
        """The shortest sentence with the word in such a place."""
        # a word before it only if it is an inner one, and one after it unless it is the last
        before, after = (_NEIGHBOUR,) * self.inner, (_NEIGHBOUR,) * (not self.end)
        return Sentence((*before, word, *after), self.end or ".")


class EqualLengthWords(NamedTuple):
    """The candidates with the same number of tokens.

    Attributes:
        words: indices of the candidates, ascending, (n,).
        tokens: (n, length).
    """

    words: IntArray
    tokens: IntArray


@dataclass(frozen=True, eq=False)
class WordTokens:
    """The tokens of candidate words.

    Attributes:
        tokens: of each word.
        rest: for each word, the tokens that follow it in the sentence in which it was cut.
    """

    tokens: tuple[Tokens, ...]
    rest: tuple[Tokens, ...]

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def lengths(self) -> IntArray:
        """Number of tokens of each word, (n_words,)."""
        return np.fromiter(map(len, self.tokens), np.int64, len(self.tokens))

    @cached_property
    def by_length(self) -> dict[int, EqualLengthWords]:
        """The words of each number of tokens that occurs, the fewest tokens first."""
        # Words of equal length fill a table without gaps, so that arrays can be indexed by it
        groups = {}
        for length in np.unique(self.lengths).tolist():
            words = np.flatnonzero(self.lengths == length)
            table = np.array([self.tokens[word] for word in words.tolist()], np.int64)
            groups[length] = EqualLengthWords(words, table.reshape(len(words), length))
        return groups

    @cached_property
    def firsts(self) -> IntArray:
        """The first token of each word, (n_words,); 0 for a word without tokens."""
        return np.array([tokens[0] if tokens else 0 for tokens in self.tokens], np.int64)

    @cached_property
    def n_later(self) -> FloatArray:
        """Number of tokens that follow the first one of each word, (n_words,)."""
        later: FloatArray = np.maximum(self.lengths - 1.0, 0.0)
        return later

    def followed_by(self, rest: Tokens) -> BoolArray:
        """Mask of the words whose tokens after the first are exactly these, (n_words,)."""
        numbers, number_of_word = self._distinct_rests
        followed: BoolArray = number_of_word == numbers.get(rest, -1)
        return followed

    @cached_property
    def _distinct_rests(self) -> tuple[dict[Tokens, int], IntArray]:
        # Nearly all words have the same tokens after them
        numbers: dict[Tokens, int] = {}
        of_words = (numbers.setdefault(rest, len(numbers)) for rest in self.rest)
        return numbers, np.fromiter(of_words, np.int64, len(self.rest))


class WordsInPlaces:
    """Cuts words in kinds of places, each word once.

    Args:
        encode: cuts whole sentences into tokens.
    """

    def __init__(self, encode: Callable[[Sequence[Sentence]], Sequence[Encoding]]) -> None:
        self._encode = encode
        self._cut: dict[PlaceKind, dict[str, tuple[Tokens, Tokens]]] = {}
        self._remembered = SizedCache(self._look_up, len, WORDS)

    def __call__(self, words: Sequence[str], place: PlaceKind) -> WordTokens:
        """The tokens of each word in such a place.

        Raises:
            ModelError: a word cannot be read.
        """
        # A tuple stays itself: a vocabulary's computes its hash once
        return self._remembered(words if isinstance(words, tuple) else tuple(words), place)

    def _look_up(self, words: tuple[str, ...], place: PlaceKind) -> WordTokens:
        # Words are kept singly: most words of the next call were in the last one too
        cut = self._cut.setdefault(place, {})
        new = [word for word in dict.fromkeys(words) if word not in cut]
        encodings = self._encode([place.sentence_with(word) for word in new])
        # 1 behind the neighbour, 0 where the word begins the sentence
        position = int(place.inner)
        cut.update((w, word_and_rest(e, position)) for w, e in zip(new, encodings, strict=True))
        pairs = [cut[word] for word in words]
        if len(cut) > WORDS:  # rather than to choose which to drop
            del self._cut[place]
        return WordTokens(tuple(tokens for tokens, _ in pairs), tuple(rest for _, rest in pairs))


def word_and_rest(encoding: Encoding, position: int) -> tuple[Tokens, Tokens]:
    """The tokens of the word at a 0-based position, and all tokens after it.

    A tokenizer may drop a word: then it has no tokens, and the rest begins with the next word.
    """
    word_of = encoding.word_of
    later = (i for i, word in enumerate(word_of) if word >= position or word == END_MARK)
    # The word's own tokens, or where it has none, the first of what follows it
    start = next(later, len(word_of))
    stop = start + word_of.count(position)
    return encoding.ids[start:stop], encoding.ids[stop:]
