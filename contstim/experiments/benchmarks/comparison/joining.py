"""One table of scores from several, on the sentences that all of them have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import ScoreError
from contstim.scores import ScoreTable
from contstim.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contstim.arrays import FloatArray


def join_tables(tables: Mapping[str, ScoreTable]) -> tuple[ScoreTable, dict[str, tuple[str, ...]]]:
    """The sentences that every table has, in the order of the first; and what each table lacks.

    Sentences are the same if they read the same (`Sentence.text`). A model that several tables
    have is called `table:model`.

    Args:
        tables: by a name each, such as the file's.

    Returns:
        The joined table, and by table the sentences that others have and it lacks.

    Raises:
        ScoreError: a table comes without sentences or scores a sentence in two ways, or fewer than
            two sentences are common.
    """
    rows = {name: _rows(name, table) for name, table in tables.items()}
    every = dict.fromkeys(text for own in rows.values() for text in own)
    lacks = {name: tuple(t for t in every if t not in own) for name, own in rows.items()}
    common = [text for text in every if all(text in own for own in rows.values())]
    if len(common) < 2:
        raise ScoreError(
            f"The tables have {len(common)} of {len(every):,} sentences in common; a comparison "
            f"needs two or more. Score the same sentences with 'contstim score'."
        )
    columns = {
        _name(name, model, tables): table.column(model)[[rows[name][text] for text in common]]
        for name, table in tables.items()
        for model in table.models
    }
    scores = np.stack(list(columns.values()), axis=1)
    return ScoreTable(tuple(common), tuple(columns), scores), lacks


def _name(table: str, model: str, tables: Mapping[str, ScoreTable]) -> str:
    return f"{table}:{model}" if sum(model in t.models for t in tables.values()) > 1 else model


def _rows(name: str, table: ScoreTable) -> dict[str, int]:
    """The row of each text; repeated texts must have the same scores."""
    if table.sentences is None:
        raise ScoreError(
            f"{name} has scores without sentences; they must have a column 'sentence'."
        )
    rows: dict[str, int] = {}
    for row, sentence in enumerate(table.sentences):
        first = rows.setdefault(Sentence.parse(sentence).text, row)
        if first != row and not _same(table.log_probs[first], table.log_probs[row]):
            raise ScoreError(
                f"{name} scores {sentence!r} in two ways, in rows {first} and {row}: leave one out."
            )
    return rows


def _same(one: FloatArray, other: FloatArray) -> bool:
    return bool((one == other).all())
