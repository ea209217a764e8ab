"""The scores that are compared: from tables, from models, or from both; one table from several."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError, ScoreError
from contstim.evaluation.benchmark_scores import score_readable
from contstim.scores import ScoreTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contstim.models.base import Scorer
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
        reasons = {o.sentence: f"{o.model}: {o.reason}" for o in refused}
    table, lacks = join_tables(given)
    # a model's own reason tells more than that its table lacks the sentence, and comes first
    for name, texts_lacking in lacks.items():
        for text in texts_lacking:
            reasons.setdefault(text, f"not among the sentences of {name}")
    return table, reasons


def join_tables(tables: Mapping[str, ScoreTable]) -> tuple[ScoreTable, dict[str, tuple[str, ...]]]:
    """The sentences that every table has, in the order of the first; and what each table lacks.

    Sentences are the same if they read the same (`Sentence.text`). A model that several tables
    have is called `table:model`.

    Args:
        tables: by a name each, such as the file's.

    Returns:
        The joined table, and by table the sentences that others have and it lacks.

    Raises:
        ScoreError: a table comes without sentences, or fewer than two sentences are common.
    """
    for name, table in tables.items():
        if table.sentences is None:
            raise ScoreError(
                f"{name} has scores without sentences; they must have a column 'sentence'."
            )
    # in the order of the first table, then what further tables add
    every = dict.fromkeys(sentence for table in tables.values() for sentence in table.rows)
    lacks = {
        name: tuple(sentence.text for sentence in every if sentence not in table.rows)
        for name, table in tables.items()
    }
    # ranks and agreement are of the same sentences under every model, so only common ones count
    common = [s for s in every if all(s in table.rows for table in tables.values())]
    if len(common) < 2:
        raise ScoreError(
            f"The tables have {len(common)} of {len(every):,} sentences in common; a comparison "
            f"needs two or more. Score the same sentences with 'contstim score'."
        )
    # columns of the same name would be one in the joined table: the file's name tells them apart
    times = Counter(model for table in tables.values() for model in table.models)
    columns = {
        f"{name}:{model}" if times[model] > 1 else model: table.column(model)[table.rows_of(common)]
        for name, table in tables.items()
        for model in table.models
    }
    scores = np.stack(list(columns.values()), axis=1)
    return ScoreTable(tuple(common), tuple(columns), scores), lacks
