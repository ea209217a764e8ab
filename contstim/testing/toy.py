"""A language model of letters: tiny, without a download, and a true distribution over sentences."""

from __future__ import annotations

import hashlib
import string
from typing import TYPE_CHECKING

import numpy as np

from contstim.models.base import Convention, LanguageModel, Replacements, TokenScore
from contstim.models.costs import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.models.base import Continuation
    from contstim.sentence import Sentence

LETTERS = string.ascii_letters + string.digits + "'-"
_OTHER, _SPACE, _BOUNDARY = len(LETTERS), len(LETTERS) + 1, len(LETTERS) + 2
_NUMBERS = {letter: number for number, letter in enumerate(LETTERS)}
_ENDS = 0.15  # how likely a word ends after any of its letters, and a sentence with it


class ToyModel(LanguageModel):
    """Each letter given the one before it, with probabilities drawn from a seed.

    Words are spelled one after the other, a space before each but the first, and the end of the
    sentence follows the last; the end mark is not scored. The probabilities of all sentences add up
    to 1. Characters outside `LETTERS` count as one letter. The words before a position bound the
    score from above, as in models that read from left to right.

    Args:
        seed: two models with different seeds disagree.
        name: by default `toy` and the seed.
    """

    def __init__(self, seed: int = 0, name: str | None = None) -> None:
        self.name = name or f"toy {seed}"
        self._log_probs = _transitions(seed)

    @property
    def convention(self) -> Convention:
        """A sum over letters, from the boundary to the boundary."""
        digest = hashlib.sha256(self._log_probs.tobytes()).hexdigest()
        return Convention("log-likelihood", "<s>", True, f"toy-{digest[:24]}")

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.log_probs`."""
        count(len(sentences), sum(len(sentence.bare) for sentence in sentences))
        # The boundary begins the sentence and ends it
        totals = (self._sum((_BOUNDARY, *_spell(s.bare), _BOUNDARY)) for s in sentences)
        return np.fromiter(totals, np.float64, len(sentences))

    def token_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """See `LanguageModel.token_log_probs`: a term for each letter, space and `</s>`."""
        return [self._terms(sentence) for sentence in sentences]

    def continuation_log_probs(self, continuations: Sequence[Continuation]) -> FloatArray:
        """See `LanguageModel.continuation_log_probs`."""
        totals = (
            sum(term.log_prob for term in self._terms(sentence) if term.word >= start)
            for sentence, start in continuations
        )
        return np.fromiter(totals, np.float64, len(continuations))

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        """See `LanguageModel.replacements`; upper bounds from the words before the position."""
        sentence.check_position(position)
        count(1, len(sentence.bare))
        before = " ".join(sentence.words[:position])
        prefix = self._sum((_BOUNDARY, *_spell(before)))
        space, last = (" ", before[-1:]) if before else ("", "")
        starts = _spell(last) or (_BOUNDARY,)
        # From the last sign before the word, so that prefix and own term add up without an overlap
        own = [self._sum((*starts, *_spell(space + word))) for word in words]
        bounds = prefix + np.array(own, np.float64)
        return Replacements(np.full(len(words), np.nan), bounds, bounds, prefix)

    def knows(self, words: Sequence[str]) -> BoolArray:
        """See `Scorer.knows`: words of `LETTERS` alone."""
        return np.array([_NUMBERS.keys() >= set(word) for word in words], np.bool_)

    def tokens_per_word(self, words: Sequence[str], *, initial: bool) -> IntArray:
        """See `Scorer.tokens_per_word`: its letters, and the space before it."""
        return np.array([len(word) + (not initial) for word in words], np.int64)

    def _terms(self, sentence: Sentence) -> list[TokenScore]:
        tokens = [*sentence.bare, "</s>"]
        # A space belongs to the word that it begins: its own place is where the count goes up
        places = np.cumsum([token == " " for token in tokens]).tolist()
        numbers = (_BOUNDARY, *_spell(sentence.bare), _BOUNDARY)
        terms = self._log_probs[numbers[:-1], numbers[1:]].tolist()
        # -1: the end belongs to no word
        return [TokenScore(*term) for term in zip([*places[:-1], -1], tokens, terms, strict=True)]

    def _sum(self, numbers: tuple[int, ...]) -> float:
        return float(self._log_probs[numbers[:-1], numbers[1:]].sum())


def _spell(text: str) -> tuple[int, ...]:
    return tuple(_SPACE if sign == " " else _NUMBERS.get(sign, _OTHER) for sign in text)


def _transitions(seed: int) -> FloatArray:
    """Log p(next | letter), (n_signs, n_signs), nats; spaces and boundaries begin a word."""
    rng = np.random.default_rng(seed)
    n_letters = len(LETTERS) + 1
    # Rows: the sign before (letters, others, space, boundary). Columns: the letter that follows
    weights = np.exp(2 * rng.standard_normal((_BOUNDARY + 1, n_letters)))
    probabilities = np.zeros((_BOUNDARY + 1, _BOUNDARY + 1))
    probabilities[:, :n_letters] = weights / weights.sum(axis=1, keepdims=True)
    # After a letter a word may end, then the sentence with it or not; after a space it may not
    ends = rng.uniform(_ENDS / 2, 2 * _ENDS, (n_letters, 2))
    probabilities[:n_letters, :n_letters] *= 1 - ends.sum(axis=1, keepdims=True)
    probabilities[:n_letters, [_SPACE, _BOUNDARY]] = ends
    with np.errstate(divide="ignore"):
        log_probs: FloatArray = np.log(probabilities)
    return log_probs
