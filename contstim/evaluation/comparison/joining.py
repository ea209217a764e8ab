"""One table of scores from several, on the sentences that all of them have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import ScoreError
from contstim.scores import ScoreTable

if TYPE_CHECKING:
    from collections.abc import Mapping


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
    rows = {name: table.rows for name, table in tables.items()}
    every = dict.fromkeys(sentence for own in rows.values() for sentence in own)
    lacks = {name: tuple(s.text for s in every if s not in own) for name, own in rows.items()}
    common = [sentence for sentence in every if all(sentence in own for own in rows.values())]
    if len(common) < 2:
        raise ScoreError(
            f"The tables have {len(common)} of {len(every):,} sentences in common; a comparison "
            f"needs two or more. Score the same sentences with 'contstim score'."
        )
    columns = {
        _name(name, model, tables): table.column(model)[table.rows_of(common)]
        for name, table in tables.items()
        for model in table.models
    }
    scores = np.stack(list(columns.values()), axis=1)
    return ScoreTable(tuple(common), tuple(columns), scores), lacks


def _name(table: str, model: str, tables: Mapping[str, ScoreTable]) -> str:
    return f"{table}:{model}" if sum(model in t.models for t in tables.values()) > 1 else model
