"""A table of log-probabilities: sentences × models."""

from __future__ import annotations

import math
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
    frame_of,
    listed,
    number,
    parsed,
    read_table,
    write_table,
)
from contstim.wording import repeated
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray
    from pandas import DataFrame

    from contstim.files.arrays import FloatArray, IntArray

MOST_MODELS = 1_000
"""Of one table; models are compared in pairs, of which there are half a million then."""


@dataclass(frozen=True, eq=False)
class ScoreTable(ShownAsTable):
    """Natural log-probabilities of sentences under models.

    Attributes:
        sentences: one a row, or None where only scores were published.
        models: distinct names, one a column.
        log_probs: (n_sentences, n_models) float64, nats; finite or -inf.

    Raises:
        ScoreError: a nan or +inf (names the sentence and the model), shapes that differ, model
            names that repeat, a sentence that two rows score differently.
    """

    sentences: tuple[Sentence, ...] | None
    models: tuple[str, ...]
    log_probs: FloatArray

    def __post_init__(self) -> None:
        if twice := sorted(repeated(self.models)):
            raise ScoreError(f"Model names must differ; given twice: {listed(twice)}.")
        if "sentence" in self.models:
            raise ScoreError("'sentence' is the column of texts and cannot name a model.")
        rows = len(self.log_probs) if self.sentences is None else len(self.sentences)
        if self.log_probs.shape != (rows, len(self.models)):
            raise ScoreError(
                f"{rows:,} sentences × {len(self.models)} models need scores of that shape, "
                f"not {self.log_probs.shape}."
            )
        # -inf is a score: the model finds the sentence impossible. +inf and nan are not
        bad = np.argwhere(np.isnan(self.log_probs) | (self.log_probs == np.inf))
        if len(bad):
            row, column = bad[0]
            what = f" ({self.sentences[row].text!r})" if self.sentences else ""
            raise ScoreError(
                f"The score of row {row}{what} under {self.models[column]} is "
                f"{self.log_probs[row, column]}; scores are finite or -inf. "
                f"{len(bad):,} such values in all: score these sentences again."
            )
        if self.sentences is None or len(self.rows) == len(self.sentences):
            return
        # `rows` has the first row of each sentence; any later one must say the same under every
        # model
        for row, sentence in enumerate(self.sentences):
            first = self.rows[sentence]
            if (self.log_probs[first] != self.log_probs[row]).any():
                raise ScoreError(
                    f"{sentence.text!r} is scored in two ways, in rows {first} and {row}: leave "
                    f"one of them out."
                )

    @cached_property
    def rows(self) -> Mapping[Sentence, int]:
        """The row of each sentence; the first one, where several rows score it.

        Raises:
            ScoreError: the sentences are not known.
        """
        if self.sentences is None:
            raise ScoreError(
                "These are scores without sentences, so that none can be looked up: they must "
                "have a column 'sentence'."
            )
        rows: dict[Sentence, int] = {}
        for row, sentence in enumerate(self.sentences):
            rows.setdefault(sentence, row)
        return rows

    def rows_of(self, sentences: Iterable[Sentence]) -> IntArray:
        """The row of each of some sentences, (n,); see `rows`.

        Raises:
            ScoreError: the table lacks sentences (lists the first ones), or has none at all.
        """
        wanted = list(sentences)
        missing = list(dict.fromkeys(s.text for s in wanted if s not in self.rows))
        if missing:
            raise ScoreError(
                f"The scores lack {len(missing):,} of {len(set(wanted)):,} sentences: "
                f"{listed(map(repr, missing), 5)}. Score them with 'contstim score'."
            )
        return np.array([self.rows[sentence] for sentence in wanted], dtype=np.int64)

    def column(self, model: str) -> FloatArray:
        """One model's log-probabilities, (n_sentences,), nats.

        Raises:
            ScoreError: there is no such model; lists the ones there are.
        """
        if model not in self.models:
            raise ScoreError(f"No scores for {model!r}; there are {listed(self.models)}.")
        return self.log_probs[:, self.models.index(model)]

    def doubled_ranks(self) -> IntArray:
        """Twice the average ranks, which makes them integers: (n_sentences, n_models), 2 … 2N.

        Ranks ascend from 1 for the lowest log-probability; tied sentences share their mean rank.
        """
        # Integers, so that selections compare ranks and sums of them without rounding
        return np.stack([doubled_ranks(column) for column in self.log_probs.T], axis=1)

    def ranks(self) -> FloatArray:
        """Fractional ranks r(s|m) = average rank / N (2023, text before Eq. 5), in (0, 1]."""
        return self.doubled_ranks() / (2 * len(self.log_probs))

    def agreement(self) -> FloatArray:
        """Agreement of two models on the order of two sentences, (n_models, n_models), in [0, 1].

        The share of all pairs of different rows, counted exactly; where a model gives both
        sentences the same score, the pair counts one half. This is (1 + Kendall's tau-a) / 2.

        Raises:
            ScoreError: there are fewer than two sentences.
        """
        n = len(self.log_probs)
        if n < 2:
            raise ScoreError("Agreement is about pairs: it needs two sentences or more.")
        n_models = len(self.models)
        shares = np.empty((n_models, n_models))
        # i may equal j: a model agrees with itself in all pairs but those that it ties
        for i, j in combinations_with_replacement(range(n_models), 2):
            tau = _kendall_tau_a(self.log_probs[:, i], self.log_probs[:, j])
            shares[i, j] = shares[j, i] = (1 + tau) / 2
        return shares

    @classmethod
    def read(cls, path: Path | str) -> ScoreTable:
        """Read scores from CSV, Parquet or JSON lines (column `sentence`, one per model) or `.npz`.

        An `.npz` holds one array per model and, if it likes, an array `sentence`. Sentences are
        read as `Sentence.parse` reads them: a text without an end mark gets a full stop, and words
        are separated by single spaces. So `A b`, `A  b` and `A b.` are one sentence, and must have
        one score under each model.

        Raises:
            ScoreError: the file cannot be read, columns of unequal length, a text without words, a
                value that is not a number, no model, and what the class itself refuses.
        """
        is_npz = Path(path).suffix.lower() == ".npz"
        try:
            columns: dict[str, Any] = {**(read_npz(path) if is_npz else read_table(path))}
            for name, column in columns.items():
                if getattr(column, "ndim", 1) != 1:
                    raise ScoreError(
                        f"{path}: {name} has shape {column.shape}; expected one dimension."
                    )
            sentences = columns.pop("sentence", None)
            if sentences is None and not is_npz:
                raise ScoreError(
                    f"{path} has no column 'sentence'; its columns are {listed(columns)}."
                )
            if not 0 < len(columns) <= MOST_MODELS:
                raise ScoreError(
                    f"{path} has {len(columns):,} columns of scores beside the sentences; expected "
                    f"one per model, of which there may be {MOST_MODELS:,}."
                )
            if not any(map(len, columns.values())):
                raise ScoreError(f"{path} has no scores; expected one per sentence.")
            lengths = {name: len(column) for name, column in columns.items()}
            if sentences is not None:
                lengths["sentence"] = len(sentences)
                sentences = tuple(parsed(path, "sentence", sentences, Sentence.parse, "sentence"))
            if len(set(lengths.values())) > 1:
                raise ScoreError(
                    f"{path}: columns differ in length: "
                    + listed(f"{name} {n:,}" for name, n in lengths.items())
                    + ". Every model needs a score for every sentence."
                )
            numbers = [_numbers(path, name, values) for name, values in columns.items()]
        except InputError as error:
            raise ScoreError(str(error)) from error
        try:
            return cls(sentences, tuple(columns), np.stack(numbers, axis=1))
        except ScoreError as error:
            raise ScoreError(f"{path}: {error}") from error

    def write(self, path: Path | str) -> None:
        """Write what `read` gives back bit for bit; sentences as `Sentence.text`.

        Raises:
            ScoreError: the sentences are not known and the file is not an `.npz`.
        """
        if Path(path).suffix.lower() == ".npz":
            # as `np.savez_compressed`, whose own parameters could then not be names of models
            with writing(path) as partial, ZipFile(partial, "w", ZIP_DEFLATED) as archive:
                for name, column in self.columns.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                        np.lib.format.write_array(file, np.asarray(column), allow_pickle=False)
        elif self.sentences is None:
            raise ScoreError(f"Scores without sentences can only be written to .npz, not {path}.")
        else:
            write_table(path, self.columns)

    def to_frame(self) -> DataFrame:
        """The table as pandas has it, in the columns of the files that `write` writes."""
        return frame_of(self.columns)

    @property
    def columns(self) -> dict[str, list[Any]]:
        """Columns of the files that `write` writes: texts of the sentences, if any, and scores."""
        texts = None if self.sentences is None else [sentence.text for sentence in self.sentences]
        scores = dict(zip(self.models, self.log_probs.T.tolist(), strict=True))
        return scores if texts is None else {"sentence": texts, **scores}


