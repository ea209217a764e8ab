"""The scores that are compared: from tables, from models, or from both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.evaluation.comparison.joining import join_tables
from contstim.evaluation.scored import score_readable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contstim.models.base import Scorer
    from contstim.scores import ScoreTable
    from contstim.sentence import Sentence
    from contstim.store import Store

_MODELS = "models"


def gather(
    tables: Mapping[str, ScoreTable],
    models: Sequence[Scorer] = (),
    sentences: Sequence[Sentence] | None = None,
    *,
    store: Store | None = None,
    progress: Callable[[Scorer, int], None] | None = None,
) -> tuple[ScoreTable, dict[str, str]]:
    """One table of all models on the sentences that all have, and what was left out and why.

    Args:
        tables: scores by a name each.
        models: scored here.
        sentences: for the models; those of the tables where there are none.
        store: see `score_sentences`.
        progress: see `score_sentences`.

    Raises:
        InputError: fewer than two models in all, or models without sentences.
        ScoreError: see `join_tables`.
        ModelError, StoreError: see `score_sentences`.
    """
    named = [name for table in tables.values() for name in table.models]
    named += [model.name for model in models]
    if len(named) < 2:
        raise InputError(
            f"A comparison needs two models or more; here is {', '.join(named) or 'none'}. Give "
            f"--model twice or tables of scores with two columns of scores."
        )
    reasons: dict[str, str] = {}
    given = dict(tables)
    if models:
        scored = (sentence for table in tables.values() for sentence in table.sentences or ())
        chosen = sentences if sentences is not None else list(scored)
        if not chosen:
            raise InputError("Models need sentences to score: give --sentences.")
        given[_MODELS], refused = score_readable(models, chosen, store=store, progress=progress)
        reasons = {one.sentence: f"{one.model}: {one.reason}" for one in refused}
    table, lacks = join_tables(given)
    for name, texts_lacking in lacks.items():
        for text in texts_lacking:
            reasons.setdefault(text, f"not among the sentences of {name}")
    return table, reasons
