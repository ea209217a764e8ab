"""Counts that selections use: stimuli per model pair, and tokens per sentence."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.files.tables import count, needed_columns, parsed, parsed_columns, read_table, text
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from pathlib import Path

    from contstim.files.tables import Reader


def read_pair_counts(path: Path | str) -> dict[tuple[str, str], int]:
    """Read the number of stimuli per model pair: a table with model_1, model_2 and per_pair.

    Raises:
        InputError: if the table lacks a column, names a model pair twice, or a count is not a
            whole number.
    """
    readers: dict[str, Reader] = dict.fromkeys(("model_1", "model_2"), (text, "text"))
    readers["per_pair"] = (count, "whole number from 0")
    columns = parsed_columns(path, read_table(path), readers)
    counts: dict[tuple[str, str], int] = {}
    for model_1, model_2, per_pair in zip(*columns, strict=True):
        if (model_1, model_2) in counts:
            raise InputError(f"{path} has two counts for {model_1}, {model_2}. Remove one.")
        counts[model_1, model_2] = per_pair
    return counts


def read_token_counts(path: Path | str) -> dict[tuple[str, str], int]:
    """Read the number of tokens by sentence and model: (`Sentence.text`, model) → number.

    The table comes from `contstim score --per-word`, with a row for each scored token. The rows of
    a repeated sentence are repeated, too, but counted once.

    Raises:
        InputError: if the table lacks a column, or a cell is not a sentence.
    """
    names = ("sentence", "model", "position", "token", "log_prob")
    texts, models, *token_columns = needed_columns(path, read_table(path), names)
    sentences = parsed(path, "sentence", texts, Sentence.parse, "sentence")
    models = parsed(path, "model", models, text, "text")
    tokens: dict[tuple[str, str], list[tuple[Any, ...]]] = defaultdict(list)
    for sentence, model, *token in zip(sentences, models, *token_columns, strict=True):
        # Rows are sorted by sentence, then by model, so that a key's tokens are in order
        tokens[sentence.text, model].append(tuple(token))
    # A sentence that was scored k times has k copies of its rows: count the rows of the shortest
    # beginning whose repetition is the whole list.
    return {
        key: next(
            n
            for n in range(1, len(rows) + 1)
            if len(rows) % n == 0 and rows[:n] * (len(rows) // n) == rows
        )
        for key, rows in tokens.items()
    }
