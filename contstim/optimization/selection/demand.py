"""Demand on a natural selection: pairs for each pair of models, of usable sentences.

Where both sentences of a pair are to have the same number of words, the question falls into one
for each length, with ranks, sentences and pairs of its own: a `Stratum`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.scores import doubled_ranks
from contstim.sentence import repeats

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.reviews import ReviewedItem
    from contstim.scores import ScoreTable


@dataclass(frozen=True)
class Demand:
    """Pairs for each unordered pair of models: `per_pair`, or its own number from `counts`.

    Where pairs may be `agreeing`, a sentence need not be below the median of who rejects it.

    Raises:
        InputError: fewer than two models, fewer than one pair in all, a negative number, or a
            count for models that are not there in that order.
    """

    models: tuple[str, ...]
    per_pair: int
    counts: Mapping[tuple[str, str], int]
    agreeing: bool = False

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
        if not any(self.of_pair.values()):
            raise InputError("No model pair needs any pairs: leave one count above 0.")

    @cached_property
    def of_pair(self) -> dict[tuple[str, str], int]:
        """Every unordered model pair, in the models' order, and its number."""
        return {pair: self.counts.get(pair, self.per_pair) for pair in combinations(self.models, 2)}

    @property
    def counted(self) -> tuple[tuple[str, str, int], ...]:
        """The same as (model_1, model_2, number), as certificates hold it."""
        return tuple((*pair, count) for pair, count in self.of_pair.items())

    def strata(self, table: ScoreTable, *, same_length: bool) -> list[Stratum]:
        """The parts that the question falls into: one, or one for each length that gets pairs.

        Each length's share of every model pair's pairs is its share of the table's sentences.

        Raises:
            InputError: lengths are to be the same, and the table has no texts.
        """
        if not same_length:
            rows = np.arange(len(table.log_probs))
            return [Stratum(0, rows, table.log_probs, self.of_pair, agreeing=self.agreeing)]
        if table.sentences is None:
            raise InputError(
                "Sentences of the same length can only be chosen from a table that has their "
                "texts, and this one has scores only: add the column 'sentence'."
            )
        lengths = np.array([len(sentence) for sentence in table.sentences])
        sizes = dict(
            zip(*(each.tolist() for each in np.unique(lengths, return_counts=True)), strict=True)
        )
        shares = {pair: length_shares(count, sizes) for pair, count in self.of_pair.items()}
        strata = []
        for words in sizes:
            counts = {pair: of_length[words] for pair, of_length in shares.items()}
            rows = np.flatnonzero(lengths == words)
            if any(counts.values()):
                log_probs = table.log_probs[rows]
                strata.append(Stratum(words, rows, log_probs, counts, agreeing=self.agreeing))
        return strata


@dataclass(frozen=True)
class StandingPair:
    """A reviewed pair that stays, with the places of its sentences and the sum of their ranks.

    Sentence 1 stands at place_1 of the stratum; `cost` sums the ranks that Eq. 5 sums, doubled.
    """

    item_id: str
    model_1: str
    model_2: str
    place_1: int
    place_2: int
    cost: int


class Stratum:
    """Sentences that are ranked among each other, and the pairs that are to be made of them.

    Attributes:
        words: of each sentence; 0 where lengths may differ.
        rows: (n,) of the table, ascending; a place is an index into these.
        doubled: (n_models, n) doubled ranks, 2 … 2n, which makes mean ranks of ties whole.
        below: what the doubled rank under the model that rejects a sentence is less than: n, which
            is the median's; more than any rank where pairs may be agreeing.
        counts: pairs for each unordered model pair, in the models' order.
    """

    def __init__(
        self,
        words: int,
        rows: IntArray,
        log_probs: FloatArray,
        counts: Mapping[tuple[str, str], int],
        *,
        agreeing: bool,
    ) -> None:
        self.words = words
        self.rows = rows
        self.doubled = np.stack([doubled_ranks(column) for column in log_probs.T])
        self.counts = dict(counts)
        self.below = 2 * len(rows) + 1 if agreeing else len(rows)

    def admits(self, rejecting: IntArray, accepting: IntArray) -> BoolArray:
        """Sentences that one model may reject and the other accept, by their doubled ranks.

        Every rank of a sentence below the median is less than every one at or above it, tied or
        not. So each of two models prefers the sentence that the other rejects.
        """
        return (rejecting < self.below) & (accepting >= len(self.rows))

    def admissible(self, usable: BoolArray) -> IntArray:
        """Sentences that each (reject, accept) may use, (n_sources,), as `permutations` order them.

        Args:
            usable: (n_sentences,) rows of the table that may be chosen.
        """
        ranks = self.doubled[:, usable[self.rows]]
        return np.array([self.admits(*pair).sum() for pair in permutations(ranks, 2)])

    @cached_property
    def places(self) -> dict[int, int]:
        """The place of each row of the table."""
        return {row: place for place, row in enumerate(self.rows.tolist())}

    def best_standing(
        self,
        table: ScoreTable,
        usable: BoolArray,
        reviewed: Mapping[str, ReviewedItem],
        rejected: Collection[str],
    ) -> list[StandingPair]:
        """Reviewed pairs that stay, the best where more stood than are asked for.

        A pair stays that was not rejected and still is what is asked for: the rules about words
        leave its sentences, they are of this stratum, and either is admissible.

        Args:
            table: that the stratum is of.
            usable: (n_sentences,) rows of the table that may be chosen.
            reviewed: pairs by identifier.
            rejected: identifiers.
        """
        standing: dict[tuple[str, str], list[StandingPair]] = defaultdict(list)
        for item_id, item in reviewed.items():
            rows = [table.rows[s] for s in item.sentences] if item_id not in rejected else []
            if not rows or not all(row in self.places and usable[row] for row in rows):
                continue
            first, second = (self.places[row] for row in rows)
            model_1, model_2 = (table.models.index(m) for m in (item.model_1, item.model_2))
            ranks = self.doubled[[model_1, model_2]]
            if all(self.admits(ranks[[0, 1], [first, second]], ranks[[1, 0], [first, second]])):
                cost = int(ranks[0, first] + ranks[1, second])
                standing[item.model_1, item.model_2].append(
                    StandingPair(item_id, item.model_1, item.model_2, first, second, cost)
                )
        return [
            pair
            for models, pairs in standing.items()
            for pair in sorted(pairs, key=lambda p: (p.cost, p.item_id))[: self.counts[models]]
        ]


def length_shares(count: int, sizes: Mapping[int, int]) -> dict[int, int]:
    """Number of pairs of each length, in proportion to how many sentences have it.

    The largest remainders are rounded up (Hamilton's method); of equal ones the shorter length's.
    """
    total = sum(sizes.values())
    shares = {words: count * size // total for words, size in sizes.items()}
    by_remainder = sorted(sizes, key=lambda words: (-(count * sizes[words] % total), words))
    for words in by_remainder[: count - sum(shares.values())]:
        shares[words] += 1
    return shares


def usable_rows(
    table: ScoreTable, repeatable: frozenset[str] | None, banned: frozenset[tuple[str, ...]]
) -> BoolArray:
    """Mask of rows that may be chosen at all, (n_sentences,): those that rules about texts leave.

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
