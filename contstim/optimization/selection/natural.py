"""Exact selection of controversial natural pairs (2023, Eqs. 5-6), with a proof of optimality."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, permutations
from math import floor
from time import perf_counter
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contstim.errors import InfeasibleError
from contstim.optimization.selection import flow
from contstim.optimization.selection.programs import LinearRule, best_choice
from contstim.optimization.selection.question import (
    NaturalCertificate,
    NaturalQuestion,
    NaturalSelection,
)
from contstim.optimization.selection.reviewed import reviewed_pairs, unfree_words
from contstim.optimization.selection.strata import rank_sums, strata
from contstim.optimization.selection.verification import verify_natural
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from contstim.files.arrays import BoolArray, IntArray
    from contstim.items.reviews import Review
    from contstim.items.scores import ScoreTable
    from contstim.items.stimuli import Pair
    from contstim.optimization.selection.strata import Stratum
    from contstim.words.sentence import Sentence

    Arcs: TypeAlias = tuple[IntArray, IntArray, IntArray]

_SECONDS = 60.0  # to find which reviewed pairs stay where not all can
_ROUNDING = 1e-6  # of the solver's whole numbers

TIE_RULE = (
    "tied log-probabilities share their mean rank; among sentences of equal rank lower row numbers "
    "are candidates first; among selections of equal cost the solver's stands; inside a model pair "
    "sentences meet in this order: statements before questions, then length, then row number"
)


def select_natural(
    table: ScoreTable,
    question: NaturalQuestion | None = None,
    *,
    excluded: Collection[Sentence] = (),
    review: Review | None = None,
) -> NaturalSelection:
    """Choose the most controversial natural pairs for every model pair.

    Minimises the sum of r(s1|m1) + r(s2|m2) over all chosen pairs, where r(s1|m1) < 0.5 <= r(s1|m2)
    and r(s2|m2) < 0.5 <= r(s2|m1) and no sentence is used twice; r is the fractional rank among all
    sentences. So each model prefers the sentence that the other rejects. Which s1 meets which s2
    inside a model pair does not change that sum; they are matched so that as few
    questions as can be meet statements, and then by length (characters, without end marks).

    This is a transportation problem: every ordered pair (reject, accept) is a source that needs so
    many sentences, every sentence serves once. With D the total demand, a source never needs more
    than its D cheapest admissible sentences: were it served by another, the remaining D - 1 units
    would leave one of these free, and no dearer. So a min-cost flow over few sentences is exact for
    all, and the certificate proves it over all of them. With the same length asked for, each number
    of words is such a problem of its own.

    After a review, all pairs that were not rejected stay as they are, as far as the question still
    allows them: they share no sentence. The rest is the best choice among the sentences left. Where
    these are too few, as few others change as can (a program in whole numbers, with its bound).

    Args:
        table: scores of all sentences; without texts, lengths are unknown and row numbers decide.
            Of sentences that look alike to people, whatever their end marks, only the first row
            can be chosen.
        question: what to choose; by default ten pairs for each model pair.
        excluded: sentences that are not chosen, whatever their end mark, and keep their ranks.
        review: of an earlier selection; both sentences of a rejected pair are chosen no more, and
            keep their ranks. Where fewer pairs are asked for than stood, the best of them stay.

    Raises:
        InputError: fewer than two models, counts for a pair that is not there, a rule about words
            or sentences or a review without texts, or a review of something else.
        InfeasibleError: too few sentences; names the model pairs that fail, and how many pairs can
            be had.
        VerificationError: the result failed its check (`verify_natural`).
    """
    started = perf_counter()
    question = question or NaturalQuestion()
    reviewed = {} if review is None else reviewed_pairs(review, table)
    rejected = frozenset[str]() if review is None else review.rejected

    def answer(question: NaturalQuestion, *, shared: bool, fewest: bool = False) -> list[_Part]:
        taken = frozenset() if review is None else unfree_words(review, shared=shared)
        solve = _fewest_changes if fewest else _best
        return [
            solve(stratum, stratum.standing(reviewed, rejected), taken)
            for stratum in strata(table, question, excluded)
        ]

    # After a review, sentences of other trials and other changes only where need be
    ways = ((False, False), (True, False), (True, True))
    for shared, fewest in ways if review is not None else ways[:1]:
        parts = answer(question, shared=shared, fewest=fewest)
        if not _lacks(parts):
            break
    else:
        raise _infeasible(question, parts, lambda fewer: _lacks(answer(fewer, shared=True)))
    # Pairs stand in the order of the models, then of rows, whatever their stratum.
    order = {models: number for number, models in enumerate(combinations(table.models, 2))}
    pairs = sorted(
        (pair for part in parts for pair in part.pairs),
        key=lambda pair: (order[pair.model_1, pair.model_2], pair.row_1),
    )
    certificate = replace(
        _certify(table, question, parts),
        excluded=len({sentence.words for sentence in excluded}),
        reviewed=len(reviewed),
        rejected=len(rejected & reviewed.keys()),
        shared=shared,
    )
    selection = NaturalSelection(tuple(pairs), certificate)
    verify_natural(table, selection, excluded=excluded, review=review)
    return replace(selection, certificate=replace(certificate, seconds=perf_counter() - started))


@dataclass(frozen=True, eq=False)
class _Part:
    """The answer to one stratum's question.

    Attributes:
        stratum: which sentences, and how many pairs of them.
        standing: reviewed pairs that stay.
        taken: words of sentences that may not be chosen.
        needs: (n_sources,) sentences that each source needs beside those that stay.
        reachable: (n_sources,) sentences that it may use, as far as they were looked at.
        shortfall: (n_sources,) sentences that it lacks.
        lacked: (n_sources,) sentences that it lacks where all that may do stay.
        kept_bound: no more reviewed pairs can stay.
        chosen: the indices of the sentences of each source, in turn; where one lacks any, none.
        prices: (n_sources,), likewise.
    """

    stratum: Stratum
    standing: list[Pair]
    taken: frozenset[tuple[str, ...]]
    needs: IntArray
    reachable: IntArray
    shortfall: IntArray
    lacked: IntArray
    kept_bound: int
    chosen: Sequence[IntArray] = ()
    prices: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @cached_property
    def pairs(self) -> list[Pair]:
        """The pairs that stay, by their names, and the new ones, matched."""
        table, rows = self.stratum.table, self.stratum.rows
        of_source = dict(zip(permutations(table.models, 2), self.chosen, strict=True))
        new = []
        for models in combinations(table.models, 2):
            # Sentence 1 is rejected by model 1, so it is of the source (model 1, model 2).
            sides = (rows[of_source[source]].tolist() for source in (models, models[::-1]))
            matches = match_sentences(table.sentences, *sides)
            new += [self.stratum.pair(models, rows) for rows in matches]
        return [*self.standing, *new]


def _best(stratum: Stratum, standing: list[Pair], taken: frozenset[tuple[str, ...]]) -> _Part:
    """Pairs of a stratum that stay, and the best choice of the rest.

    Args:
        stratum: what to choose from.
        standing: pairs that stay.
        taken: words of sentences that may not be chosen.
    """
    needs = stratum.needs(standing)
    # One sentence more than the total demand: so each source's cheapest idle one is among them.
    arcs = _cheapest_arcs(stratum, stratum.free(taken, standing), int(needs.sum()) + 1)
    source, sentence, _ = arcs
    used, shortfall = flow.transportation(needs, *arcs)
    reachable = np.bincount(source, minlength=len(needs))
    stay = len(standing)
    part = _Part(stratum, standing, taken, needs, reachable, shortfall, shortfall, stay)
    if shortfall.any():
        return part
    # Arcs are sorted by source, and `used` ascends: the indices of each source, in turn.
    chosen = np.split(sentence[used], np.cumsum(needs)[:-1])
    return replace(part, chosen=chosen, prices=_prices(stratum, arcs, used, needs))


def _fewest_changes(
    stratum: Stratum, standing: list[Pair], taken: frozenset[tuple[str, ...]]
) -> _Part:
    """The same where not all reviewed pairs can stay: as many as can, by a whole-number program."""
    every = _best(stratum, standing, taken)
    if not every.shortfall.any() or not standing:
        return every
    needs = stratum.needs(())
    source, sentence, _ = _cheapest_arcs(stratum, stratum.free(taken, ()), int(needs.sum()) + 1)
    # Candidates are the reviewed pairs, then the arcs
    n = len(standing)
    uses: dict[int, list[int]] = defaultdict(list)  # row → candidates
    for k, pair in enumerate(standing):
        for row in (pair.row_1, pair.row_2):
            uses[row].append(k)
    for k, row in enumerate(stratum.rows[sentence].tolist(), start=n):
        uses[row].append(k)
    rules = [LinearRule(f"row {row}", who, [1] * len(who), 0, 1) for row, who in uses.items()]
    for number, models in enumerate(permutations(stratum.table.models, 2)):
        stay = [k for k, p in enumerate(standing) if {p.model_1, p.model_2} == {*models}]
        members = [*stay, *(n + np.flatnonzero(source == number)).tolist()]
        need = int(needs[number])
        rules.append(LinearRule(f"source {number}", members, [1] * len(members), need, need))
    choice = best_choice(np.repeat([-1.0, 0.0], [n, len(source)]), rules, seconds=_SECONDS)
    if choice.chosen is None:
        return every
    kept = [pair for pair, stays in zip(standing, choice.chosen[:n], strict=True) if stays]
    part = _best(stratum, kept, taken)
    return replace(part, kept_bound=floor(_ROUNDING - choice.bound), lacked=every.shortfall)


def _cheapest_arcs(stratum: Stratum, free: BoolArray, count: int) -> Arcs:
    """Arcs of each source to its `count` cheapest admissible sentences, or to all there are.

    The number of (reject, accept) among the models' permutations, by which they are sorted, the
    index of a sentence in the stratum, and its doubled rank under the reject model; (n_arcs,) each.
    """
    doubled = stratum.doubled
    # Free sentences by rank, one order for each reject model.
    orders = [np.argsort(ranks, kind="stable") for ranks in doubled]
    orders = [order[free[order]] for order in orders]
    indices, costs = [], []  # of each source
    for reject, accept in permutations(range(len(doubled)), 2):
        order = orders[reject]
        admissible = stratum.admits(doubled[reject], doubled[accept])
        cheapest = order[admissible[order]][:count]
        indices.append(cheapest)
        costs.append(doubled[reject, cheapest])
    source = np.repeat(np.arange(len(indices)), list(map(len, indices)))
    return source, np.concatenate(indices), np.concatenate(costs)


def _prices(stratum: Stratum, arcs: Arcs, chosen: IntArray, needs: IntArray) -> IntArray:
    """Dual prices of a plan over all sentences, (n_sources,); 0 where nothing is needed."""
    # Costs of every chosen sentence to every source, (n_sources, n_chosen), and of each source's
    # cheapest sentence that is not chosen, (n_sources,): one more than was needed has been looked
    # at, so that there is one, or none at all.
    source, sentence, cost = arcs
    n_models, n_sentences = stratum.doubled.shape
    reject, accept = np.array(list(permutations(range(n_models), 2))).T
    ranks = stratum.doubled[:, sentence[chosen]]  # (n_models, n_chosen)
    costs = np.where(stratum.admits(ranks[reject], ranks[accept]), ranks[reject], flow.NEVER)
    # No rearrangement saves as much as this: it stands for "no sentence is idle".
    cheapest = np.full(len(needs), (len(needs) + 1) * 2 * n_sentences + 1)
    idle = ~np.isin(sentence, sentence[chosen])
    np.minimum.at(cheapest, source[idle], cost[idle])
    cheapest[needs == 0] = 0
    return flow.dual_prices(costs, source[chosen], cheapest)


def match_sentences(
    sentences: Sequence[Sentence] | None, rows_1: Iterable[int], rows_2: Iterable[int]
) -> list[tuple[int, int]]:
    """Match rows one to one: as few questions as can be with statements, then by length.

    Length is the number of characters without the end mark. Where no question meets a statement,
    the summed difference is smallest among statements, and among questions. For absolute
    differences on a line, the shortest meets the shortest, and so on up: uncrossing two matches
    never adds to the sum. Equal lengths, or all sentences where texts are unknown, go by row
    number.
    """

    def key(row: int) -> tuple[bool, int, int]:
        if sentences is None:
            return False, 0, row
        return sentences[row].is_question, len(sentences[row].bare), row

    return list(zip(sorted(rows_1, key=key), sorted(rows_2, key=key), strict=True))


def _certify(
    table: ScoreTable, question: NaturalQuestion, parts: Sequence[_Part]
) -> NaturalCertificate:
    sources = list(permutations(table.models, 2))
    candidates = 0
    for stratum in (part.stratum for part in parts):
        # (n_models, n_sentences): ranks from the median on
        accepted = stratum.doubled >= len(stratum.rows)
        candidates += int((accepted.any(axis=0) & ~accepted.all(axis=0) & stratum.usable).sum())
    totals = tuple(p.stratum.totals(p.pairs, p.standing, p.taken, p.prices) for p in parts)
    objective, bound = rank_sums(totals)
    admissible = np.sum([part.stratum.admissible() for part in parts], axis=0).tolist()
    lacked = np.sum([part.lacked for part in parts], axis=0).tolist()
    return NaturalCertificate(
        objective=objective,
        bound=bound,
        status="optimal",  # verified, like all the rest, before anybody sees it
        solver=flow.SOLVER,
        version=flow.solver_version(),
        tie_rule=TIE_RULE,
        candidates=candidates,
        kept=sum(len(part.standing) for part in parts),
        kept_bound=sum(part.kept_bound for part in parts),
        against=tuple(
            (f"sentences for {reject} against {accept}", n)
            for (reject, accept), n in zip(sources, lacked, strict=True)
            if n
        ),
        question=question,
        models=table.models,
        n_sentences=len(table.log_probs),
        excluded=0,
        strata=totals,
        prices=tuple(
            (part.stratum.words, *source, price)
            for part in parts
            for source, price in zip(sources, part.prices.tolist(), strict=True)
        ),
        admissible=tuple((*source, n) for source, n in zip(sources, admissible, strict=True)),
    )


def _lacks(parts: Iterable[_Part]) -> bool:
    """True if there are too few sentences."""
    return any(part.shortfall.any() for part in parts)


def _infeasible(
    question: NaturalQuestion, parts: Sequence[_Part], lacks: Callable[[NaturalQuestion], bool]
) -> InfeasibleError:
    # Too few admissible sentences explain a lack by themselves; else other sources need the same.
    below = "" if question.agreeing else "below 0.5 under {} and "
    reasons = []
    for part in parts:
        of_length = f" of {part.stratum.words} words" if part.stratum.words else ""
        sources = permutations(part.stratum.table.models, 2)
        numbers = zip(sources, part.needs, part.reachable, part.shortfall, strict=True)
        for (reject, accept), needs, has, short in numbers:
            lacks_so_many, why = short, "others need the same ones"
            if has < needs:
                rank = f"rank {below.format(reject)}at least 0.5 under {accept}"
                lacks_so_many, why = needs - has, f"only {has} usable ones {rank}"
            if lacks_so_many:
                which = f"{lacks_so_many} of {needs} sentences{of_length}"
                reasons.append(f"{reject} against {accept} lacks {which}: {why}")
    stay = sum(len(part.standing) for part in parts)
    beside = f" beside the {counted(stay, 'reviewed pair')} that stay" if stay else ""

    def at_most(number: int) -> NaturalQuestion:
        counts = tuple((a, b, min(count, number)) for a, b, count in question.counts)
        return replace(question, per_pair=min(question.per_pair, number), counts=counts)

    # The largest number that can be had: a bisection, since fewer pairs need fewer sentences
    asked = max(question.per_pair, *(count for *_, count in question.counts), 0)
    most = bisect_left(range(1, asked), True, key=lambda number: lacks(at_most(number)))
    agree = "" if question.agreeing else ", allow pairs that both models order alike (agreeing)"
    return InfeasibleError(
        f"There is no set of {counted(question.per_pair, 'pair')} for every model pair{beside}: "
        f"{counted(most, 'pair')} for every model pair can be had. By reject against accept model: "
        f"{'; '.join(reasons)}. Score more sentences, ask for fewer pairs{agree}, or leave models "
        f"out."
    )
