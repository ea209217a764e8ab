"""Tables of log-probabilities (sentences × models), and of numbers of stimuli and tokens."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np

from contstim.errors import InputError, ScoreError
from contstim.files.arrays import read_npz
from contstim.files.files import writing
from contstim.files.tables import (
    ShownAsTable,
    count,
    frame_of,
    join_names,
    needed_columns,
    number,
    parsed,
    parsed_columns,
    read_table,
    text,
    write_table,
)
from contstim.wording import find_duplicates
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray
    from pandas import DataFrame

    from contstim.files.arrays import FloatArray, IntArray
    from contstim.files.tables import Reader


MOST_MODELS = 1_000
"""Maximum number of models in a table."""


@dataclass(frozen=True, eq=False)
class ScoreTable(ShownAsTable):
    """Natural log-probabilities of sentences under models.

    Attributes:
        sentences: sentences of the rows; None if only scores were published.
        log_probs: log-probabilities, (n_sentences, n_models) float64, nats; finite or -inf.

    Raises:
        ScoreError: if a score is nan or +inf; if shapes do not match; if two models have the same
            name, or a model is named `sentence`; or if a sentence has two rows with different
            scores.
    """

    sentences: tuple[Sentence, ...] | None
    models: tuple[str, ...]
    log_probs: FloatArray

    def __post_init__(self) -> None:
        if duplicates := sorted(find_duplicates(self.models)):
            raise ScoreError(f"Names of models must be unique, got {join_names(duplicates)} twice.")
        if "sentence" in self.models:
            raise ScoreError(
                "A model must not be named 'sentence', because the column of texts has this name. "
                "Rename the model."
            )
        rows = len(self.log_probs) if self.sentences is None else len(self.sentences)
        if self.log_probs.shape != (rows, len(self.models)):
            raise ScoreError(
                f"log_probs must have the shape ({rows:,}, {len(self.models)}), sentences × "
                f"models, got {self.log_probs.shape}."
            )
        # An impossible sentence has the score -inf
        bad = np.argwhere(np.isnan(self.log_probs) | (self.log_probs == np.inf))
        if len(bad):
            row, column = bad[0]
            text = f" ({self.sentences[row].text!r})" if self.sentences else ""
            raise ScoreError(
                f"The score of row {row}{text} under {self.models[column]} is "
                f"{self.log_probs[row, column]}; scores must be finite or -inf. There are "
                f"{len(bad):,} such values. Score these sentences again."
            )
        for row, sentence in enumerate(self.sentences or ()):
            first = self.rows[sentence]
            if first != row and (self.log_probs[first] != self.log_probs[row]).any():
                raise ScoreError(
                    f"{sentence.text!r} has two scores, in rows {first} and {row}. Remove one row."
                )

    @cached_property
    def rows(self) -> Mapping[Sentence, int]:
        """Sentence → index of its first row.

        Raises:
            ScoreError: if the table has no sentences.
        """
        if self.sentences is None:
            raise ScoreError(
                "The table of scores has no sentences, so the score of a sentence cannot be found. "
                "Use a table with a column 'sentence'."
            )
        rows: dict[Sentence, int] = {}
        for row, sentence in enumerate(self.sentences):
            rows.setdefault(sentence, row)
        return rows

    def rows_of(self, sentences: Iterable[Sentence]) -> IntArray:
        """Return the index of the first row of each sentence, (n,).

        Raises:
            ScoreError: if the table lacks a sentence (the message lists up to five), or has no
                sentences.
        """
        requested = list(sentences)
        missing = list(dict.fromkeys(s.text for s in requested if s not in self.rows))
        if missing:
            raise ScoreError(
                f"The scores lack {len(missing):,} of {len(set(requested)):,} sentences: "
                f"{join_names(map(repr, missing), 5)}. Score them with 'contstim score'."
            )
        return np.array([self.rows[sentence] for sentence in requested], dtype=np.int64)

    def of(self, sentences: Sequence[Sentence]) -> ScoreTable:
        """Return a table that contains only these sentences, in this order.

        Raises:
            ScoreError: see `rows_of`.
        """
        return ScoreTable(tuple(sentences), self.models, self.log_probs[self.rows_of(sentences)])

    def column(self, model: str) -> FloatArray:
        """Return the log-probabilities of a model, (n_sentences,), nats.

        Raises:
            ScoreError: if the table does not have the model.
        """
        if model not in self.models:
            raise ScoreError(f"The model must be one of {join_names(self.models)}, got {model!r}.")
        return self.log_probs[:, self.models.index(model)]

    def doubled_ranks(self) -> IntArray:
        """Return twice the rank of each sentence under each model, (n_sentences, n_models).

        Rank 1 is the lowest log-probability, rank N the highest. Tied sentences have their mean
        rank. Doubled ranks are integers, so sums and comparisons are exact.
        """
        return np.stack([doubled_ranks(column) for column in self.log_probs.T], axis=1)

    def ranks(self) -> FloatArray:
        """Return the ranks r(s|m) = rank / N of Golan et al. (2023), (n_sentences, n_models).

        Values are in (0, 1]. N is the number of sentences.
        """
        return self.doubled_ranks() / (2 * len(self.log_probs))

    def agreement(self) -> FloatArray:
        """Compute, for every two models, the share of sentence pairs that both rank alike.

        The result is (n_models, n_models). Two models rank a pair of sentences alike if both prefer
        the same sentence. If a model gives both sentences equal scores, the pair counts one half.
        The share is (1 + Kendall's tau-a) / 2.

        Raises:
            ScoreError: if there are fewer than two sentences.
        """
        if len(self.log_probs) < 2:
            raise ScoreError("Agreement needs at least two sentences.")
        n_models = len(self.models)
        shares = np.empty((n_models, n_models))
        # The diagonal is not always 1, because ties reduce a model's agreement with itself
        for i, j in combinations_with_replacement(range(n_models), 2):
            tau = _kendall_tau_a(self.log_probs[:, i], self.log_probs[:, j])
            shares[i, j] = shares[j, i] = (1 + tau) / 2
        return shares

    @classmethod
    def from_file(cls, path: Path | str) -> ScoreTable:
        """Read scores from a table (CSV, TSV, Parquet, JSON lines) or an `.npz` file.

        A table has a column `sentence` and a column for each model. An `.npz` has an array for each
        model and optionally an array `sentence`. `Sentence.parse` normalises spaces and adds a
        missing full stop. So `A b`, `A  b` and `A b.` are the same sentence and must have the same
        scores.

        Raises:
            ScoreError: if the file cannot be read; if columns differ in length; if a cell is
                invalid; or if there are no models, or more than `MOST_MODELS`. See also
                `ScoreTable`.
        """
        is_npz = Path(path).suffix.lower() == ".npz"
        try:
            columns: dict[str, Any] = {**(read_npz(path) if is_npz else read_table(path))}
            for name, column in columns.items():
                if getattr(column, "ndim", 1) != 1:
                    raise ScoreError(f"{path}: {name} has the shape {column.shape}, expected 1-D.")
            if not is_npz:
                needed_columns(path, columns, ["sentence"])
            lengths = {name: len(column) for name, column in columns.items()}
            sentences = columns.pop("sentence", None)
            if not 0 < len(columns) <= MOST_MODELS:
                raise ScoreError(
                    f"{path} must have 1 to {MOST_MODELS:,} columns of scores, got {len(columns)}."
                )
            if not any(map(len, columns.values())):
                raise ScoreError(f"{path} has no scores; expected one per sentence.")
            if sentences is not None:
                sentences = tuple(parsed(path, "sentence", sentences, Sentence.parse, "sentence"))
            if len(set(lengths.values())) > 1:
                raise ScoreError(
                    f"{path}: columns differ in length: "
                    + join_names(f"{name} {n:,}" for name, n in lengths.items())
                    + ". Every model needs a score for every sentence."
                )
            numbers = [_parse_scores(path, name, values) for name, values in columns.items()]
        except InputError as error:
            raise ScoreError(str(error)) from error
        try:
            return cls(sentences, tuple(columns), np.stack(numbers, axis=1))
        except ScoreError as error:
            raise ScoreError(f"{path}: {error}") from error

    def write(self, path: Path | str) -> None:
        """Write the table in the format of `from_file`; `from_file` restores the exact scores.

        Raises:
            ScoreError: if the table has no sentences and the file is not an `.npz`.
        """
        if Path(path).suffix.lower() == ".npz":
            # Write the archive here, because np.savez_compressed refuses models that are named like
            # its parameters
            with writing(path) as partial, ZipFile(partial, "w", ZIP_DEFLATED) as archive:
                for name, column in self.columns.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                        np.lib.format.write_array(file, np.asarray(column), allow_pickle=False)
        elif self.sentences is None:
            raise ScoreError(
                f"Scores without sentences can only be written to an .npz file, got {path}."
            )
        else:
            write_table(path, self.columns)

    def to_frame(self) -> DataFrame:
        """Return `columns` as a data frame."""
        return frame_of(self.columns)

    @property
    def columns(self) -> dict[str, list[Any]]:
        """Columns that `write` writes: texts of the sentences, if known, and scores."""
        texts = None if self.sentences is None else [sentence.text for sentence in self.sentences]
        scores = dict(zip(self.models, self.log_probs.T.tolist(), strict=True))
        return scores if texts is None else {"sentence": texts, **scores}


def doubled_ranks(values: FloatArray) -> IntArray:
    """Return twice the rank of each value, from 2 (lowest) to 2n; ties have their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)  # highest rank of each group of ties
    # The mean of the ranks last - count + 1 … last is (2 last - count + 1) / 2
    return (2 * last - counts + 1)[inverse]


