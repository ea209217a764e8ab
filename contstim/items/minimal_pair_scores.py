"""Minimal pairs with the scores of both sentences under several models, as a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import InputError
from contstim.files.tables import columns_of, number, parsed_columns, read_table, text, write_table
from contstim.items.stimuli import CELL_READERS
from contstim.wording import repeated

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contstim.files.arrays import BoolArray, FloatArray
    from contstim.files.tables import Reader
    from contstim.words.sentence import Sentence

_ROUNDING = 2.0**-21  # relative: four times the rounding of a number in single precision
_SIDES = {False: ("good", "bad"), True: ("natural", "changed")}  # by `near`
_WHOLE = "full-sentence"  # of the methods by which `evaluate blimp` compares, the one of sentences
PREFIX_FIELDS = {
    "one_prefix": ("prefix", "word_good", "word_bad"),
    "two_prefix": ("prefix_good", "prefix_bad", "word"),
}
"""By method: BLiMP's fields of prefix and critical words, called `one_prefix_prefix` and so on; the
flag that a pair has them is `one_prefix_method`."""


@dataclass(frozen=True, slots=True)
class SentencePair:
    """Two sentences, of which the first is the acceptable, or natural, one.

    Attributes:
        paradigm: what all pairs made after the same pattern belong to.
        pair_id: names the pair within its paradigm.
        good: the acceptable or natural sentence.
        bad: the unacceptable one, or the natural one changed.
    """

    paradigm: str
    pair_id: str
    good: Sentence
    bad: Sentence


@dataclass(frozen=True, eq=False)
class MinimalPairScores:
    """Log-probabilities of both sides of pairs.

    Attributes:
        pairs: whose sides they are.
        models: names.
        log_probs: (n_pairs, 2, n_models), nats; the good side comes first.
        near: whether the second sentence is the first with a new word, which nobody has called
            unacceptable; see `contstim near-pairs`.
    """

    pairs: tuple[SentencePair, ...]
    models: tuple[str, ...]
    log_probs: FloatArray
    near: bool = False

    @property
    def good_name(self) -> str:
        """Adjective for the good sentence: natural or acceptable."""
        return "natural" if self.near else "acceptable"

    @cached_property
    def ties(self) -> BoolArray:
        """Mask of ties, (n_pairs, n_models): both sides have the same score, or both are -inf.

        Scores are the same where they differ by no more than single precision rounds. Sums of the
        same terms in another order do: n-gram models that back off have many such pairs, half of
        which would count as right by chance.
        """
        good, bad = self.log_probs[:, 0], self.log_probs[:, 1]
        # isclose takes its share of the second only, and the larger may be either
        same: BoolArray = np.isclose(good, bad, _ROUNDING, 0) | np.isclose(bad, good, _ROUNDING, 0)
        return same

    @cached_property
    def margins(self) -> FloatArray:
        """Log-probability of the good side less that of the bad, (n_pairs, n_models); 0 if tied."""
        good, bad = self.log_probs[:, 0], self.log_probs[:, 1]
        return np.subtract(good, bad, out=np.zeros(good.shape), where=~self.ties)

    def columns(self) -> dict[str, Any]:
        """The columns of the table, see `read`."""
        sides = _SIDES[self.near]
        scores = self.log_probs.transpose(2, 1, 0).reshape(2 * len(self.models), -1).tolist()
        names = ("paradigm", "pair_id", *sides, *_score_names(self.models, sides))
        texts = columns_of(SentencePair, self.pairs).values()
        return dict(zip(names, (*texts, *scores), strict=True))

    def write(self, path: Path | str) -> None:
        """Write the table, whose columns `read` names.

        Raises:
            InputError: the file cannot be written.
        """
        write_table(path, self.columns())

    @staticmethod
    def read(path: Path | str) -> MinimalPairScores:
        """Read pairs.csv of `contstim evaluate blimp`, or a table of the same columns.

        These are paradigm, pair_id, good, bad and, for each model, `MODEL: good` and `MODEL: bad`
        with log-probabilities in nats; natural and changed in place of good and bad where
        `contstim near-pairs` wrote it. Where a column `method` is, its rows of full sentences
        count.

        Raises:
            InputError: the file cannot be read, lacks a column or has no pair of sentences, a cell
                is no text or number, or two pairs of a paradigm have one name.
        """
        table = read_table(path)
        if "method" in table:
            whole = [method == _WHOLE for method in table["method"]]
            table = {name: [*compress(column, whole)] for name, column in table.items()}
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
        if twice := repeated((pair.paradigm, pair.pair_id) for pair in pairs):
            raise InputError(f"{path} has the pair {twice[0][1]} of {twice[0][0]} twice.")
        log_probs = np.array(columns[4:], np.float64).reshape(len(models), 2, -1).transpose(2, 1, 0)
        if (log_probs == np.inf).any():
            raise InputError(f"{path} has an infinite score: scores are finite or -inf.")
        return MinimalPairScores(pairs, models, log_probs, near)


def _score_names(models: Sequence[str], sides: tuple[str, str]) -> list[str]:
    return [f"{model}: {side}" for model in models for side in sides]
