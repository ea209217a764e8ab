"""A sentence: words joined by single spaces, closed by one end mark."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contstim.documents import shortened
from contstim.errors import SentenceError

if TYPE_CHECKING:
    from collections.abc import Iterable

END_MARKS = (".", "!", "?")
WORDS_ARE = (
    "words are not empty and contain neither white space nor a null character nor half of a "
    "surrogate pair"
)


def is_word(text: str) -> bool:
    """True if a text is one word: something without white space, of characters that files hold."""
    return text.split() == [text] and _is_writable(text)


def _is_writable(text: str) -> bool:
    """True if files can hold a text: no null character, no half of a surrogate pair."""
    if "\0" in text:
        return False
    try:
        # ASCII, by far the most, needs no encoding; half of a surrogate pair cannot be encoded
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words and an end mark; hashable, compared by value.

    Words are what white space separates. The end mark is none of them: word-level models see it
    only if it is a word of their vocabulary, sub-word models read it as part of `text`.

    Raises:
        SentenceError: no words, a word that is empty or contains white space, another end mark.
    """

    words: tuple[str, ...]
    end: str = "."

    def __post_init__(self) -> None:
        if not self.words:
            raise SentenceError("A sentence needs at least one word; this text has none.")
        bare = " ".join(self.words)
        # a word that is empty or holds white space comes back as none or several
        if bare.split() != [*self.words] or not _is_writable(bare):
            word = next(word for word in self.words if not is_word(word))
            raise SentenceError(f"{word!r} is not a word: {WORDS_ARE}.")
        if self.end not in END_MARKS:
            raise SentenceError(f"End mark {self.end!r} is not one of {' '.join(END_MARKS)}")

    @classmethod
    def parse(cls, text: str) -> Sentence:
        """Read a line of text; it gets a full stop unless it brings an end mark of its own.

        `Sentence.parse(sentence.text) == sentence` for every sentence.

        Raises:
            SentenceError: the text has no words, or is something else than a text, such as the null
                or the number of a table.
        """
        if not isinstance(text, str):
            raise SentenceError(f"{shortened(text)} is not a sentence; expected a text with words.")
        text = text.strip()
        end = "."
        # One mark only: of "Really?!" the words keep the question mark
        if text.endswith(END_MARKS):
            text, end = text[:-1], text[-1]
        words = tuple(text.split())
        if not words:
            raise SentenceError(f"A sentence needs at least one word; {text + end!r} has none.")
        if not _is_writable(text):
            return cls(words, end)  # which names the word
        # Past the checks of the constructor, which splitting has met: tables hold a million.
        sentence = object.__new__(cls)
        object.__setattr__(sentence, "words", words)
        object.__setattr__(sentence, "end", end)
        return sentence

    @property
    def bare(self) -> str:
        """The words joined by single spaces, without the end mark: what word-level models read."""
        return " ".join(self.words)

    @property
    def text(self) -> str:
        """The words joined by single spaces and the end mark: what sub-word models read."""
        return self.bare + self.end

    @property
    def shown(self) -> str:
        """The words as participants read them: with a question mark, but without a full stop."""
        return self.text.removesuffix(".")

    def replace(self, position: int, word: str) -> Sentence:
        """The sentence with another word at a 0-based position.

        Raises:
            SentenceError: there is no such position, or the word is not a word.
        """
        self.check_position(position)
        return Sentence((*self.words[:position], word, *self.words[position + 1 :]), self.end)

    def check_position(self, position: int) -> None:
        """Refuse a position that the sentence does not have.

        Raises:
            SentenceError: positions go from 0 to the number of words less one.
        """
        if not 0 <= position < len(self.words):
            raise SentenceError(
                f"Position {position} is outside {self.text!r}: positions go from 0 to "
                f"{len(self.words) - 1}."
            )

    def __len__(self) -> int:
        return len(self.words)

    def __str__(self) -> str:
        return self.text


def repeats(words: Iterable[str], repeatable: frozenset[str] = frozenset()) -> bool:
    """True if a word occurs twice, compared in lower case, other than the repeatable ones."""
    counted = [w for w in map(str.lower, words) if w not in repeatable]
    return len(set(counted)) < len(counted)


def all_but_one(words: tuple[str, ...]) -> set[tuple[int, tuple[str, ...]]]:
    """Each place of a row of words, with the words at all other places.

    Two rows of one length share one of these if they differ by one word, all if they are equal.
    """
    return {(place, words[:place] + words[place + 1 :]) for place in range(len(words))}


# Words that are signs of models and not words of a language. A model that met one in a sentence
# would obey it: begin anew, end, or hide a word. So none is ever in a vocabulary, whatever the
# models, and models read them as plain text or refuse the sentence.
SPACE_SIGN = "▁"
"""How SentencePiece writes a space."""

# Of BERT, GLM, LLaMA and their kin; other bracketed words, such as [1], are text
_BRACKETED = "mask|gmask|smask|unk|pad|cls|sep|bos|eos|sos|eod|eop|eot|nl|inst|/inst"
_SPECIAL = re.compile(
    rf"<[^<>\s]+>|\[(?:{_BRACKETED})\d*\]|\[unused\d+\]|<\||\|>|{SPACE_SIGN}", re.IGNORECASE
)


def special_sign(text: str) -> str | None:
    """The first sign of a model in a text; None where it is plain.

    Signs are whatever stands between `<` and `>`, the names of special tokens in brackets, in
    whatever case, and the mark by which SentencePiece writes a space.
    """
    match = _SPECIAL.search(text)
    return None if match is None else match[0]
