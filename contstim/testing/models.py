"""Models for tests, which need no download.

    MockModel     the test gives the score of each sentence
    TableModel    random scores of words and of word pairs
    ToyModel      random probabilities of letter pairs

A replacement is a sentence in which one word is replaced; searches compare many replacements.
"""

from __future__ import annotations

import hashlib
import string
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import ModelError
from contstim.models.base import Continuation, Convention, LanguageModel, Replacements, TokenScore
from contstim.models.costs import count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contstim.files.arrays import BoolArray, FloatArray, IntArray
    from contstim.words.sentence import Sentence

SAYS = ("exact", "estimate", "bound")
"""Kinds of information that a `TableModel` can give about replacements."""

LETTERS = string.ascii_letters + string.digits + "'-"
_OTHER, _SPACE, _BOUNDARY = len(LETTERS), len(LETTERS) + 1, len(LETTERS) + 2
_NUMBERS = {letter: number for number, letter in enumerate(LETTERS)}
# Typical probability of a space after a letter, and of the end of the sentence after a letter
_END_PROBABILITY = 0.15


class MockModel(LanguageModel):
    """Model whose scores a test defines; it gives no information about replacements.

    Args:
        log_probs: log-probabilities of sentences, nats, or a function that returns the
            log-probability of a sentence.
        name: name in columns and files; models with different scores need different names.

    Attributes:
        scored_sentences: scored sentences, in order.
    """

    def __init__(
        self, log_probs: Mapping[Sentence, float] | Callable[[Sentence], float], name: str = "mock"
    ) -> None:
        self.name = name
        self.scored_sentences: list[Sentence] = []
        self._log_probs = log_probs

    @property
    def convention(self) -> Convention:
        """Scoring rule and fingerprint, which identifies the model and depends only on its name."""
        return Convention("given", "", False, f"mock-{self.name}")

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.log_probs`.

        Raises:
            ModelError: if a sentence has no score.
        """
        if reasons := list(filter(None, self.unscorable(sentences))):
            raise ModelError(reasons[0])
        self.scored_sentences += sentences
        source = self._log_probs
        scores = map(source if callable(source) else source.__getitem__, sentences)
        return np.fromiter(scores, np.float64, len(sentences))

    def unscorable(self, sentences: Sequence[Sentence]) -> list[str | None]:
        """See `Scorer.unscorable`: a sentence is unscorable if the test gives no score for it."""
        source = self._log_probs
        return [
            None
            if callable(source) or sentence in source
            else f"{self.name} was given no score for {sentence.text!r}."
            for sentence in sentences
        ]


class TableModel(LanguageModel):
    """Model whose score is a sum of random numbers.

    Each word has a number, and each pair of adjacent words has a number.

    Args:
        seed: seed of the numbers; models with different seeds disagree.
        says: information about replacements. `exact`: exact scores. `estimate`: the random number
            of the new word, as an estimate. `bound`: the sum of the random numbers up to the new
            word, as an upper bound of the score; left-to-right models have similar bounds.
        draft_error: maximum error of the scores of a draft with effort 0, nats; None for no draft.
            A draft is a cheaper model that estimates the scores; more effort reduces the errors.

    Attributes:
        scored_sentences: sentences scored by `log_probs`, in order.

    Raises:
        ModelError: if `says` is not in `SAYS`.
    """

    def __init__(self, seed: int, says: str = "exact", draft_error: float | None = None) -> None:
        if says not in SAYS:
            raise ModelError(f"says must be one of {', '.join(SAYS)}, got {says!r}.")
        self.name = f"table {seed} {says}"
        self.seed, self.says, self.draft_error = seed, says, draft_error
        self.scored_sentences: list[Sentence] = []
        self._error = 0.0

    @property
    def convention(self) -> Convention:
        """See `Scorer.convention`."""
        return Convention("table", "", False, f"table-{self.seed}-{self.says}-{self.draft_error}")

    def number(self, *words: str) -> float:
        """Return the random number of a word or a pair of words, from -10 to 0."""
        return _number(self.seed, words)

    def score(self, sentence: Sentence, stop: int | None = None) -> float:
        """Return the score of the words before position `stop` (by default all words), nats."""
        words = sentence.words[:stop]
        pairs = pairwise(words)
        total = sum(map(self.number, words)) + sum(self.number(*pair) / 3 for pair in pairs)
        if self._error:
            # The factor is from -1 to 1
            total += (self.number("draft", *sentence.words) / 5 + 1) * self._error
        return total

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.log_probs`."""
        self.scored_sentences += sentences
        count(len(sentences), sum(map(len, sentences)))
        return np.array([self.score(sentence) for sentence in sentences], np.float64)

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        """See `LanguageModel.replacements`."""
        sentence.check_position(position)
        changed = [sentence.replace(position, word) for word in words]
        unknown = np.full(len(words), np.nan)
        if self.says == "exact":
            return Replacements.all_exact(np.array([self.score(s) for s in changed], np.float64))
        # Count the cost of one sequence: a network would process the sentence once
        count(1, len(sentence))
        if self.says == "estimate":
            numbers = np.array([self.number(word) for word in words], np.float64)
            return Replacements(unknown, numbers, np.full(len(words), np.inf))
        # An upper bound, because the numbers of later words are negative
        bound = np.array([self.score(s, position + 1) for s in changed], np.float64)
        return Replacements(unknown, bound, bound, self.score(sentence, position))

    def draft(self, effort: int = 1) -> LanguageModel | None:
        """See `LanguageModel.draft`; the error is proportional to 1 / (1 + effort)."""
        if self.draft_error is None:
            return None
        draft = TableModel(self.seed, self.says)
        draft._error = self.draft_error / (1 + effort)
        return draft


@lru_cache(2**16)  # searches use the same words repeatedly
def _number(seed: int, words: tuple[str, ...]) -> float:
    # A hash, because the number must not depend on the order of calls
    digest = hashlib.sha256(f"{seed} {words}".encode()).digest()
    return -10 * int.from_bytes(digest[:4], "big") / 2**32


class ToyModel(LanguageModel):
    """Letter bigram model with random probabilities.

    The probabilities of all possible sentences add up to 1.

    It scores the letters, the spaces between words, and the end of the sentence. It ignores the end
    mark, for example a full stop. All characters outside `LETTERS` count as the same letter. The
    upper bound of a replacement is the log-probability of the words up to the new word, as in
    left-to-right models.

    Args:
        seed: seed of the probabilities; models with different seeds disagree.
        name: name of the model; by default `toy` and the seed.
    """

    def __init__(self, seed: int = 0, name: str | None = None) -> None:
        self.name = name or f"toy {seed}"
        self._log_probs = _transitions(seed)

    @property
    def convention(self) -> Convention:
        """See `Scorer.convention`."""
        digest = hashlib.sha256(self._log_probs.tobytes()).hexdigest()
        return Convention("log-likelihood", "<s>", True, f"toy-{digest[:24]}")

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.log_probs`."""
        count(len(sentences), sum(len(sentence.bare) for sentence in sentences))
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
        """See `LanguageModel.replacements`."""
        sentence.check_position(position)
        count(1, len(sentence.bare))
        prefix_text = " ".join(sentence.words[:position])
        prefix = self._sum((_BOUNDARY, *_spell(prefix_text)))
        space, last = (" ", prefix_text[-1:]) if prefix_text else ("", "")
        starts = _spell(last) or (_BOUNDARY,)
        # The first transition of a word starts at the last character of the prefix
        log_probs = [self._sum((*starts, *_spell(space + word))) for word in words]
        bounds = prefix + np.array(log_probs, np.float64)
        return Replacements(np.full(len(words), np.nan), bounds, bounds, prefix)

    def knows(self, words: Sequence[str]) -> BoolArray:
        """See `Scorer.knows`: words of which all characters are in `LETTERS`."""
        return np.array([_NUMBERS.keys() >= set(word) for word in words], np.bool_)

    def tokens_per_word(self, words: Sequence[str], *, initial: bool) -> IntArray:
        """See `Scorer.tokens_per_word`: the letters, and the space before the word."""
        return np.array([len(word) + (not initial) for word in words], np.int64)

    def _terms(self, sentence: Sentence) -> list[TokenScore]:
        tokens = [*sentence.bare, "</s>"]
        # A space belongs to the word after it
        word_indices = np.cumsum([token == " " for token in tokens]).tolist()
        numbers = (_BOUNDARY, *_spell(sentence.bare), _BOUNDARY)
        terms = self._log_probs[numbers[:-1], numbers[1:]].tolist()
        word_indices[-1] = -1  # the end belongs to no word
        return [TokenScore(*term) for term in zip(word_indices, tokens, terms, strict=True)]

    def _sum(self, numbers: tuple[int, ...]) -> float:
        return float(self._log_probs[numbers[:-1], numbers[1:]].sum())


