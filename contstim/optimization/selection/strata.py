"""Sentences that are ranked among each other, and pairs that are to be made of them: strata.

Where both sentences of a pair are to have the same number of words, the question falls into one
for each length, with ranks, sentences and pairs of its own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, permutations
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.items.scores import doubled_ranks
from contstim.items.stimuli import Pair, content_id
from contstim.optimization.selection.flow import sentence_prices
from contstim.optimization.selection.question import demand
from contstim.words.sentence import repeats

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from contstim.files.arrays import BoolArray, IntArray
    from contstim.items.reviews import ReviewedItem
    from contstim.items.scores import ScoreTable
    from contstim.optimization.selection.question import ModelPair, NaturalQuestion
    from contstim.words.sentence import Sentence

    Totals = tuple[int, int, int, int]


@dataclass(frozen=True, eq=False)
class Stratum:
    """Sentences that are ranked among each other, and the pairs that are to be made of them.

    Attributes:
        table: the scores that the sentences are of.
        words: of each sentence; 0 where lengths may differ.
        rows: (n,) of the table, ascending; an index is one into these.
        usable: (n,) sentences that the rules about words leave.
        counts: pairs for each unordered model pair, in the models' order.
        agreeing: whether a sentence need not be below the median of the model that rejects it.
    """

    table: ScoreTable
    words: int
    rows: IntArray
    usable: BoolArray
    counts: Mapping[ModelPair, int]
    agreeing: bool

    @cached_property
    def doubled(self) -> IntArray:
        """(n_models, n) doubled ranks, 2 … 2n, which makes mean ranks of ties whole."""
        return np.stack([doubled_ranks(column) for column in self.table.log_probs[self.rows].T])

    @property
    def below(self) -> int:
        """Number that doubled ranks under the model that rejects are below: n, the median's."""
        return 2 * len(self.rows) + 1 if self.agreeing else len(self.rows)

    def admits(self, rejecting: IntArray, accepting: IntArray) -> BoolArray:
        """Sentences that one model may reject and the other accept, by their doubled ranks.

        Every rank of a sentence below the median is less than every one at or above it, tied or
        not. So each of two models prefers the sentence that the other rejects.
        """
        return (rejecting < self.below) & (accepting >= len(self.rows))

    def admissible(self) -> IntArray:
        """Usable sentences that each (reject, accept) may use, (n_sources,), as `permutations`."""
        ranks = self.doubled[:, self.usable]
        return np.array([self.admits(*pair).sum() for pair in permutations(ranks, 2)])

    def free(self, taken: Collection[tuple[str, ...]], standing: Iterable[Pair]) -> BoolArray:
        """(n,) usable sentences but for those of certain words, and those of pairs that stay."""
        sentences = self.table.sentences
        shown = (s.words for pair in standing for s in (pair.sentence_1, pair.sentence_2) if s)
        words = {*taken, *shown}
        if not words or sentences is None:
            return self.usable
        return self.usable & [sentences[row].words not in words for row in self.rows.tolist()]

    def pair(self, models: ModelPair, rows: tuple[int, int], trial_id: str = "") -> Pair:
        """The pair of two rows of the table, by default named by its content."""
        indices = np.searchsorted(self.rows, rows)
        columns = [self.table.models.index(model) for model in models]
        # Rows × models, so that raveled they are r(s1|m1), r(s1|m2), r(s2|m1), r(s2|m2).
        ranks = self.doubled[np.ix_(np.array(columns), indices)].T / (2 * len(self.rows))
        every = self.table.sentences
        first, second = (None if every is None else every[row] for row in rows)
        name = trial_id or content_id(
            "pair", *models, *(rows if every is None else (first, second))
        )
        return Pair(name, *models, first, second, *rows, *ranks.ravel().tolist())

    def needs(self, standing: Iterable[Pair]) -> IntArray:
        """(n_sources,) sentences that each (reject, accept) needs beside pairs that stay."""
        stay = Counter(frozenset((pair.model_1, pair.model_2)) for pair in standing)
        counts = {frozenset(models): count for models, count in self.counts.items()}
        sources = map(frozenset, permutations(self.table.models, 2))
        return np.array([counts[source] - stay[source] for source in sources])

    def cost(self, pair: Pair) -> int:
        """The ranks of a pair that Eq. 5 sums, doubled: of each sentence under who rejects it."""
        models = [self.table.models.index(model) for model in (pair.model_1, pair.model_2)]
        return int(self.doubled[models, np.searchsorted(self.rows, (pair.row_1, pair.row_2))].sum())

    def totals(
        self,
        pairs: Iterable[Pair],
        standing: Collection[Pair],
        taken: Collection[tuple[str, ...]],
        prices: IntArray,
    ) -> Totals:
        """Words, sentences, cost of pairs in doubled ranks, and what no others cost less than.

        That is, as prices prove, what the sources pay less what the sentences earn, the dual
        objective, beside pairs that stay; see `flow`.

        Args:
            pairs: all of them.
            standing: those that stay.
            taken: words of sentences that may not be used.
            prices: (n_sources,) of one sentence.
        """
        free = self.free(taken, standing)
        earned = sentence_prices(self.doubled, prices, self.below)[free].sum()
        bound = sum(map(self.cost, standing)) + int(self.needs(standing) @ prices) - int(earned)
        return self.words, len(self.rows), sum(map(self.cost, pairs)), bound

    def standing(
        self, reviewed: Mapping[str, ReviewedItem], rejected: Collection[str]
    ) -> list[Pair]:
        """Reviewed pairs that can stay, the best where more stood than are asked for.

        A pair stays that was not rejected and still is what is asked for: the rules about words
        leave its sentences, they are of this stratum, and either is admissible.
        """
        stands: dict[ModelPair, list[Pair]] = defaultdict(list)
        own = {*self.rows[self.usable].tolist()}
        for item_id, item in reviewed.items():
            if item_id in rejected:
                continue
            one, two = (self.table.rows[sentence] for sentence in item.sentences)
            if one not in own or two not in own:
                continue
            models = (item.model_1, item.model_2)
            first, second = np.searchsorted(self.rows, (one, two))
            ranks = self.doubled[[self.table.models.index(model) for model in models]]
            if self.admits(ranks[0, first], ranks[1, first]) and self.admits(
                ranks[1, second], ranks[0, second]
            ):
                stands[models].append(self.pair(models, (one, two), item_id))
        return [
            pair
            for models, pairs in stands.items()
            for pair in sorted(pairs, key=lambda p: (self.cost(p), p.trial_id))[
                : self.counts[models]
            ]
        ]


