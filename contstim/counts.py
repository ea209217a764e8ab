"""Numbers that a selection can be told about: stimuli per model pair, tokens per sentence."""

from __future__ import annotations

from collections import defaultdict
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

    The table is that of `contstim score --per-word`, which has a row for each scored token, and all
    of a sentence's rows again where the sentence was given again: it is counted once.

    Raises:
        InputError: the table lacks a column, or a cell is no sentence.
    """
    names = ("sentence", "model", "position", "token", "log_prob")
    rows = _columns(path, names)
    texts = {sentence: Sentence.parse(str(sentence)).text for sentence, *_ in rows}
    tokens: dict[tuple[str, str], list[tuple[Any, ...]]] = defaultdict(list)
    for sentence, model, *token in rows:
        tokens[texts[sentence], model].append(tuple(token))
    return {key: _period(own) for key, own in tokens.items()}


def _period(rows: list[tuple[Any, ...]]) -> int:
    """The length of the shortest beginning whose repetition is the whole list."""
    lengths = (n for n in range(1, len(rows) + 1) if len(rows) % n == 0)
    return next(n for n in lengths if rows[:n] * (len(rows) // n) == rows)


def _columns(path: Path | str, names: Sequence[str]) -> list[tuple[Any, ...]]:
    table = read_table(path)
    missing = [name for name in names if name not in table]
    if missing:
        raise InputError(f"{path} lacks the columns {', '.join(missing)}.")
    return list(zip(*(table[name] for name in names), strict=True))
