"""Log-probabilities of a benchmark's sentences, from models or from a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import ScoreError
from contstim.models.scoring import score_sentences
from contstim.scores import ScoreTable
from contstim.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.models.base import Scorer
    from contstim.store import Store

_SHOWN = 5


@dataclass(frozen=True)
class LeftOut:
    """A sentence that a model cannot score, for instance because it exceeds the window."""

    sentence: str
    model: str
    reason: str


def refused_by(models: Sequence[Scorer], sentences: Sequence[Sentence]) -> list[LeftOut]:
    """What models refuse of some sentences, in the order of the models, then of the sentences."""
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
    distinct = list(dict.fromkeys(sentences))
    left_out = refused_by(models, distinct)
    refused = {omission.sentence for omission in left_out}
    kept = [sentence for sentence in distinct if sentence.text not in refused]
    return score_sentences(models, kept, store=store, progress=progress), left_out


def scores_from_table(table: ScoreTable, sentences: Sequence[Sentence]) -> ScoreTable:
    """The table's scores of the distinct sentences, in the order of their first occurrence.

    Raises:
        ScoreError: the table has no texts, lacks sentences (lists the first ones), or scores one of
            them in two ways.
    """
    rows = rows_by_text(table, "The table")
    texts = list(dict.fromkeys(sentence.text for sentence in sentences))
    missing = [text for text in texts if text not in rows]
    if missing:
        more = f" and {len(missing) - _SHOWN:,} more" if len(missing) > _SHOWN else ""
        raise ScoreError(
            f"The scores lack {len(missing):,} of {len(texts):,} sentences: "
            f"{'; '.join(map(repr, missing[:_SHOWN]))}{more}. Score them with 'contstim score'."
        )
    order = np.array([rows[text] for text in texts], np.int64)
    return ScoreTable(tuple(texts), table.models, table.log_probs[order])


def rows_by_text(table: ScoreTable, name: str) -> dict[str, int]:
    """The first row of each sentence, by how it reads (`Sentence.text`).

    Args:
        table: scores.
        name: of the table, for messages.

    Raises:
        ScoreError: the table has no texts, or scores a sentence in two ways.
    """
    if table.sentences is None:
        raise ScoreError(
            f"{name} has scores without sentences; they must have a column 'sentence'."
        )
    rows: dict[str, int] = {}
    for row, sentence in enumerate(table.sentences):
        first = rows.setdefault(Sentence.parse(sentence).text, row)
        if first != row and (table.log_probs[first] != table.log_probs[row]).any():
            raise ScoreError(
                f"{name} scores {sentence!r} in two ways, in rows {first} and {row}: leave one out."
            )
    return rows
