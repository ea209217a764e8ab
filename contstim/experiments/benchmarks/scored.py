"""Log-probabilities of a benchmark's sentences, from models or from a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import ScoreError
from contstim.models.scoring import score_sentences
from contstim.scores import ScoreTable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.models.base import LanguageModel
    from contstim.sentence import Sentence
    from contstim.store import Store

_SHOWN = 5


@dataclass(frozen=True)
class LeftOut:
    """A sentence that a model cannot score, for instance because it exceeds the window."""

    sentence: str
    model: str
    reason: str


def score_readable(
    models: Sequence[LanguageModel],
    sentences: Sequence[Sentence],
    *,
    store: Store | None = None,
    progress: Callable[[LanguageModel, int], None] | None = None,
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
    left_out = [
        LeftOut(sentence.text, model.name, reason)
        for model in models
        for sentence, reason in zip(distinct, model.refusals(distinct), strict=True)
        if reason
    ]
    refused = {one.sentence for one in left_out}
    kept = [sentence for sentence in distinct if sentence.text not in refused]
    return score_sentences(models, kept, store=store, progress=progress), left_out


def scores_from_table(table: ScoreTable, sentences: Sequence[Sentence]) -> ScoreTable:
    """The table's scores of the distinct sentences, in the order of their first occurrence.

    Raises:
        ScoreError: the table has no texts, lacks sentences (lists the first ones), or scores one of
            them in two ways.
    """
    if table.sentences is None:
        raise ScoreError("These scores come without sentences; they must have a column 'sentence'.")
    rows = {text: row for row, text in reversed(list(enumerate(table.sentences)))}
    texts = list(dict.fromkeys(sentence.text for sentence in sentences))
    missing = [text for text in texts if text not in rows]
    if missing:
        more = f" and {len(missing) - _SHOWN:,} more" if len(missing) > _SHOWN else ""
        raise ScoreError(
            f"The scores lack {len(missing):,} of {len(texts):,} sentences: "
            f"{'; '.join(map(repr, missing[:_SHOWN]))}{more}. Score them with 'contstim score'."
        )
    for row, text in enumerate(table.sentences):
        if text in rows and not (table.log_probs[row] == table.log_probs[rows[text]]).all():
            raise ScoreError(f"The table scores {text!r} in two ways; keep one of the rows.")
    order = np.array([rows[text] for text in texts], np.int64)
    return ScoreTable(tuple(texts), table.models, table.log_probs[order])