def _spell(text: str) -> tuple[int, ...]:
    return tuple(_SPACE if sign == " " else _NUMBERS.get(sign, _OTHER) for sign in text)


def _transitions(seed: int) -> FloatArray:
    """Draw log p(next character | character), (n, n), nats.

    A boundary is the start or the end of a sentence. After a space or a boundary, only letters have
    positive probabilities.
    """
    rng = np.random.default_rng(seed)
    n_letters = len(LETTERS) + 1
    # Rows: previous character (letters, other characters, space, boundary). Columns: next letter
    weights = np.exp(2 * rng.standard_normal((_BOUNDARY + 1, n_letters)))
    probabilities = np.zeros((_BOUNDARY + 1, _BOUNDARY + 1))
    probabilities[:, :n_letters] = weights / weights.sum(axis=1, keepdims=True)
    # After a letter, the word or the sentence can end
    end_probabilities = rng.uniform(_END_PROBABILITY / 2, 2 * _END_PROBABILITY, (n_letters, 2))
    probabilities[:n_letters, :n_letters] *= 1 - end_probabilities.sum(axis=1, keepdims=True)
    probabilities[:n_letters, [_SPACE, _BOUNDARY]] = end_probabilities
    with np.errstate(divide="ignore"):
        log_probs: FloatArray = np.log(probabilities)
    return log_probs
