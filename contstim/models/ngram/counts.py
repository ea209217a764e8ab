"""Counts of words in training: a table beside the model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.errors import ModelError
from contstim.files import is_file
from contstim.models.ngram.tables import SPECIAL_WORDS
from contstim.tables import read_table, write_table
from contstim.vocabulary import Vocabulary

if TYPE_CHECKING:
    from contstim.models.ngram.estimate import Estimate
    from contstim.tables import Column


def counts_path(model: Path | str) -> Path:
    """Path of a model's counts: `trigram.arpa` has `trigram.arpa.counts.csv`."""
    return Path(f"{model}.counts.csv")


def write_counts(model: Path | str, estimate: Estimate) -> None:
    """Write every word with how often it starts a sentence and how often it stands elsewhere."""
    specials = len(SPECIAL_WORDS)  # the first ids; they are not words of the text
    columns: dict[str, Column] = {
        "word": estimate.tables.words[specials:],
        "initial": estimate.initial_counts[specials:],
        "inner": estimate.inner_counts[specials:],
    }
    write_table(counts_path(model), columns)


def read_counts(model: Path | str, min_count: int) -> Vocabulary:
    """The words of a model's training text that are frequent enough.

    Raises:
        ModelError: there are no counts beside the model.
        VocabularyError: no word is that frequent.
    """
    path = counts_path(model)
    if not is_file(path):
        raise ModelError(
            f"{model} has no word counts beside it ({path.name}), so its vocabulary cannot be cut "
            f"by frequency. Give a word list with --vocabulary; 'contstim vocabulary' makes one."
        )
    table = read_table(path)
    try:
        initial, inner = (
            Counter(dict(zip(table["word"], map(int, table[name]), strict=True)))
            for name in ("initial", "inner")
        )
    except (KeyError, ValueError) as error:
        raise ModelError(
            f"{path} is not a table of word counts ({error}). Train the model anew."
        ) from error
    return Vocabulary.from_counts(initial, inner, min_count=min_count)
