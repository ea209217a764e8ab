"""Features of a sentence that are known without asking a model how probable it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contstim.errors import InputError
from contstim.sentence import Sentence
from contstim.tables import listed, number, parsed, read_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from contstim.frequencies import WordFrequencies

Features: TypeAlias = "Mapping[str, Mapping[str, float]]"
"""Feature (or model) → `Sentence.text` → value."""

MOST_FEATURES = 1_000  # columns; each is tested against each model


def read_features(path: Path | str) -> dict[str, dict[str, float]]:
    """Read a table with a column `sentence` and a column of numbers for each feature.

    Raises:
        InputError: the file cannot be read, has no such columns, a cell that is not a number, or a
            sentence twice with different values.
    """
    table = read_table(path)
    if "sentence" not in table or len(table) < 2:
        raise InputError(
            f"{path} must have a column `sentence` and one for each feature; its columns are "
            f"{listed(table)}."
        )
    if len(table) > MOST_FEATURES:
        raise InputError(
            f"{path} has {len(table):,} columns; each beside `sentence` is taken for a feature, "
            f"and there may be {MOST_FEATURES - 1:,}. Keep the columns that are."
        )
    sentences = parsed(path, "sentence", table["sentence"], Sentence.parse, "sentence")
    texts = [sentence.text for sentence in sentences]
    features: dict[str, dict[str, float]] = {}
    # A sentence may stand in several rows, as in a table of trials, if its values are the same.
    for name, cells in table.items():
        if name != "sentence":
            features[name] = {}
            values = parsed(path, name, cells, number, "number")
            for row, (text, value) in enumerate(zip(texts, values, strict=True)):
                if features[name].setdefault(text, value) != value:
                    raise InputError(f"{path}, row {row}: {text!r} has two values of {name}.")
    return features


def mean_zipfs(sentences: Iterable[Sentence], frequencies: WordFrequencies) -> dict[str, float]:
    """The mean word frequency of each sentence, on the Zipf scale."""
    return {sentence.text: frequencies.mean_zipf(sentence) for sentence in sentences}


def mean_log_frequencies(
    sentences: Iterable[Sentence], frequencies: Mapping[str, float]
) -> dict[str, float]:
    """The mean log10 frequency of the words of each sentence, as in the 2023 study.

    For its published frequencies; those of a text are measured by `mean_zipfs`. A word is looked
    up as written, then in lower case; one that is not there counts like the rarest that is.

    Args:
        sentences: what to measure.
        frequencies: word → relative frequency, as the published ones
            (`contstim.experiments.reproduce.published.reading.read_frequencies`).

    Raises:
        InputError: no frequencies, or one that is not positive.
    """
    rarest = min(frequencies.values(), default=0.0)
    if not rarest > 0:
        raise InputError("Frequencies of words must be positive, and there must be some.")

    def log_frequency(word: str) -> float:
        frequency = frequencies.get(word, frequencies.get(word.lower(), rarest))
        return float(np.log10(frequency))

    return {s.text: float(np.mean(list(map(log_frequency, s.words)))) for s in sentences}