def strata(
    table: ScoreTable, question: NaturalQuestion, excluded: Collection[Sentence] = ()
) -> list[Stratum]:
    """The parts that the question falls into: one, or one for each length that gets pairs.

    Each length's share of every model pair's pairs is its share of the table's sentences.

    Raises:
        InputError: fewer than two models, counts that do not fit them, or a rule about words and
            a table without texts.
    """
    if len(table.models) < 2:
        raise InputError(
            f"Two models can disagree, {len(table.models)} cannot: give scores of at least two."
        )
    counts = demand(question, combinations(table.models, 2))
    usable = _usable_rows(table, question, excluded)
    whole = Stratum(table, 0, np.arange(len(table.log_probs)), usable, counts, question.agreeing)
    if not question.same_length:
        return [whole]
    lengths = np.array([len(sentence) for sentence in table.sentences or ()])
    sizes = {n: int((lengths == n).sum()) for n in np.unique(lengths).tolist()}
    shares = {pair: length_shares(count, sizes) for pair, count in counts.items()}
    parts = []
    for words in sizes:
        rows = np.flatnonzero(lengths == words)
        own = {pair: share[words] for pair, share in shares.items()}
        if any(own.values()):
            parts.append(replace(whole, words=words, rows=rows, usable=usable[rows], counts=own))
    return parts


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


def _usable_rows(
    table: ScoreTable, question: NaturalQuestion, excluded: Collection[Sentence]
) -> BoolArray:
    """Rows that may be chosen at all: of several that look alike to people, the first only."""
    if table.sentences is None:
        if excluded or question.no_repeats or question.same_length:
            raise InputError(
                "no_repeats, same_length and sentences that are left out need the sentences' "
                "texts, and this table has scores only: add the column 'sentence' or leave the "
                "rule out."
            )
        return np.ones(len(table.log_probs), dtype=np.bool_)
    # Sentences that differ in their end mark alone look alike in an experiment, which hides it.
    first: dict[tuple[str, ...], int] = {}
    for row, sentence in enumerate(table.sentences):
        first.setdefault(sentence.words, row)
    banned = {sentence.words for sentence in excluded}
    usable = np.zeros(len(table.sentences), dtype=np.bool_)
    usable[[row for words, row in first.items() if words not in banned]] = True
    if question.no_repeats:
        exempt = frozenset(map(str.lower, question.repeatable))
        usable &= ~np.array([repeats(sentence.words, exempt) for sentence in table.sentences])
    return usable


def rank_sums(totals: Iterable[Totals]) -> tuple[float, float]:
    """Objective and bound as fractional ranks, summed without rounding.

    Args:
        totals: of each stratum, which has a scale of its own.
    """
    parts = [(Fraction(cost, 2 * n), Fraction(bound, 2 * n)) for _, n, cost, bound in totals]
    return float(sum(cost for cost, _ in parts)), float(sum(bound for _, bound in parts))