def _kendall_tau_a(x: FloatArray, y: FloatArray) -> float:
    """Compute Kendall's tau-a from SciPy's tau-b, whose denominator omits ties."""
    from scipy.stats import kendalltau

    # tau-a = S / n_pairs, and tau-b = S / sqrt(untied pairs in x · untied pairs in y), where
    # S = concordant - discordant pairs
    n_pairs = len(x) * (len(x) - 1) // 2
    ties = (np.unique(values, return_counts=True)[1].tolist() for values in (x, y))
    untied = [n_pairs - sum(n * (n - 1) // 2 for n in counts) for counts in ties]
    if not all(untied):
        return 0.0
    tau_b = float(kendalltau(x, y, variant="b").statistic)
    return tau_b * math.sqrt(untied[0] * untied[1]) / n_pairs


def _parse_scores(path: Path | str, name: str, values: Sequence[Any] | NDArray[Any]) -> FloatArray:
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiu":
        return values.astype(np.float64)
    return np.array(parsed(path, name, values, _parse_score, "number"), dtype=np.float64)


_MISSING = ("nan", "NaN")


def _parse_score(value: object) -> float:
    # Return nan for a missing score: `ScoreTable` then raises an error that names the row
    try:
        return number(value, infinite=True)
    except ValueError:
        if value is None or (isinstance(value, float | str) and str(value).strip() in _MISSING):
            return math.nan
        raise


def read_pair_counts(path: Path | str) -> dict[tuple[str, str], int]:
    """Read the number of stimuli for each pair of models.

    The table has the columns model_1, model_2 and per_pair.

    Raises:
        InputError: if the table lacks a column, or names a pair of models twice; or if a count is
            not a whole number.
    """
    readers: dict[str, Reader] = dict.fromkeys(("model_1", "model_2"), (text, "text"))
    readers["per_pair"] = (count, "whole number from 0")
    *models, counts = parsed_columns(path, read_table(path), readers)
    pairs = [*zip(*models, strict=True)]
    if repeats := find_duplicates(pairs):
        raise InputError(f"{path} has two rows for {' and '.join(repeats[0])}. Remove one.")
    return dict(zip(pairs, counts, strict=True))


def read_token_counts(path: Path | str) -> dict[tuple[str, str], int]:
    """Count the tokens of each sentence under each model: (`Sentence.text`, model) → number.

    Args:
        path: output of `contstim score --per-word`, which has a row for each word.

    Raises:
        InputError: if the table lacks a column or has an invalid cell.
    """
    readers: dict[str, Reader] = {
        "sentence": (Sentence.parse, "sentence"),
        "model": (text, "text"),
        **dict.fromkeys(("position", "tokens"), (count, "whole number from 0")),
    }
    rows = zip(*parsed_columns(path, read_table(path), readers), strict=True)
    # If a sentence was scored several times, each of its words counts once
    tokens_of_words = {(s.text, model, position): n for s, model, position, n in rows}
    tokens: Counter[tuple[str, str]] = Counter()
    for (sentence, model, _), n in tokens_of_words.items():
        tokens[sentence, model] += n
    return tokens
