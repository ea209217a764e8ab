"""Sentences that are ranked among each other, and the pairs to select from them: strata.

With `same_length` each number of words is a stratum with its own ranks, sentences and pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, permutations
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.items.scores import doubled_ranks
from contstim.items.stimuli import Pair, content_id
from contstim.optimization.selection.question import demand
from contstim.words.sentence import repeats

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from contstim.files.arrays import BoolArray, IntArray
    from contstim.items.scores import ScoreTable
    from contstim.optimization.selection.question import ModelPair, NaturalQuestion
    from contstim.words.sentence import Sentence


@dataclass(frozen=True, eq=False)
class Stratum:
    """Sentences that are ranked among each other, and the number of pairs to select from them.

    Attributes:
        table: scores of all sentences.
        words: number of words of each sentence; 0 if lengths may differ.
        rows: (n,) rows of the table, ascending; other arrays are indexed like these.
        usable: (n,) whether the rules about words admit a sentence.
        counts: number of pairs for each unordered model pair, in the order of the models.
        agreeing: whether a sentence may rank above the median of the model that rejects it.
    """

    table: ScoreTable
    words: int
    rows: IntArray
    usable: BoolArray
    counts: Mapping[ModelPair, int]
    agreeing: bool

    @cached_property
    def doubled(self) -> IntArray:
        """Doubled ranks, 2 … 2n, (n_models, n); mean ranks of ties are whole numbers."""
        return np.stack([doubled_ranks(column) for column in self.table.log_probs[self.rows].T])

    @cached_property
    def sources(self) -> list[tuple[str, str, int]]:
        """Reject model, accept model and number of sentences, for each ordered model pair."""
        counts = {frozenset(models): count for models, count in self.counts.items()}
        return [(*pair, counts[frozenset(pair)]) for pair in permutations(self.table.models, 2)]

    def admits(self, rejecting: IntArray, accepting: IntArray) -> BoolArray:
        """Return whether one model may reject sentences and the other accept them, by their ranks.

        Every rank of a sentence below the median is less than every one at or above it, tied or
        not. So each of two models prefers the sentence that the other rejects.
        """
        below = 2 * len(self.rows) + 1 if self.agreeing else len(self.rows)
        return (rejecting < below) & (accepting >= len(self.rows))

    def admissible(self) -> IntArray:
        """Return the number of usable sentences for each ordered model pair, (n_sources,)."""
        ranks = self.doubled[:, self.usable]
        return np.array([self.admits(*pair).sum() for pair in permutations(ranks, 2)])

    def n_candidates(self) -> int:
        """Return the number of usable sentences that some models accept and others reject."""
        accepted = self.doubled[:, self.usable] >= len(self.rows)
        return int((accepted.any(axis=0) & ~accepted.all(axis=0)).sum())

    def pair(self, models: ModelPair, rows: tuple[int, int]) -> Pair:
        """Make the pair of two rows of the table."""
        indices = np.searchsorted(self.rows, rows)
        columns = [self.table.models.index(model) for model in models]
        # Sentences × models, so that raveled they are r(s1|m1), r(s1|m2), r(s2|m1), r(s2|m2)
        ranks = self.doubled[np.ix_(np.array(columns), indices)].T / (2 * len(self.rows))
        sentences = self.table.sentences
        first, second = (None if sentences is None else sentences[row] for row in rows)
        content = rows if sentences is None else (first, second)
        name = content_id("pair", *models, *content)
        return Pair(name, *models, first, second, *rows, *ranks.ravel().tolist())


def strata(
    table: ScoreTable, question: NaturalQuestion, excluded: Collection[Sentence] = ()
) -> list[Stratum]:
    """Split a question into independent parts: one, or one for each length that gets pairs.

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
    stratum = Stratum(table, 0, np.arange(len(table.log_probs)), usable, counts, question.agreeing)
    if not question.same_length:
        return [stratum]
    lengths = np.array([len(sentence) for sentence in table.sentences or ()])
    sizes = {n: int((lengths == n).sum()) for n in np.unique(lengths).tolist()}
    shares = {pair: length_shares(count, sizes) for pair, count in counts.items()}
    parts = []
    for words in sizes:
        rows = np.flatnonzero(lengths == words)
        counts_of_length = {pair: share[words] for pair, share in shares.items()}
        if any(counts_of_length.values()):
            parts.append(
                replace(
                    stratum, words=words, rows=rows, usable=usable[rows], counts=counts_of_length
                )
            )
    return parts


def length_shares(count: int, sizes: Mapping[int, int]) -> dict[int, int]:
    """Return the number of pairs of each length, in proportion to the sentences of that length.

    The largest remainders are rounded up (Hamilton's method), the shorter length's if they tie.
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
    """Return which rows may be chosen: only the first of rows that look the same to readers."""
    if table.sentences is None:
        if excluded or question.no_repeats or question.same_length:
            raise InputError(
                "no_repeats, same_length and sentences that are left out need the sentences' "
                "texts, and this table has scores only: add the column 'sentence' or leave the "
                "rule out."
            )
        return np.ones(len(table.log_probs), dtype=np.bool_)
    # Experiments hide end marks, so sentences that differ only in them look the same.
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
