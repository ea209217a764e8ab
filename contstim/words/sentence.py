"""A sentence: words joined by single spaces, closed by one end mark.

A text is complete if it ends in an end mark, alone or before closing quotation marks and brackets.
End marks have Unicode's property Sentence_Terminal, which each script has its own of; the ellipsis
is one too, and the semicolon in Greek. Closing signs are those of Unicode's rules for the ends of
sentences (UAX #29, the class Close without opening brackets).

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
    "words are not empty and contain neither white space nor a null character nor half of a "
    "surrogate pair"
)

END_MARKS = (".", "!", "?")
"""End marks of ASCII; other scripts have their own, see `is_end`."""

_ALL_SIGNS = "".join(map(chr, range(0x20000)))  # no script has end marks or brackets beyond
_MARKS = frozenset(regex.findall(r"[\p{Sentence_Terminal}…]", _ALL_SIGNS))
_CLOSING_SIGNS = "".join(
    regex.findall(r"(?V1)[[\p{Sentence_Break=Close}״＂＇]--\p{Ps}]|\s", _ALL_SIGNS)
)
_GREEK = regex.compile(r"\p{Greek}{2}")  # one letter may be a sign of mathematics

_INVISIBLE = re.compile(
    "[\x01-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"  # control characters; a null character is refused
    "\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]"
)
_JOINERS = "\u200c\u200d"
# A run of joiners belongs to a word only with a letter, or a mark on one, on both sides
_STRAY_JOINERS = regex.compile(
    rf"(?<![\p{{L}}\p{{M}}{_JOINERS}])[{_JOINERS}]+|[{_JOINERS}]++(?![\p{{L}}\p{{M}}])"
)


def normalise_text(text: str) -> str:
    """A text as every sentence, word list and table is compared: visibly the same, one spelling.

    It has Unicode's normal form C and no control characters, soft hyphens, zero-width spaces, word
    joiners, byte order marks and marks of direction. Zero-width joiners and non-joiners remain
    between letters, where Persian and the scripts of India need them.
    """
    is_ascii = text.isascii()
    if is_ascii and text.isprintable():
        return text
    if not text.isprintable():  # no invisible character is printable
        text = _STRAY_JOINERS.sub("", _INVISIBLE.sub("", text))
    return text if is_ascii else unicodedata.normalize("NFC", text)


def split_end(text: str) -> tuple[str, str]:
    """A stripped text without its end, and the end: a full stop if the text has none.

    The end is one mark and the closing signs that follow it, with single spaces before these where
    the text has white space. Of "Really?!" the words keep the question mark.
    """
    rest = text.rstrip(_CLOSING_SIGNS)
    mark, start = rest[-1:], len(rest) - 1
    if mark in _MARKS or (mark == ";" and _GREEK.search(text)):
        end = text[start:]
        # A text of two signs ends in a closing sign, so that no white space is among them
        return text[:start], end if len(end) <= 2 else " ".join(end.split())
    return text, "."


def is_end(text: str) -> bool:
    """True if a text is the end of some sentence: an end mark, perhaps with closing signs."""
    return split_end(f"a{text}") == ("a", text)


def is_word(text: str) -> bool:
    """True if a text is one word: visible, without white space, of characters that files hold."""
    return text.split() == [text] and normalise_text(text) != "" and _is_writable(text)


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
    """Words and an end; hashable, compared by value.

    Words are what white space separates, see `normalise_text` for their spelling. The end is an end
    mark and the closing signs that follow it. It belongs to no word: word-level models see the mark
    only if it is a word of their vocabulary, sub-word models read the end as part of `text`.

    Raises:
        SentenceError: if there are no words, a word is empty or contains white space, or the end is
            not an end mark with closing signs.
    """

    words: tuple[str, ...]
    end: str = "."

    def __post_init__(self) -> None:
        if not self.words:
            raise SentenceError("A sentence needs at least one word; this text has none.")
        bare = " ".join(self.words)
        if not (bare.isascii() and bare.isprintable() and self.end.isascii()):
            # A frozen dataclass: its fields are normalised once, before anybody sees them. A word
            # of invisible characters, which no text has, stays: positions must not change
            words = tuple(normalise_text(word) or word for word in self.words)
            object.__setattr__(self, "words", words)
            object.__setattr__(self, "end", normalise_text(self.end))
            bare = " ".join(self.words)
        # a word that is empty or holds white space comes back as none or several
        if bare.split() != [*self.words] or not _is_writable(bare):
            word = next(word for word in self.words if not is_word(word))
            raise SentenceError(f"{word!r} is not a word: {WORDS_ARE}.")
        if self.end not in END_MARKS and split_end(bare + self.end) != (bare, self.end):
            raise SentenceError(
                f"end must be an end mark of a sentence, perhaps with closing quotation marks or "
                f"brackets, got {self.end!r} after {bare[-40:]!r}."
            )

    @classmethod
    def parse(cls, text: str) -> Sentence:
        """Read a line of text; it gets a full stop unless it ends in an end mark of its own.

        `Sentence.parse(sentence.text) == sentence` for every sentence.

        Raises:
            SentenceError: if the text has no words, or is not a text but, for example, the null or
                a number of a table.
        """
        if not isinstance(text, str):
            raise SentenceError(f"{shortened(text)} is not a sentence; expected a text with words.")
        text = normalise_text(text).strip()
        last = text[-1:]
        # Nearly all texts end in one of three marks or in a letter
        if text.endswith(END_MARKS):
            bare, end = text[:-1], last
        else:
            bare, end = (text, ".") if last.isalnum() else split_end(text)
        words = tuple(bare.split())
        if not words:
            raise SentenceError(f"A sentence needs at least one word; {text!r} has none.")
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
        """The text as participants read it: without a full stop, with every other end mark."""
        return self.text if _KEPT.search(self._mark_name) else self.bare + self.end[1:]

    @property
    def is_question(self) -> bool:
        """True if the end mark is a question mark of any script."""
        return _ASKS.search(self._mark_name) is not None

    @property
    def _mark_name(self) -> str:
        # In Greek the semicolon is the question mark
        return unicodedata.name(self.end[0].replace(";", "?"), "")

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


# By Unicode's names of end marks; all others are the full stops of their scripts
_ASKS = re.compile("QUESTION|INTERROBANG")
_KEPT = re.compile("QUESTION|INTERROBANG|EXCLAMATION|ELLIPSIS")


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
