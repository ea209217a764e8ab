"""What a natural selection is asked for: pairs for each pair of models, of usable sentences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.sentence import repeats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contstim.arrays import BoolArray, IntArray
    from contstim.scores import ScoreTable


@dataclass(frozen=True)
class Demand:
    """Pairs for each unordered pair of models: `per_pair`, or its own number from `counts`.

    Raises:
        InputError: fewer than two models, fewer than one pair in all, a negative number, or a
            count for models that are not there in that order.
    """

    models: tuple[str, ...]
    per_pair: int
    counts: Mapping[tuple[str, str], int]

    def __post_init__(self) -> None:
        if self.per_pair < 1:
            raise InputError(
                f"Cannot choose {self.per_pair} pairs per model pair; ask for at least 1."
            )
        if len(self.models) < 2:
            raise InputError(
                f"Two models can disagree, {len(self.models)} cannot: give scores of at least two."
            )
        pairs = set(combinations(self.models, 2))
        for pair, count in self.counts.items():
            if pair not in pairs:
                raise InputError(
                    f"A count is asked for {', '.join(pair)}; model pairs stand in the order of "
                    f"the scores: {', '.join(self.models)}."
                )
            if count < 0:
                raise InputError(f"Cannot choose {count} pairs for {'-'.join(pair)}.")
        if not self.of_source.any():
            raise InputError("No model pair needs any pairs: leave one count above 0.")

    @cached_property
    def of_pair(self) -> dict[tuple[str, str], int]:
        """Every unordered model pair, in the models' order, and its number."""
        return {pair: self.counts.get(pair, self.per_pair) for pair in combinations(self.models, 2)}

    @cached_property
    def of_source(self) -> IntArray:
        """Sentences for each ordered pair (reject, accept), in the order of `permutations`."""
        counts = {frozenset(pair): count for pair, count in self.of_pair.items()}
        return np.array([counts[frozenset(source)] for source in permutations(self.models, 2)])

    @property
    def counted(self) -> tuple[tuple[str, str, int], ...]:
        """The same as (model_1, model_2, number), as certificates hold it."""
        return tuple((*pair, count) for pair, count in self.of_pair.items())


def usable_rows(
    table: ScoreTable, repeatable: frozenset[str] | None, banned: frozenset[tuple[str, ...]]
) -> BoolArray:
    """Which rows may be chosen at all, (n_sentences,): what the rules about texts leave over.

    Args:
        table: of several rows that look alike to people, only the first is usable.
        repeatable: the word-repetition rule, see `select_natural`.
        banned: words of sentences that are left out.
    """
    if table.sentences is None:
        return np.ones(len(table.log_probs), dtype=np.bool_)
    # Sentences that differ in their end mark alone look alike in an experiment, which hides it.
    first: dict[tuple[str, ...], int] = {}
    for row, sentence in enumerate(table.sentences):
        first.setdefault(sentence.words, row)
    usable = np.zeros(len(table.sentences), dtype=np.bool_)
    usable[[row for words, row in first.items() if words not in banned]] = True
    if repeatable is not None:
        exempt = frozenset(map(str.lower, repeatable))
        usable &= ~np.array([repeats(sentence.words, exempt) for sentence in table.sentences])
    return usable
