"""Numbers that a selection can be told about: stimuli per model pair, tokens per sentence."""

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
    """Read how many stimuli single model pairs need: a table model_1, model_2, per_pair.

    Raises:
        InputError: the table lacks a column, names a model pair twice, or a count is not a
            whole number.
    """
    readers: dict[str, Reader] = dict.fromkeys(("model_1", "model_2"), (text, "text"))
    readers["per_pair"] = (count, "whole number from 0")
    columns = parsed_columns(path, read_table(path), readers)
    counts: dict[tuple[str, str], int] = {}
    for model_1, model_2, per_pair in zip(*columns, strict=True):
        if (model_1, model_2) in counts:
            raise InputError(f"{path} has two counts for {model_1}, {model_2}.")
        counts[model_1, model_2] = per_pair
    return counts


def read_token_counts(path: Path | str) -> dict[tuple[str, str], int]:
    """Read each sentence's number of tokens by model: (`Sentence.text`, model) → number.

    The table is that of `contstim score --per-word`, which has a row for each scored token, and all
    of a sentence's rows again where the sentence was given again: it is counted once.

    Raises:
        InputError: the table lacks a column, or a cell is not a sentence.
    """
    names = ("sentence", "model", "position", "token", "log_prob")
    texts, models, *rest = needed_columns(path, read_table(path), names)
    sentences = parsed(path, "sentence", texts, Sentence.parse, "sentence")
    models = parsed(path, "model", models, text, "text")
    tokens: dict[tuple[str, str], list[tuple[Any, ...]]] = defaultdict(list)
    for sentence, model, *token in zip(sentences, models, *rest, strict=True):
        # Rows stand by sentence, then by model: those of one key follow in the order of its tokens
        tokens[sentence.text, model].append(tuple(token))
    # A sentence that was given k times has its rows k times over: the shortest beginning whose
    # repetition is the whole list has them once.
    return {
        key: next(
            n
            for n in range(1, len(rows) + 1)
            if len(rows) % n == 0 and rows[:n] * (len(rows) // n) == rows
        )
        for key, rows in tokens.items()
    }
