"""Table of minimal pairs, with scores of both sentences of each pair under several models."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import InputError
from contstim.files.tables import columns_of, number, parsed_columns, read_table, text, write_table
from contstim.items.stimuli import CELL_READERS
from contstim.wording import find_duplicates

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contstim.files.arrays import BoolArray, FloatArray
    from contstim.files.tables import Reader
    from contstim.words.sentence import Sentence

_ROUNDING = 2.0**-21  # relative tolerance: four times the rounding error of single precision
# `MinimalPairScores.near` → names of the two sentences
_SIDES = {False: ("good", "bad"), True: ("natural", "changed")}
_SENTENCE_METHOD = "full-sentence"
PREFIX_FIELDS = {
    "one_prefix": ("prefix", "word_good", "word_bad"),
    "two_prefix": ("prefix_good", "prefix_bad", "word"),
}
"""Method of evaluation → names of BLiMP's fields with prefixes and critical words.

BLiMP is a published set of minimal pairs. In its files, the name of the method precedes each field
name. For example, `prefix` of the method `one_prefix` is the field `one_prefix_prefix`. The field
`one_prefix_method` states whether a pair has the fields of this method.
"""


@dataclass(frozen=True, slots=True)
class SentencePair:
    """A minimal pair of sentences.

    `good` is acceptable and `bad` is unacceptable. In pairs of `contstim near-pairs`, `good` is a
    natural sentence and `bad` is this sentence with one word changed.

    Attributes:
        paradigm: group of pairs with the same kind of difference.
        pair_id: identifier of the pair within its paradigm.
    """

    paradigm: str
    pair_id: str
    good: Sentence
    bad: Sentence


@dataclass(frozen=True, eq=False)
class MinimalPairScores:
    """Log-probabilities of both sentences of minimal pairs.

    Attributes:
        log_probs: log-probabilities, (n_pairs, 2, n_models), nats; the good sentence is first.
        near: whether the pairs come from `contstim near-pairs`, which replaces one word of a
            natural sentence. The changed sentence may be acceptable.
    """

    pairs: tuple[SentencePair, ...]
    models: tuple[str, ...]
    log_probs: FloatArray
    near: bool = False

    @property
    def good_name(self) -> str:
        """Adjective for the good sentence: `natural` or `acceptable`."""
        return "natural" if self.near else "acceptable"

    @cached_property
    def ties(self) -> BoolArray:
        """Mask of ties, (n_pairs, n_models): both scores are equal, or both are -inf.

        Scores count as equal if they differ by at most four rounding errors of single precision. An
        n-gram model often sums the same terms for two sentences, but in different orders. Rounding
        must not decide which sentence has the higher score.
        """
        good, bad = self.log_probs[:, 0], self.log_probs[:, 1]
        # The tolerance of isclose is relative to its second argument, so test both orders
        are_equal: BoolArray = np.isclose(good, bad, _ROUNDING, 0) | np.isclose(
            bad, good, _ROUNDING, 0
        )
        return are_equal

    @cached_property
    def margins(self) -> FloatArray:
        """Log-probability of the good sentence minus that of the bad sentence.

        The shape is (n_pairs, n_models), and the unit is nats. Ties have the value 0.
        """
        good, bad = self.log_probs[:, 0], self.log_probs[:, 1]
        return np.subtract(good, bad, out=np.zeros(good.shape), where=~self.ties)

    def columns(self) -> dict[str, Any]:
        """Return the columns of the table that `from_file` reads."""
        sides = _SIDES[self.near]
        scores = self.log_probs.transpose(2, 1, 0).reshape(2 * len(self.models), -1).tolist()
        names = ("paradigm", "pair_id", *sides, *_score_names(self.models, sides))
        texts = columns_of(SentencePair, self.pairs).values()
        return dict(zip(names, (*texts, *scores), strict=True))

    def write(self, path: Path | str) -> None:
        """Write the table in the format of `from_file`.

        Raises:
            InputError: if the file cannot be written.
        """
        write_table(path, self.columns())

    @staticmethod
    def from_file(path: Path | str) -> MinimalPairScores:
        """Read pairs.csv of `contstim evaluate blimp`, or a table with the same columns.

        The columns are `paradigm`, `pair_id`, `good` and `bad`. For each model, the columns
        `MODEL: good` and `MODEL: bad` contain log-probabilities in nats. In tables of `contstim
        near-pairs`, the columns say `natural` and `changed` instead of `good` and `bad`. If there
        is a column `method`, only rows with the method `full-sentence` are read.

        Raises:
            InputError: if the file cannot be read, lacks a column, or has no pair; if a cell is
                invalid; or if two pairs of a paradigm have the same `pair_id`.
        """
        table = read_table(path)
        if "method" in table:
            is_sentence_row = [method == _SENTENCE_METHOD for method in table["method"]]
            table = {name: [*compress(column, is_sentence_row)] for name, column in table.items()}
        near = "natural" in table
        sides = _SIDES[near]
        ending = f": {sides[0]}"
        models = tuple(name.removesuffix(ending) for name in table if name.endswith(ending))
        readers: dict[str, Reader] = dict.fromkeys(("paradigm", "pair_id"), (text, "text"))
        readers |= dict.fromkeys(sides, CELL_READERS["Sentence"])
        numbers = _score_names(models or ("MODEL",), sides)
        readers |= dict.fromkeys(numbers, (partial(number, infinite=True), "number"))
        columns = parsed_columns(path, table, readers)
        pairs = tuple(map(SentencePair, *columns[:4]))
        if not pairs:
            raise InputError(f"{path} has no pair of sentences.")
        if duplicates := find_duplicates((pair.paradigm, pair.pair_id) for pair in pairs):
            paradigm, pair_id = duplicates[0]
            raise InputError(f"{path} has two pairs {pair_id} of the paradigm {paradigm}.")
        log_probs = np.array(columns[4:], np.float64).reshape(len(models), 2, -1).transpose(2, 1, 0)
        if (log_probs == np.inf).any():
            raise InputError(f"{path} has an invalid score: scores must be finite or -inf.")
        return MinimalPairScores(pairs, models, log_probs, near)


def _score_names(models: Sequence[str], sides: tuple[str, str]) -> list[str]:
    return [f"{model}: {side}" for model in models for side in sides]
