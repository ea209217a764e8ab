"""A sentence: words joined by single spaces, and an end.

An end is an end mark, or an end mark with closing signs (quotation marks, brackets). A text without
an end gets a full stop. End marks are the ellipsis, all characters with Unicode's property
Sentence_Terminal, and in Greek also the semicolon. Closing signs are the class Close of Unicode's
sentence rules (UAX #29), without opening brackets.

    text                    words                   end
    The dog sleeps          The dog sleeps          .
    He said "yes."          He said "yes            ."
    राम घर गया।               राम घर गया                ।
    これは本です。            これは本です              。
    Il dit : « Viens ! »    Il dit : « Viens        ! »
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

import regex

from contstim.errors import SentenceError
from contstim.files.documents import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable

WORDS_ARE = (
    "a word must not be empty, and must contain no white space, null character or half of a "
    "surrogate pair"
)

END_MARKS = (".", "!", "?")
"""End marks of ASCII; see `ALL_END_MARKS` for all scripts."""

_ALL_SIGNS = "".join(map(chr, range(0x20000)))  # contains all end marks and brackets of Unicode
_MARKS = frozenset(regex.findall(r"[\p{Sentence_Terminal}…]", _ALL_SIGNS))
ALL_END_MARKS = _MARKS | {";"}
"""End marks of all scripts; the semicolon is an end mark in Greek only."""

_UNWRITABLE = re.compile(r"[\0\ud800-\udfff]")  # null character, half of a surrogate pair
_CLOSING_SIGNS = "".join(
    regex.findall(r"(?V1)[[\p{Sentence_Break=Close}״＂＇]--\p{Ps}]|\s", _ALL_SIGNS)
)
_GREEK = regex.compile(r"\p{Greek}{2}")  # a single letter may be mathematics

_INVISIBLE = re.compile(
    "[\x01-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"  # control characters; a null character is refused
    "\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]"
)
_JOINERS = "\u200c\u200d"
# Joiners belong to a word only between letters, or between the combining marks of letters
_STRAY_JOINERS = regex.compile(
    rf"(?<![\p{{L}}\p{{M}}{_JOINERS}])[{_JOINERS}]+|[{_JOINERS}]++(?![\p{{L}}\p{{M}}])"
)


def normalise_text(text: str) -> str:
    """Normalise a text, so that different encodings of the same text become equal.

    Apply Unicode's normal form C, and remove invisible characters, such as control characters, soft
    hyphens and byte order marks. Zero-width joiners and non-joiners remain between letters, because
    Persian and the scripts of India need them.
    """
    is_ascii = text.isascii()
    if is_ascii and text.isprintable():
        return text
    if not text.isprintable():
        text = _STRAY_JOINERS.sub("", _INVISIBLE.sub("", text))
    return text if is_ascii else unicodedata.normalize("NFC", text)


def split_end(text: str) -> tuple[str, str]:
    """Split a stripped text into the text before its end, and the end (by default a full stop).

    The end is one end mark and the closing signs after it. Single spaces may separate the mark and
    the signs. The end of "Really?!" is "!".
    """
    stripped = text.rstrip(_CLOSING_SIGNS)
    mark, start = stripped[-1:], len(stripped) - 1
    if mark in _MARKS or (mark == ";" and _GREEK.search(text)):
        end = text[start:]
        # An end of two characters contains no white space
        return text[:start], end if len(end) <= 2 else " ".join(end.split())
    return text, "."


def is_end(text: str) -> bool:
    """Return True if a text is an end mark, with or without closing signs."""
    return split_end(f"a{text}") == ("a", text)


def is_word(text: str) -> bool:
    """Return True if a text is one word: visible, without white space, and valid in UTF-8 files."""
    return text.split() == [text] and normalise_text(text) != "" and _is_writable(text)


def _is_writable(text: str) -> bool:
    return text.isprintable() or _UNWRITABLE.search(text) is None


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words and an end; hashable, compared by value.

    `normalise_text` normalises the words. Word-level models read the end mark only if it is in
    their vocabulary. Sub-word models read the end as part of `text`.

    Raises:
        SentenceError: if there are no words, a word is invalid (see `WORDS_ARE`), or the end is
            invalid.
    """

    words: tuple[str, ...]
    end: str = "."

    def __post_init__(self) -> None:
        if not self.words:
            raise SentenceError("A sentence needs at least one word; this text has none.")
        bare = " ".join(self.words)
        if not (bare.isascii() and bare.isprintable() and self.end.isascii()):
            # A word of invisible characters remains unchanged. If it became empty, the positions of
            # the next words would change
            words = tuple(normalise_text(word) or word for word in self.words)
            object.__setattr__(self, "words", words)
            object.__setattr__(self, "end", normalise_text(self.end))
            bare = " ".join(self.words)
        # `split` returns other words if a word is empty or contains white space
        if bare.split() != [*self.words] or not _is_writable(bare):
            word = next(word for word in self.words if not is_word(word))
            raise SentenceError(f"{word!r} is not a word: {WORDS_ARE}.")
        if self.end not in END_MARKS and split_end(bare + self.end) != (bare, self.end):
            raise SentenceError(
                "`end` must be an end mark, alone or before closing quotation marks or brackets, "
                f"got {self.end!r} after {bare[-40:]!r}."
            )

    @classmethod
    def parse(cls, text: str) -> Sentence:
        """Parse a line of text; a line without an end gets a full stop.

        `Sentence.parse(sentence.text) == sentence` is true for every sentence.

        Raises:
            SentenceError: if the text has no words or an invalid word (see `WORDS_ARE`), or if
                `text` is not a string but, for example, a number in a table.
        """
        if not isinstance(text, str):
            raise SentenceError(f"{shortened(text)} is not a sentence; expected a text with words.")
        text = normalise_text(text).strip()
        # For speed, test `END_MARKS` first, because nearly all texts end in one of these marks
        bare, end = (text[:-1], text[-1]) if text.endswith(END_MARKS) else split_end(text)
        words = tuple(bare.split())
        if not words:
            raise SentenceError(f"A sentence needs at least one word; {text!r} has none.")
        if not _is_writable(text):
            return cls(words, end)  # raises an error that names the word
        # These words always pass the constructor's checks. Tables are large, so skip the checks
        sentence = object.__new__(cls)
        object.__setattr__(sentence, "words", words)
        object.__setattr__(sentence, "end", end)
        return sentence

    @property
    def bare(self) -> str:
        """The words joined by single spaces, without the end; the input of word-level models."""
        return " ".join(self.words)

    @property
    def text(self) -> str:
        """The words joined by single spaces, and the end; the input of sub-word models."""
        return self.bare + self.end

    @property
    def displayed_text(self) -> str:
        """The text as participants see it: without a full stop, but with other end marks."""
        return self.text if _SHOWN_MARKS.search(self._mark_name) else self.bare + self.end[1:]

    @property
    def is_question(self) -> bool:
        """True if the end mark is a question mark of any script."""
        return _QUESTION_MARKS.search(self._mark_name) is not None

    @property
    def _mark_name(self) -> str:
        # In Greek the semicolon is the question mark
        return unicodedata.name(self.end[0].replace(";", "?"), "")

    def replace(self, position: int, word: str) -> Sentence:
        """Return a copy with another word at a 0-based position.

        Raises:
            SentenceError: if the position is outside the sentence, or `word` is not a word.
        """
        self.check_position(position)
        return Sentence((*self.words[:position], word, *self.words[position + 1 :]), self.end)

    def check_position(self, position: int) -> None:
        """Check that a 0-based position is inside the sentence.

        Raises:
            SentenceError: if the position is outside.
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


# Patterns for the Unicode names of end marks. A mark with another name counts as a full stop
_QUESTION_MARKS = re.compile("QUESTION|INTERROBANG")
_SHOWN_MARKS = re.compile("QUESTION|INTERROBANG|EXCLAMATION|ELLIPSIS")


def repeats(words: Iterable[str], repeatable: frozenset[str] = frozenset()) -> bool:
    """Return True if a word outside `repeatable` occurs twice, compared in lower case."""
    unrepeatable = [w for w in map(str.lower, words) if w not in repeatable]
    return len(set(unrepeatable)) < len(unrepeatable)


def all_but_one(words: tuple[str, ...]) -> set[tuple[int, tuple[str, ...]]]:
    """For each position in `words`, return the position and the words at all other positions.

    Two different sequences of equal length share an entry only if they differ by one word.
    """
    return {(index, words[:index] + words[index + 1 :]) for index in range(len(words))}


# For a language model, a special token marks the start or end of a text, or a masked word. So
# vocabularies contain no special tokens. If a sentence contains a special token, a model reads the
# token as plain text, or refuses the sentence.
SPACE_SIGN = "▁"
"""Character that SentencePiece writes for a space."""

# Special tokens of BERT, GLM and LLaMA. Other words in brackets, such as [1], are text
_BRACKETED = "mask|gmask|smask|unk|pad|cls|sep|bos|eos|sos|eod|eop|eot|nl|inst|/inst"
_SPECIAL = re.compile(
    rf"<[^<>\s]+>|\[(?:{_BRACKETED})\d*\]|\[unused\d+\]|<\||\|>|{SPACE_SIGN}", re.IGNORECASE
)


def special_sign(text: str) -> str | None:
    """Return the first special token of any model in a text; None if there is none.

    Special tokens are words between `<` and `>`, the signs `<|` and `|>`, and `SPACE_SIGN`. Names
    such as `mask` in square brackets, in upper or lower case, are also special tokens.
    """
    match = _SPECIAL.search(text)
    return None if match is None else match[0]
