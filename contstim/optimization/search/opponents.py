"""Scorers with different units as opponents in a search.

Two log-probabilities are compared in nats. If the scores of a scorer have another unit, a search
divides the scores of both sides by their standard deviations over natural sentences. A decrease of
either score by one standard deviation then has the same weight.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Self

import numpy as np

from contstim.errors import ModelError
from contstim.models.base import LanguageModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.files.arrays import BoolArray, FloatArray, IntArray
    from contstim.models.base import Convention, Replacements, Scorer
    from contstim.words.sentence import Sentence

NATS_PER_SD = 10.0
"""Number of nats that count as a standard deviation, because constants of a search are in nats.

Log-probabilities of sentences of equal length have a standard deviation of about 10 nats.
"""

MAX_SENTENCES = 200
"""Maximum number of natural sentences whose scores determine the standard deviation."""


class Opponent(LanguageModel):
    """A scorer in a search: its scores divided by a tenth of a standard deviation.

    Args:
        sd: standard deviation of its scores of natural sentences.
    """

    def __init__(self, scorer: Scorer, sd: float) -> None:
        self.name, self.scorer, self._sd = scorer.name, scorer, sd
        self.cheap_replacements = scorer.cheap_replacements
        self.reports_passes, self.is_black_box = scorer.reports_passes, scorer.is_black_box
        self.unit = sd / NATS_PER_SD

    @property
    def convention(self) -> Convention:
        """Convention of the scorer, with the unit of its unscaled scores."""
        return self.scorer.convention

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """Return scaled scores, (n_sentences,)."""
        return self.scorer.scores(sentences) / self.unit

    def float32_log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """Return scaled scores with float32 weights, (n_sentences,)."""
        return self.scorer.float32_scores(sentences) / self.unit

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        """See `Scorer.replacements`; scaled."""
        values = self.scorer.replacements(sentence, position, words)
        return values.map_scores(lambda scores: scores / self.unit)

    def replacement_log_probs(
        self, sentence: Sentence, position: int, words: Sequence[str]
    ) -> FloatArray:
        """See `Scorer.replacement_scores`; scaled."""
        return self.scorer.replacement_scores(sentence, position, words) / self.unit

    def draft(self, effort: int = 1) -> Self | None:
        """See `Scorer.draft`."""
        draft = self.scorer.draft(effort)
        return None if draft is None else type(self)(draft, self._sd)

    def for_another_search(self) -> Self:
        """See `Scorer.for_another_search`."""
        return type(self)(self.scorer.for_another_search(), self._sd)

    def forget_prefixes(self) -> None:
        """See `Scorer.forget_prefixes`."""
        self.scorer.forget_prefixes()

    def n_parameters(self) -> int | None:
        """See `Scorer.n_parameters`."""
        return self.scorer.n_parameters()

    def knows(self, words: Sequence[str]) -> BoolArray:
        """See `Scorer.knows`."""
        return self.scorer.knows(words)

    def tokens_per_word(self, words: Sequence[str], *, initial: bool) -> IntArray | None:
        """See `Scorer.tokens_per_word`."""
        return self.scorer.tokens_per_word(words, initial=initial)


def natural_sd(scorer: Scorer, sentences: Iterable[Sentence]) -> float:
    """Return the pooled standard deviation of scores of natural sentences of equal length.

    Sentences that the scorer cannot score are ignored.

    Raises:
        ModelError: if the scores do not vary, or there are not enough sentences of equal length.
    """
    distinct = list(dict.fromkeys(sentences))
    reasons = scorer.unscorable(distinct)
    scorable = [s for s, reason in zip(distinct, reasons, strict=True) if reason is None]
    return pooled_sd(scorer.name, scorable, scorer.float32_scores(scorable))


def pooled_sd(name: str, sentences: Sequence[Sentence], scores: FloatArray) -> float:
    """Return the pooled standard deviation of given scores; see `natural_sd`.

    Infinite scores are ignored.
    """
    rows = sorted(np.flatnonzero(np.isfinite(scores)).tolist(), key=lambda row: len(sentences[row]))
    groups = [scores[[*group]] for _, group in groupby(rows, lambda row: len(sentences[row]))]
    n_free = sum(len(group) - 1 for group in groups)
    squares = sum(float(np.square(group - group.mean()).sum()) for group in groups)
    sd = np.sqrt(squares / n_free) if n_free else 0.0
    if not 0 < sd < np.inf:
        raise ModelError(
            f"The scores of natural sentences under {name} must vary, got the standard deviation "
            f"{sd:g} among {len(rows)} sentences. Use several natural sentences with the same "
            "number of words."
        )
    return float(sd)
