"""End marks that are words of a word-level model.

Most word-level models are made from text without punctuation marks and never see the end mark of a
sentence. Others are made from tokenised text, in which the full stop is a word:

    model                   The dog sleeps.  is read as
    has no word `.`         <s> The dog sleeps </s>
    has the word `.`        <s> The dog sleeps . </s>

Such a model reads the first character of each sentence's end as one more word if it is in its
vocabulary. `@no-end-mark` after the file prevents this.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from contstim.models.base import Convention, TokenScore
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

NO_END_MARK = "no-end-mark"
"""The rule of word-level models under which no end mark is a word."""

_SUFFIX = "end-mark"
_LAST_MARK = 0x20000  # no script has an end mark from here on


@dataclass(frozen=True)
class EndMarks:
    """The end marks that a model reads as words.

    Attributes:
        marks: single characters; none for most models.
    """

    marks: frozenset[str] = frozenset()

    @classmethod
    def known_to(cls, holds: Callable[[str], bool]) -> EndMarks:
        """The end marks of all scripts that a model has as words."""
        return cls(frozenset(filter(holds, _all_marks())))

    def read(self, sentence: Sentence) -> Sentence:
        """The sentence as the model reads it: with its end mark as the last word, or as it is."""
        mark = sentence.end[0]
        return Sentence((*sentence.words, mark), sentence.end) if mark in self.marks else sentence

    def read_all(self, sentences: Sequence[Sentence]) -> Sequence[Sentence]:
        """`read` for several sentences."""
        return [self.read(sentence) for sentence in sentences] if self.marks else sentences

    def terms(self, sentence: Sentence, log_probs: Iterable[float]) -> list[TokenScore]:
        """The terms of a sentence's score: its words, its end mark if read, and perhaps `</s>`.

        Args:
            sentence: as given, without its end mark as a word.
            log_probs: of the words of `read`, nats, and of the end of the sentence if scored.
        """
        tokens = (*self.read(sentence).words, "</s>")
        n_words = len(sentence)
        return [
            TokenScore(position if position < n_words else -1, token, float(log_prob))
            for position, (token, log_prob) in enumerate(zip(tokens, log_probs, strict=False))
        ]

    def convention(self, plain: Convention) -> Convention:
        """The convention of the model, with the end mark in its rule and fingerprint if read."""
        if not self.marks:
            return plain
        rule, fingerprint = f"{plain.rule}@{_SUFFIX}", f"{plain.fingerprint}-{_SUFFIX}"
        return replace(plain, rule=rule, fingerprint=fingerprint)


def reads_end_mark(rule: str) -> bool:
    """True if the rule of a convention says that end marks are words."""
    return f"@{_SUFFIX}" in rule


def end_mark_note(name: str, rule: str) -> str:
    """A line for users on a model that reads end marks as words; empty for all other models."""
    if not reads_end_mark(rule):
        return ""
    return (
        f"{name} has end marks such as the full stop as words, so it reads and scores each "
        f"sentence's end mark. Write @{NO_END_MARK} after its file to leave end marks out."
    )


@cache
def _all_marks() -> tuple[str, ...]:
    """Every single character that is the end mark of a sentence, after two Greek letters."""
    characters = (chr(code) for code in range(_LAST_MARK))
    punctuation = (sign for sign in characters if unicodedata.category(sign) == "Po")
    return tuple(sign for sign in punctuation if Sentence.parse(f"αα{sign}").end == sign)
