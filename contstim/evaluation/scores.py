"""Scores of a benchmark's sentences: those that every model can read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contstim.models.scoring import score_sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.models.base import Scorer
    from contstim.scores import ScoreTable
    from contstim.sentence import Sentence
    from contstim.store import Store


@dataclass(frozen=True)
class LeftOut:
    """A sentence that a model cannot score, for instance because it exceeds the window."""

    sentence: str
    model: str
    reason: str


def refused_by(models: Sequence[Scorer], sentences: Sequence[Sentence]) -> list[LeftOut]:
    """Sentences that models refuse, in the order of the models, then of the sentences."""
    return [
        LeftOut(sentence.text, model.name, reason)
        for model in models
        for sentence, reason in zip(sentences, model.unscorable(sentences), strict=True)
        if reason
    ]


def score_readable(
    models: Sequence[Scorer],
    sentences: Sequence[Sentence],
    *,
    store: Store | None = None,
    progress: Callable[[Scorer, int], None] | None = None,
) -> tuple[ScoreTable, list[LeftOut]]:
    """Scores of the distinct sentences that every model can score, and what was left out.

    A sentence that one model refuses is left out for all, so that models are compared on the same
    sentences.

    Args:
        models: one column each.
        sentences: in any order, repeated or not; rows follow their first occurrence.
        store: see `score_sentences`.
        progress: see `score_sentences`.

    Raises:
        ModelError, ScoreError, StoreError: see `score_sentences`.
    """
    # asked before anything is scored, so that no time is spent on what is left out
    distinct = list(dict.fromkeys(sentences))
    left_out = refused_by(models, distinct)
    refused = {omission.sentence for omission in left_out}
    readable = [sentence for sentence in distinct if sentence.text not in refused]
    return score_sentences(models, readable, store=store, progress=progress), left_out