def doubled_ranks(values: FloatArray) -> IntArray:
    """Twice the ascending ranks of values, from 1; ties share their mean rank: 2 … 2n."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)  # rank of the last of each group of ties
    # ranks last - count + 1 … last share their mean, doubled: 2 last - count + 1
    return (2 * last - counts + 1)[inverse]


def _kendall_tau_a(x: FloatArray, y: FloatArray) -> float:
    """From SciPy's tau-b, whose denominator leaves out tied pairs."""
    from scipy.stats import kendalltau

    # tau-b = S / sqrt(untied in x · untied in y), tau-a = S / all pairs, S: concordant - discordant
    n_pairs = len(x) * (len(x) - 1) // 2
    untied = [
        n_pairs - sum(c * (c - 1) // 2 for c in np.unique(v, return_counts=True)[1].tolist())
        for v in (x, y)
    ]
    if not all(untied):
        return 0.0
    tau_b = float(kendalltau(x, y, variant="b").statistic)
    return tau_b * math.sqrt(untied[0] * untied[1]) / n_pairs


def _numbers(path: Path | str, name: str, values: Sequence[Any] | NDArray[Any]) -> FloatArray:
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiu":
        return values.astype(np.float64)
    return np.array(parsed(path, name, values, _score, "number"), dtype=np.float64)


_MISSING = ("nan", "NaN")


def _score(value: object) -> float:
    """A number, or the nan by which a table says that there is none: the class names its row."""
    try:
        return number(value, infinite=True)
    except ValueError:
        if value is None or (isinstance(value, float | str) and str(value).strip() in _MISSING):
            return math.nan
        raise
