"""End marks that are words of a word-level model.

Most word-level models are trained on text without punctuation and have no end marks. Others are
trained on tokenised text, in which the full stop is a word:

    model                   The dog sleeps.  is read as
    has no word `.`         <s> The dog sleeps </s>
    has the word `.`        <s> The dog sleeps . </s>

Such a model reads the first character of a sentence's end as an additional word if it is in the
vocabulary. `@no-end-mark` after the file name disables this.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from contstim.models.base import Convention, TokenScore
from contstim.words.sentence import ALL_END_MARKS, Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

NO_END_MARK = "no-end-mark"
"""Rule of word-level models that ignores end marks."""

_SUFFIX = "end-mark"


@dataclass(frozen=True)
class EndMarks:
    """End marks that a model reads as words.

    Attributes:
        marks: single characters; empty for most models.
    """

    marks: frozenset[str] = frozenset()

    @classmethod
    def known_to(cls, holds: Callable[[str], bool]) -> EndMarks:
        """Return the end marks, of all scripts, that are words of a model."""
        return cls(frozenset(filter(holds, ALL_END_MARKS)))

    def with_mark(self, sentence: Sentence) -> Sentence:
        """Return the sentence with its end mark as the last word, if the model reads it."""
        mark = sentence.end[0]
        return Sentence((*sentence.words, mark), sentence.end) if mark in self.marks else sentence

    def with_marks(self, sentences: Sequence[Sentence]) -> Sequence[Sentence]:
        """Apply `with_mark` to several sentences."""
        return [self.with_mark(sentence) for sentence in sentences] if self.marks else sentences

    def terms(self, sentence: Sentence, log_probs: Iterable[float]) -> list[TokenScore]:
        """Return the terms of a sentence's score: words, end mark if read, `</s>` if scored.

        Args:
            sentence: sentence without its end mark as a word.
            log_probs: log-probabilities of the words of `with_mark` and, if scored, of the end of
                the sentence, nats.
        """
        tokens = (*self.with_mark(sentence).words, "</s>")
        n_words = len(sentence)
        return [
            TokenScore(position if position < n_words else -1, token, float(log_prob))
            for position, (token, log_prob) in enumerate(zip(tokens, log_probs, strict=False))
        ]

    def convention(self, plain: Convention) -> Convention:
        """Return the convention; if end marks are read, rule and fingerprint include this."""
        if not self.marks:
            return plain
        rule, fingerprint = f"{plain.rule}@{_SUFFIX}", f"{plain.fingerprint}-{_SUFFIX}"
        return replace(plain, rule=rule, fingerprint=fingerprint)


def reads_end_mark(rule: str) -> bool:
    """Return True if a convention's rule includes end marks as words."""
    return f"@{_SUFFIX}" in rule


def end_mark_note(name: str, rule: str) -> str:
    """Return a note for users if a model reads end marks as words; otherwise empty."""
    if not reads_end_mark(rule):
        return ""
    return (
        f"{name} has end marks such as the full stop as words, so it reads and scores each "
        f"sentence's end mark. Write @{NO_END_MARK} after its file to leave end marks out."
    )
