"""Conversion of scores with different units, so that a search can compare two models.

The opponents are the accept model and the reject model of a search. A search compares the scores of
two opponents. Log-probabilities are compared in nats. If the unit
of one scorer is not nats, the search divides each scorer's scores by the standard deviation of the
scorer's scores of natural sentences. A decrease by one standard deviation then has the same weight
for both scorers.
"""

from __future__ import annotations

from math import inf, isfinite, sqrt
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import ModelError
from contstim.models.base import computes_coarsely
from contstim.models.transforms import Transformed
from contstim.wording import grouped

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.files.arrays import FloatArray
    from contstim.models.base import Convention, Scorer
    from contstim.words.sentence import Sentence

NATS_PER_SD = 10.0
"""Number of nats that count as one standard deviation.

The search needs this number because its constants are in nats. Log-probabilities of sentences of
equal length have a standard deviation of about 10 nats.
"""

MAX_SENTENCES = 200
"""Maximum number of natural sentences whose scores determine the standard deviation."""


class Opponent(Transformed):
    """A scorer in a search. Each score is divided by a tenth of a standard deviation.

    Args:
        sd: standard deviation of the scorer's scores of natural sentences.
    """

    _keeps_sizes = True

    def __init__(self, scorer: Scorer, sd: float) -> None:
        super().__init__(scorer, scorer.name)
        self.unit = sd / NATS_PER_SD

    @property
    def convention(self) -> Convention:
        """Convention of the scorer. The unit in it is the unit of the undivided scores."""
        return self._model.convention

    def _sizes(self, sentences: Sequence[Sentence]) -> FloatArray:
        return np.full(len(sentences), self.unit)


def natural_sds(scorers: Sequence[Scorer], sentences: Iterable[Sentence]) -> dict[str, float]:
    """Return the name of each scorer → `pooled_sd` of its scores of natural sentences.

    If the scores of all scorers are in nats, the result is empty.

    Raises:
        ModelError: see `pooled_sd`.
    """
    if all(scorer.convention.is_log_probability for scorer in scorers):
        return {}
    distinct = [*dict.fromkeys(sentences)][:MAX_SENTENCES]
    return {scorer.name: pooled_sd(scorer.name, scores_of(scorer, distinct)) for scorer in scorers}


def scores_of(scorer: Scorer, sentences: Sequence[Sentence]) -> dict[Sentence, float]:
    """Return sentence → score; omit sentences that the scorer cannot score.

    If the scorer computes with less precision than float32, its weights are converted to float32.
    """
    reasons = scorer.unscorable(sentences)
    scorable = [s for s, reason in zip(sentences, reasons, strict=True) if reason is None]
    is_coarse = computes_coarsely((scorer,))
    scores = scorer.float32_scores(scorable) if is_coarse else scorer.scores(scorable)
    return dict(zip(scorable, scores.tolist(), strict=True))


def pooled_sd(name: str, scores: Mapping[Sentence, float]) -> float:
    """Return the pooled standard deviation of scores within groups of natural sentences.

    Each group contains the sentences with the same number of words. Infinite scores are ignored.

    Raises:
        ModelError: if the scores do not vary, or too few sentences have equal length.
    """
    finite = [(len(sentence), score) for sentence, score in scores.items() if isfinite(score)]
    groups = [np.array(group) for _, group in sorted(grouped(finite).items())]
    n_free = sum(len(group) - 1 for group in groups)
    squares = sum(float(np.square(group - group.mean()).sum()) for group in groups)
    sd = sqrt(squares / n_free) if n_free else 0.0
    if not 0 < sd < inf:
        raise ModelError(
            f"The scores of natural sentences under {name} must vary, got the standard deviation "
            f"{sd:g} among {len(finite)} sentences. Use several natural sentences with the same "
            "number of words."
        )
    return sd
