"""Numbers that a selection can be told about: stimuli per model pair, tokens per sentence."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.sentence import Sentence
from contstim.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def read_pair_counts(path: Path | str) -> dict[tuple[str, str], int]:
    """How many stimuli single model pairs need: a table model_1, model_2, per_pair.

    Raises:
        InputError: the table lacks a column, names a model pair twice, or a count is no whole
            number.
    """
    rows = _columns(path, ("model_1", "model_2", "per_pair"))
    counts: dict[tuple[str, str], int] = {}
    for row, (model_1, model_2, per_pair) in enumerate(rows):
        if (model_1, model_2) in counts:
            raise InputError(f"{path} has two counts for {model_1}, {model_2}.")
        try:
            counts[model_1, model_2] = int(per_pair)
        except (TypeError, ValueError):
            raise InputError(f"{path}, row {row}: {per_pair!r} is no whole number.") from None
    return counts


def read_token_counts(path: Path | str) -> dict[tuple[str, str], int]:
    """How many tokens each sentence has under each model: (`Sentence.text`, model) → number.

    The table is that of `contstim score --per-word`, which has a row for each scored token.

    Raises:
        InputError: the table lacks a column, or a cell is no sentence.
    """
    rows = _columns(path, ("sentence", "model", "position", "token"))
    texts = {sentence: Sentence.parse(str(sentence)).text for sentence, *_ in rows}
    return dict(Counter((texts[sentence], model) for sentence, model, *_ in rows))


def _columns(path: Path | str, names: Sequence[str]) -> list[tuple[Any, ...]]:
    table = read_table(path)
    missing = [name for name in names if name not in table]
    if missing:
        raise InputError(f"{path} lacks the columns {', '.join(missing)}.")
    return list(zip(*(table[name] for name in names), strict=True))
