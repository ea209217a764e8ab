"""Models for tests of your own, without a download: scores that are given, drawn, or spelled."""

from __future__ import annotations

import hashlib
import string
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import ModelError
from contstim.models.base import Convention, LanguageModel, Replacements, TokenScore
from contstim.models.costs import count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contstim.files.arrays import BoolArray, FloatArray, IntArray
    from contstim.models.base import Continuation
    from contstim.words.sentence import Sentence

SAYS = ("exact", "estimate", "bound")
"""What a `TableModel` can say of replacements."""

LETTERS = string.ascii_letters + string.digits + "'-"
_OTHER, _SPACE, _BOUNDARY = len(LETTERS), len(LETTERS) + 1, len(LETTERS) + 2
_NUMBERS = {letter: number for number, letter in enumerate(LETTERS)}
_ENDS = 0.15  # how likely a word ends after any of its letters, and a sentence with it


class MockModel(LanguageModel):
    """Scores that a test gives; of replacements it knows nothing.

    Args:
        given: the log-probability of each sentence, or a function from sentences to them.
        name: names columns and files; two models with one name and other scores need two.

    Attributes:
        asked: the sentences that were scored, in order.
    """

    def __init__(
        self, given: Mapping[Sentence, float] | Callable[[Sentence], float], name: str = "mock"
    ) -> None:
        self.name = name
        self.asked: list[Sentence] = []
        self._given = given

    @property
    def convention(self) -> Convention:
        """The rule `given`; the fingerprint is made from the name."""
        return Convention("given", "", False, f"mock-{self.name}")

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.log_probs`.

        Raises:
            ModelError: a sentence has no score.
        """
        for sentence, reason in zip(sentences, self.unscorable(sentences), strict=True):
            if reason is not None:
                raise ModelError(reason)
            self.asked.append(sentence)
        given = self._given
        scores = map(given if callable(given) else given.__getitem__, sentences)
        return np.fromiter(scores, np.float64, len(sentences))

    def unscorable(self, sentences: Sequence[Sentence]) -> list[str | None]:
        """See `Scorer.unscorable`: sentences without a score."""
        given = self._given
        return [
            None
            if callable(given) or sentence in given
            else f"{self.name} was given no score for {sentence.text!r}."
            for sentence in sentences
        ]


class TableModel(LanguageModel):
    """Each word and each pair of neighbours has a number drawn from a seed; their sum is the score.

    Args:
        seed: two models with different seeds disagree.
        says: what it says of replacements: everything (`exact`), the words' own numbers
            (`estimate`), or the sum over the words up to the position (`bound`), as a model that
            reads from left to right would.
        draft_error: by how much the scores of its draft are off, nats, at most; None for no draft.

    Attributes:
        asked: the sentences that were scored, in order.

    Raises:
        ModelError: it cannot say that.
    """

    def __init__(self, seed: int, says: str = "exact", draft_error: float | None = None) -> None:
        if says not in SAYS:
            raise ModelError(f"A TableModel says one of {', '.join(SAYS)}, not {says!r}.")
        self.name = f"table {seed} {says}"
        self.seed, self.says, self.draft_error = seed, says, draft_error
        self.asked: list[Sentence] = []
        self._error = 0.0

    @property
    def convention(self) -> Convention:
        """The rule `table`."""
        return Convention("table", "", False, f"table-{self.seed}-{self.says}-{self.draft_error}")

    def number(self, *words: str) -> float:
        """The number of a word or a pair of words, -10 to 0."""
        return _number(self.seed, words)

    def score(self, sentence: Sentence, stop: int | None = None) -> float:
        """The sum over the words up to a position, and their pairs, nats."""
        words = sentence.words[:stop]
        pairs = pairwise(words)
        total = sum(map(self.number, words)) + sum(self.number(*pair) / 3 for pair in pairs)
        if self._error:
            # -1 to 1, times the error
            total += (self.number("draft", *sentence.words) / 5 + 1) * self._error
        return total

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.log_probs`."""
        self.asked += sentences
        count(len(sentences), sum(map(len, sentences)))
        return np.array([self.score(sentence) for sentence in sentences], np.float64)

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        """See `LanguageModel.replacements`."""
        sentence.check_position(position)
        changed = [sentence.replace(position, word) for word in words]
        unknown = np.full(len(words), np.nan)
        if self.says == "exact":
            return Replacements.all_exact(np.array([self.score(s) for s in changed], np.float64))
        # Exact answers come from a table; an estimate or a bound costs one pass, as with a network
        count(1, len(sentence))
        if self.says == "estimate":
            numbers = np.array([self.number(word) for word in words], np.float64)
            return Replacements(unknown, numbers, np.full(len(words), np.inf))
        # All numbers are negative, so that leaving out the words behind the position gives a bound
        # from above
        bound = np.array([self.score(s, position + 1) for s in changed], np.float64)
        return Replacements(unknown, bound, bound, self.score(sentence, position))

    def draft(self, effort: int = 1) -> LanguageModel | None:
        """See `LanguageModel.draft`; twice the effort, about half the error."""
        if self.draft_error is None:
            return None
        # A draft differs from the model by the error alone, and has none of its own
        draft = TableModel(self.seed, self.says)
        draft._error = self.draft_error / (1 + effort)
        return draft


@lru_cache(2**16)  # searches ask for the same words again and again
def _number(seed: int, words: tuple[str, ...]) -> float:
    # A hash and not a generator: the number depends on the words alone, not on when they are asked
    digest = hashlib.sha256(f"{seed} {words}".encode()).digest()
    return -10 * int.from_bytes(digest[:4], "big") / 2**32


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
