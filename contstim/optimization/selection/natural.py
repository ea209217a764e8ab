"""Exact selection of controversial natural pairs (Golan et al. 2023, Eqs. 5-6).

A stratum is a set of sentences that are ranked among each other. If the option `same_length` is
set, there is one stratum for each number of words. Otherwise, one stratum has all sentences. A
source is an ordered pair of models: the first model rejects the sentences of the source, and the
second model accepts them. `Stratum.admits` states the conditions.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, compress, permutations
from time import perf_counter
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contstim.errors import InfeasibleError, InputError
from contstim.items.reviews import ItemKind
from contstim.items.scores import doubled_ranks
from contstim.items.stimuli import Pair, content_id
from contstim.optimization.selection.question import (
    Certificate,
    NaturalQuestion,
    NaturalSelection,
    demand,
)
from contstim.optimization.selection.reviewed import ChangedItem, changed_items, review_goals
from contstim.optimization.selection.solver import (
    LinearRule,
    Program,
    group_indices,
    least_violations,
    solve,
)
from contstim.optimization.selection.verification import verify_natural
from contstim.wording import quantity
from contstim.words.sentence import repeats

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from contstim.files.arrays import BoolArray, IntArray
    from contstim.items.reviews import Review, ReviewedItem
    from contstim.items.scores import ScoreTable
    from contstim.optimization.selection.question import ModelPair
    from contstim.words.sentence import Sentence

    KeptItems: TypeAlias = Sequence[dict[str, ReviewedItem]]


@dataclass(frozen=True, eq=False)
class Stratum:
    """Sentences that are ranked among each other, and the program that selects pairs of them.

    The candidates of the program are the kept pairs, followed by the sentences of each source. A
    kept pair was reviewed and not rejected.

    Attributes:
        words: number of words of each sentence; 0 if lengths may differ.
        rows: (n,) rows of the sentences in the table, ascending. The other arrays list the
            sentences in this order.
        usable: (n,) mask of the sentences that the rules about single sentences allow.
        counts: pair of models → number of sentence pairs to select. Each key names the models in
            the order of the table.
        agreeing: whether the model that rejects a sentence may rank it at or above the median.
        review: review of earlier selections, if there is one.
        all_kept: kept items of each file of the review, the last file first.
    """

    table: ScoreTable
    words: int
    rows: IntArray
    usable: BoolArray
    counts: Mapping[ModelPair, int]
    agreeing: bool
    review: Review | None = None
    all_kept: KeptItems = ()

    @cached_property
    def doubled(self) -> IntArray:
        """Ranks, times 2 (so that mean ranks of ties are whole numbers), 2 … 2n, (n_models, n)."""
        return np.stack([doubled_ranks(column) for column in self.table.log_probs[self.rows].T])

    @cached_property
    def sources(self) -> dict[tuple[str, str], int]:
        """Rejecting and accepting model of each source → number of sentences to select."""
        counts = {frozenset(models): count for models, count in self.counts.items()}
        return {pair: counts[frozenset(pair)] for pair in permutations(self.table.models, 2)}

    @property
    def of_length(self) -> str:
        """Number of words of each sentence, for messages; empty if lengths may differ."""
        return f" of {self.words} words" if self.words else ""

    def admits(self, rejecting: IntArray, accepting: IntArray) -> BoolArray:
        """Return a mask of the sentences that one model may reject and another accept.

        The accepting model must rank the sentence at or above the median. Unless `agreeing`, the
        rejecting model must rank the sentence below the median. In a pair of such sentences, each
        model prefers the sentence that the other model rejects. The arguments are doubled ranks
        under the rejecting and the accepting model, (n,) each.
        """
        below = 2 * len(self.rows) + 1 if self.agreeing else len(self.rows)
        return (rejecting < below) & (accepting >= len(self.rows))

    def admissible(self) -> IntArray:
        """Return the number of usable sentences that each source admits, (n_sources,)."""
        ranks = self.doubled[:, self.usable]
        return np.array([self.admits(*pair).sum() for pair in permutations(ranks, 2)])

    def n_candidates(self) -> int:
        """Return the number of usable sentences that some models accept and others reject."""
        accepted = self.doubled[:, self.usable] >= len(self.rows)
        return int((accepted.any(axis=0) & ~accepted.all(axis=0)).sum())

    def pair(self, models: ModelPair, rows: tuple[int, int]) -> Pair:
        """Make the pair of two rows of the table; the first model rejects the first row."""
        indices = np.searchsorted(self.rows, rows)
        columns = [self.table.models.index(model) for model in models]
        # (sentences, models): r(s1|m1), r(s1|m2), r(s2|m1), r(s2|m2)
        ranks = self.doubled[np.ix_(np.array(columns), indices)].T / (2 * len(self.rows))
        sentences = self.table.sentences
        first, second = (None if sentences is None else sentences[row] for row in rows)
        content = rows if sentences is None else (first, second)
        name = content_id("pair", *models, *content)
        return Pair(name, *models, first, second, *rows, *ranks.ravel().tolist())

    @cached_property
    def kept_pairs(self) -> dict[str, Pair]:
        """Identifier → kept pair that can be selected from this stratum."""
        pairs: dict[str, Pair] = {}
        usable = {*self.rows[self.usable].tolist()}
        for item_id, item in (entry for items in self.all_kept for entry in items.items()):
            rows = tuple(self.table.rows.get(sentence, -1) for sentence in item.sentences)
            models = (item.model_1, item.model_2)
            if usable.issuperset(rows) and models in self.counts:
                pair = replace(self.pair(models, (rows[0], rows[1])), trial_id=item_id)
                accepted = min(pair.rank_1_model_2, pair.rank_2_model_1) >= 0.5
                below = max(pair.rank_1_model_1, pair.rank_2_model_2) < 0.5
                if accepted and (below or self.agreeing):
                    pairs[item_id] = pair
        return pairs

    @cached_property
    def free(self) -> tuple[BoolArray, BoolArray]:
        """Two masks, (n,) each: usable sentences that were not rejected; sentences in kept trials.

        A kept trial was reviewed and not rejected.
        """
        sentences, usable = self.table.sentences, self.usable
        if self.review is None or sentences is None:
            return usable, np.zeros_like(usable)
        rejected, is_in_trial = (
            np.array([sentences[row].words in words for row in self.rows.tolist()])
            if words
            else np.zeros_like(usable)
            for words in (self.review.rejected_words, self.review.shown_words)
        )
        return usable & ~rejected, is_in_trial

    @cached_property
    def arcs(self) -> tuple[IntArray, IntArray, IntArray]:
        """Index of the source, index of the sentence, and doubled rank of each candidate sentence.

        The docstring of `select_natural` explains the choice of candidates. Sentences in kept
        trials are treated as more expensive than all other sentences.
        """
        doubled, (free, is_in_trial) = self.doubled, self.free
        keys = doubled + is_in_trial * (2 * doubled.shape[1] + 1)
        demand = sum(self.sources.values())
        indices, costs = [], []
        for reject, accept in permutations(range(len(doubled)), 2):
            admitted = np.flatnonzero(free & self.admits(doubled[reject], doubled[accept]))
            key = keys[reject, admitted]
            if len(key) > demand:
                # Keep all sentences that tie with the last candidate; `argsort` below breaks ties
                near = key <= np.partition(key, demand - 1)[demand - 1]
                admitted, key = admitted[near], key[near]
            # Ties: lower row numbers first
            cheapest = admitted[np.argsort(key, kind="stable")[:demand]]
            indices.append(cheapest)
            costs.append(doubled[reject, cheapest])
        sources = np.repeat(np.arange(len(indices)), list(map(len, indices)))
        return sources, np.concatenate(indices), np.concatenate(costs)

    @cached_property
    def program(self) -> Program:
        """Program with two kinds of rules.

        Each source needs a certain number of sentences, and no sentence is used twice.
        """
        sources, indices, ranks = self.arcs
        pairs, n_kept = [*self.kept_pairs.values()], len(self.kept_pairs)
        rows = np.array([(p.row_1, p.row_2) for p in pairs], dtype=np.int64).reshape(-1, 2)
        kept_indices = np.searchsorted(self.rows, rows)
        # The cost of a pair is the sum of two doubled ranks
        both_ranks = np.array([p.rank_1_model_1 + p.rank_2_model_2 for p in pairs])
        kept_costs = np.rint(2 * len(self.rows) * both_ranks)
        number = {source: k for k, source in enumerate(self.sources)}
        both = [(number[p.model_1, p.model_2], number[p.model_2, p.model_1]) for p in pairs]
        # Each candidate sentence is subject to two rules, and each kept pair to four rules
        columns = np.concatenate([np.repeat(np.arange(n_kept), 2), n_kept + np.arange(len(ranks))])
        kept_sources = np.array(both, dtype=np.int64).reshape(-1)
        all_sources = np.concatenate([kept_sources, sources])
        all_indices = np.concatenate([kept_indices.ravel(), indices])
        rules = []
        by_source = group_indices(all_sources, len(self.sources))
        for ((reject, accept), need), entries in zip(self.sources.items(), by_source, strict=True):
            name = f"sentences{self.of_length} that {reject} rejects and {accept} accepts"
            weights = np.ones_like(entries)
            rules.append(LinearRule(name, columns[entries], weights, need, need, "per_pair"))
        used, numbers = np.unique(all_indices, return_inverse=True)
        texts, by_sentence = self.table.sentences, group_indices(numbers, len(used))
        for row, entries in zip(self.rows[used].tolist(), by_sentence, strict=True):
            name = f"a sentence is in one pair ({row if texts is None else texts[row].text!r})"
            rules.append(LinearRule(name, columns[entries], np.ones_like(entries), 0, 1))
        is_in_trial = np.append(np.zeros(n_kept, np.bool_), self.free[1][indices])
        goals = review_goals(self.all_kept, self.candidate_of_item, is_in_trial)
        return Program.of([*goals, np.concatenate([kept_costs, ranks])], rules)

    def pairs(self, chosen: BoolArray) -> list[Pair]:
        """Make the selected pairs: kept pairs, and pairs of the other chosen sentences."""
        sources, indices, _ = self.arcs
        pairs = [*compress(self.kept_pairs.values(), chosen)]
        used = np.flatnonzero(chosen[len(self.kept_pairs) :])
        number = {source: k for k, source in enumerate(self.sources)}
        for models in self.counts:
            # Sentences that model_1 rejects, then sentences that model_2 rejects
            sides = (
                self.rows[indices[used[sources[used] == number[source]]]].tolist()
                for source in (models, models[::-1])
            )
            matches = match_sentences(self.table.sentences, *sides)
            pairs += [self.pair(models, rows) for rows in matches]
        return pairs

    def changed(self, chosen: BoolArray) -> tuple[ChangedItem, ...]:
        """Return the kept pairs that are not chosen."""
        return changed_items(self.program, self.candidate_of_item, chosen, hard=self.of_sentences)

    @property
    def candidate_of_item(self) -> dict[str, int]:
        """Identifier of a kept pair → index of its candidate."""
        return {item_id: number for number, item_id in enumerate(self.kept_pairs)}

    @property
    def of_sentences(self) -> range:
        """Indices of the rules that allow each sentence only once."""
        return range(len(self.sources), len(self.program.names))


def strata(
    table: ScoreTable, question: NaturalQuestion, excluded: Collection[Sentence] = ()
) -> list[Stratum]:
    """Return the strata from which pairs are selected independently.

    If `same_length` is set, each length (number of words) has a stratum. Its number of pairs is
    proportional to its number of sentences. Lengths for which this number of pairs is 0 are
    omitted.

    Raises:
        InputError: if there are fewer than two models, or a count is for models that the table
            lacks. Also if a rule about sentences needs texts, but the table has no texts.
    """
    if len(table.models) < 2:
        raise InputError(f"The scores must be of at least 2 models, got {len(table.models)}.")
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
        counts = {pair: share[words] for pair, share in shares.items()}
        parts.append(replace(stratum, words=words, rows=rows, usable=usable[rows], counts=counts))
    return [part for part in parts if any(part.counts.values())]


def length_shares(count: int, sizes: Mapping[int, int]) -> dict[int, int]:
    """Distribute pairs over lengths in proportion to the numbers of sentences (Hamilton's method).

    The largest remainders are rounded up. Of equal remainders, shorter lengths come first.
    `sizes` maps numbers of words to numbers of sentences.
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
    """Return a mask of the rows that the rules about sentences allow, (n,).

    Of sentences with the same words, only the first is allowed, even if their end marks differ.
    """
    if table.sentences is None:
        if excluded or question.no_repeats or question.same_length:
            raise InputError(
                "`no_repeats`, `same_length` and `exclude` need texts, but the table contains only "
                "scores. Add the column 'sentence', or leave these rules out."
            )
        return np.ones(len(table.log_probs), dtype=np.bool_)
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


TIE_RULE = (
    "tied log-probabilities share their mean rank; of sentences of equal rank those with lower row "
    "numbers are candidates first; the solver chooses among selections of equal cost; inside a "
    "model pair sentences are matched in this order: statements before questions, then length, "
    "then row number"
)


def select_natural(
    table: ScoreTable,
    question: NaturalQuestion | None = None,
    *,
    excluded: Collection[Sentence] = (),
    review: Review | None = None,
) -> NaturalSelection:
    """Select the most controversial natural pairs for every two models.

    In a pair of sentences s1 and s2, model m1 rejects s1, and model m2 rejects s2. The selection
    minimises the sum of r(s1|m1) + r(s2|m2) over all selected pairs. Here, r is the fractional rank
    in the stratum. Each pair satisfies r(s1|m2) >= 0.5 and r(s2|m1) >= 0.5. Unless `agreeing` is
    set, the pair also satisfies r(s1|m1) < 0.5 and r(s2|m2) < 0.5. With these four conditions, each
    model prefers the sentence that the other model rejects. No sentence is in two pairs. The sum
    does not depend on which s1 is matched with which s2; see `match_sentences`.

    Let D be the number of sentences that all sources need together. The cost of a sentence is its
    rank under the model that rejects it. The program contains only the D cheapest admissible
    sentences of each source. These sentences suffice. Suppose that a selection uses a more
    expensive sentence of a source. It has only D - 1 other sentences, so at least one of the D
    cheapest sentences of this source is not selected. The cheaper sentence can replace the more
    expensive one.

    After a review, sentences of rejected items are excluded. As many other reviewed pairs as
    possible are selected again, even if the sum of ranks increases.

    Args:
        table: scores of all sentences. Without texts, sentences are matched by row number. Of
            sentences that differ only in end marks, only the first can be selected.
        question: number of pairs and rules; by default ten pairs for every two models.
        excluded: sentences that are ranked but not selected; end marks are ignored.
        review: review of earlier selections.

    Raises:
        InputError: if there are fewer than two models, or a count is for models that the table
            lacks. Also if a review, or a rule about sentences, needs texts, but the table has no
            texts.
        InfeasibleError: if there are too few sentences. The message names the models, and the
            number of pairs that can be selected.
        VerificationError: if the time limit was reached, or the result failed `verify_natural`.
    """
    started = perf_counter()
    question = question or NaturalQuestion()
    if review is not None and table.sentences is None:
        raise InputError("A review needs texts. Add the column 'sentence' to the table of scores.")
    kept_items = [] if review is None else review.kept_items(ItemKind.PAIR)
    parts = [
        replace(stratum, review=review, all_kept=kept_items)
        for stratum in strata(table, question, excluded)
    ]
    solutions = [solve(part.program) for part in parts]
    if None in solutions:
        raise _infeasible(table, question, parts, excluded)
    solved = [(p, s) for p, s in zip(parts, solutions, strict=True) if s is not None]
    order = {models: number for number, models in enumerate(combinations(table.models, 2))}
    pairs = sorted(
        (pair for part, solution in solved for pair in part.pairs(solution.chosen)),
        key=lambda pair: (order[pair.model_1, pair.model_2], pair.row_1),
    )
    largest = [2 * len(part.rows) for part in parts]  # doubled ranks
    objective, bound = (
        float(sum(map(Fraction, map(round, values), largest)))
        for values in ([s.objective for _, s in solved], [s.bound for _, s in solved])
    )
    exact = all(solution.exact for _, solution in solved)
    n_candidates = sum(part.n_candidates() for part in parts)
    certificate = Certificate.of(question, (objective, bound), n_candidates, TIE_RULE, exact)
    changed = [item for part, solution in solved for item in part.changed(solution.chosen)]
    candidates = {item_id for part in parts for item_id in part.kept_pairs}
    lost = (items[i] for items in kept_items for i in items if i not in candidates)
    changed += [_why_lost(item, table, question, excluded) for item in lost]
    selection = NaturalSelection(tuple(pairs), certificate, tuple(changed))
    verify_natural(table, selection, excluded=excluded, review=review)
    return replace(selection, certificate=replace(certificate, seconds=perf_counter() - started))


def _why_lost(
    item: ReviewedItem, table: ScoreTable, question: NaturalQuestion, excluded: Collection[Sentence]
) -> ChangedItem:
    """Find the rule that excludes a kept pair from the candidates."""
    name, models = item.source_id or item.item_id, (item.model_1, item.model_2)
    if models not in combinations(table.models, 2):
        return ChangedItem(name, f"the scores do not compare {models[0]} with {models[1]}")
    if not table.rows.keys() >= {*item.sentences}:
        return ChangedItem(name, "the scores lack one of its sentences")
    without = replace(question, no_repeats=False, same_length=False, agreeing=True)
    looser = {
        "exclude": (question, ()),
        "no_repeats": (replace(question, no_repeats=False), excluded),
        "same_length": (replace(question, same_length=False), excluded),
        "agreeing": (replace(question, agreeing=True), excluded),
        "": (without, ()),
    }
    for key, (loosened, left_out) in looser.items():
        parts = strata(table, loosened, left_out)
        if any(replace(part, all_kept=[{name: item}]).kept_pairs for part in parts):
            return ChangedItem(name, f"the rule `{key}`" if key else "several rules", key)
    return ChangedItem(name, "a model does not prefer the sentence that it should")


def match_sentences(
    sentences: Sequence[Sentence] | None, rows_1: Iterable[int], rows_2: Iterable[int]
) -> list[tuple[int, int]]:
    """Match sentences of two lists one to one, so that the sentences of a pair are similar.

    Sort each list: statements before questions, then by length (characters without the end mark),
    then by row number. Match sentences with the same index in the sorted lists. This order matches
    as few questions as possible with statements. If no question is matched with a statement, the
    sum of the differences in length is minimal. If `sentences` is None, sort rows only by number.
    """

    def key(row: int) -> tuple[bool, int, int]:
        if sentences is None:
            return False, 0, row
        return sentences[row].is_question, len(sentences[row].bare), row

    return list(zip(sorted(rows_1, key=key), sorted(rows_2, key=key), strict=True))


def _infeasible(
    table: ScoreTable,
    question: NaturalQuestion,
    parts: Sequence[Stratum],
    excluded: Collection[Sentence],
) -> InfeasibleError:
    """Return an error that names sources with too few sentences, and the possible `per_pair`."""
    below = "" if question.agreeing else "below 0.5 under {} and "
    reasons = []
    for part in parts:
        reachable = np.bincount(part.arcs[0], minlength=len(part.sources)).tolist()
        violations = least_violations(part.program, hard=part.of_sentences)
        for number, ((reject, accept), needs) in enumerate(part.sources.items()):
            lacks, why = violations.get(number, 0), "other pairs need the same sentences"
            if reachable[number] < needs:
                rank = f"rank {below.format(reject)}at least 0.5 under {accept}"
                lacks = needs - reachable[number]
                why = f"only {reachable[number]} usable sentences {rank}"
            if lacks:
                which = f"{lacks} of {needs} sentences{part.of_length}"
                reasons.append(f"{reject} against {accept} lacks {which}: {why}")

    review = parts[0].review

    def is_too_many(number: int) -> bool:
        counts = tuple((a, b, min(count, number)) for a, b, count in question.counts)
        fewer = replace(question, per_pair=min(question.per_pair, number), counts=counts)
        fewer_parts = (replace(part, review=review) for part in strata(table, fewer, excluded))
        return any(solve(part.program) is None for part in fewer_parts)

    # Bisection for the largest number of pairs that can be selected
    largest_count = max(question.per_pair, *(count for *_, count in question.counts), 0)
    feasible_count = bisect_left(range(1, largest_count), True, key=is_too_many)
    allow = ", set `agreeing` to allow pairs that both models order in the same way"
    return InfeasibleError(
        f"There are too few sentences for {quantity(question.per_pair, 'pair')} for every two "
        f"models; at most {quantity(feasible_count, 'pair')} can be selected for every two models. "
        "Missing sentences (rejecting model against accepting model): "
        f"{'; '.join(reasons)}. Score more sentences, lower `per_pair`"
        f"{allow * (not question.agreeing)}, or leave models out."
    )
