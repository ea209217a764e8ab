"""The words that may stand at a position: those of the vocabulary that every constraint allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import VocabularyError

if TYPE_CHECKING:
    from contstim.arrays import BoolArray
    from contstim.optimization.search.constraints import Constraint
    from contstim.sentence import Sentence
    from contstim.vocabulary import Vocabulary


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

    def words(self, position: int) -> tuple[str, ...]:
        """All words that may stand at a 0-based position of some sentence."""
        return self.vocabulary.at(position)

    def allowed(self, sentence: Sentence, position: int) -> BoolArray:
        """Which of `words(position)` may replace the word there, itself excepted, (n_words,)."""
        words = self.words(position)
        allowed = np.ones(len(words), np.bool_)
        for constraint in self.constraints:
            allowed &= constraint.allowed(self.natural, sentence, position, words)
        own = sentence.words[position]
        if own in words:
            allowed[words.index(own)] = False
        return allowed

    @property
    def positions(self) -> tuple[int, ...]:
        """The 0-based positions that are not fixed."""
        every = range(len(self.natural))
        return tuple(p for p in every if not any(c.fixes(p) for c in self.constraints))

    def check(self) -> None:
        """Refuse a natural sentence that has a position without any other admissible word.

        Raises:
            VocabularyError: names the position.
        """
        if not self.positions:
            raise VocabularyError(f"All positions of {self.natural.text!r} are fixed.")
        for position in self.positions:
            if not self.allowed(self.natural, position).any():
                raise VocabularyError(
                    f"No word of the vocabulary may replace {self.natural.words[position]!r}, word "
                    f"{position + 1} of {self.natural.text!r}, under the constraints given. Fix "
                    f"that position, loosen them, or give more words."
                )

    def broken(self, sentence: Sentence) -> list[str]:
        """What is wrong with a finished sentence, vocabulary included; empty if nothing is."""
        missing = self.vocabulary.missing(sentence)
        faults = [f"words outside the vocabulary: {', '.join(missing)}"] if missing else []
        judged = (constraint.broken(self.natural, sentence) for constraint in self.constraints)
        return faults + [fault for fault in judged if fault]
