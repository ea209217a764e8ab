"""Models whose scores are given, or drawn from a seed, and what they say to a search."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import ModelError
from contstim.models.base import Convention, LanguageModel, Replacements
from contstim.models.costs import count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contstim.arrays import FloatArray
    from contstim.sentence import Sentence

SAYS = ("exact", "estimate", "bound")
"""What a `TableModel` can say of replacements."""


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

    @property
    def convention(self) -> Convention:
        """The rule `table`."""
        return Convention("table", "", False, f"table-{self.seed}-{self.says}-{self.draft_error}")

    def number(self, *words: str) -> float:
        """The number of a word or a pair of words, -10 to 0."""
        # A hash and not a generator: the number depends on the words alone, not on when they are
        # asked
        digest = hashlib.sha256(f"{self.seed} {words}".encode()).digest()
        return -10 * int.from_bytes(digest[:4], "big") / 2**32

    def score(self, sentence: Sentence, stop: int | None = None) -> float:
        """The sum over the words up to a position, and their pairs, nats."""
        words = sentence.words[:stop]
        pairs = pairwise(words)
        return sum(map(self.number, words)) + sum(self.number(*pair) / 3 for pair in pairs)

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
        return None if self.draft_error is None else _Draft(self, effort)


class _Draft(TableModel):
    def __init__(self, model: TableModel, effort: int) -> None:
        # The seed of the model itself: a draft differs from it by the error alone, and has none of
        # its own
        super().__init__(model.seed, model.says)
        self.error = (model.draft_error or 0.0) / (1 + effort)

    def score(self, sentence: Sentence, stop: int | None = None) -> float:
        error = self.number("draft", *sentence.words) / 5 + 1  # -1 to 1
        return super().score(sentence, stop) + error * self.error
