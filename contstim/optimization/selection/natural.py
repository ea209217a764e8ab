"""Exact selection of controversial natural pairs (2023, Eqs. 5-6), with a proof of optimality."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, permutations
from math import floor
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InfeasibleError, InputError
from contstim.optimization.selection.certificate import Certificate, NaturalSelection
from contstim.optimization.selection.demand import Demand, usable_rows
from contstim.optimization.selection.duals import NEVER, dual_prices, sentence_prices
from contstim.optimization.selection.natural_verification import verify_natural
from contstim.optimization.selection.programs import LinearRule, best_choice
from contstim.optimization.selection.reviewed import reviewed_pairs, unfree_words
from contstim.optimization.selection.solver import SOLVER, solver_version, transportation
from contstim.stimuli import Pair, content_id
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from contstim.arrays import BoolArray, IntArray
    from contstim.optimization.selection.demand import StandingPair, Stratum
    from contstim.reviews import Review, ReviewedItem
    from contstim.scores import ScoreTable
    from contstim.sentence import Sentence

_SECONDS = 60.0  # to find which reviewed pairs stay where not all can
_ROUNDING = 1e-6  # of the solver's whole numbers

TIE_RULE = (
    "tied log-probabilities share their mean rank; among sentences of equal rank lower row numbers "
    "are candidates first; among selections of equal cost the solver's stands; inside a model pair "
    "sentences meet in order of length, then row number"
)


def select_natural(
    table: ScoreTable,
    *,
    per_pair: int,
    repeatable: frozenset[str] | None = None,
    counts: Mapping[tuple[str, str], int] | None = None,
    excluded: Collection[Sentence] = (),
    same_length: bool = False,
    agreeing: bool = False,
    review: Review | None = None,
) -> NaturalSelection:
    """Choose the most controversial natural pairs, `per_pair` for every model pair.

    Minimises the sum of r(s1|m1) + r(s2|m2) over all chosen pairs, where r(s1|m1) < 0.5 <= r(s1|m2)
    and r(s2|m2) < 0.5 <= r(s2|m1) and no sentence is used twice; r is the fractional rank among all
    sentences. So each model prefers the sentence that the other rejects. Which s1 meets which s2
    inside a model pair does not change that sum; they are matched so that the summed difference in
    length (characters, without end marks) is smallest.

    This is a transportation problem: every ordered pair (reject, accept) is a source that needs
    `per_pair` sentences, every sentence serves once. With D the total demand, a source never needs
    more than its D cheapest admissible sentences: were it served by another, the remaining D - 1
    units would leave one of these free, and no dearer. So a min-cost flow over few sentences is
    exact for all, and the certificate proves it over all of them.

    With the same length asked for, each number of words is such a problem of its own: ranks are
    among the sentences of that length, and so many pairs of every model pair are made of them as is
    their share of the table.

    After a review, all pairs that were not rejected stay as they are, as far as the question still
    allows them: they share no sentence. The rest is the best choice among the sentences left. Where
    these are too few, as few others change as can (a program in whole numbers, with its bound).

    Args:
        table: scores of all sentences; without texts, lengths are unknown and row numbers decide.
        per_pair: pairs for each unordered model pair, at least 1.
        repeatable: where given, sentences in which any other word repeats (compared in lower case)
            are not chosen, though they keep their ranks.
        counts: model pairs, in the order of the table's columns, that need another number than
            `per_pair`; 0 leaves one out.
        excluded: sentences that are not chosen, whatever their end mark, and keep their ranks.
        same_length: whether both sentences of a pair have the same number of words.
        agreeing: whether r(s1|m1) and r(s2|m2) may be 0.5 or more, as in the 2023 study: both
            models may then prefer the same sentence.
        review: of an earlier selection; both sentences of a rejected pair are chosen no more, and
            keep their ranks. Where fewer pairs are asked for than stood, the best of them stay.

    Sentences that look alike to people, whatever their end marks, count once: only the first row
    can be chosen.

    Raises:
        InputError: `per_pair` below 1, fewer than two models, counts for a pair that is not there,
            a rule about words or sentences or a review without texts, or a review of something
            else.
        InfeasibleError: too few sentences; names the model pairs that fail, and how many pairs can
            be had.
        VerificationError: the result failed its check (`verify_natural`).
    """
    started = perf_counter()
    question = Demand(table.models, per_pair, counts or {}, agreeing)
    banned = frozenset(sentence.words for sentence in excluded)
    _check_texts(table, repeatable, banned, review)
    usable = usable_rows(table, repeatable, banned)
    reviewed = {} if review is None else reviewed_pairs(review, table)
    rejected = frozenset() if review is None else review.rejected
    # Neither what stays, here or in other trials, nor what was rejected can be chosen anew.

    def answer(question: Demand, *, shared: bool = True, fewest: bool = False) -> list[_Part]:
        taken = frozenset() if review is None else unfree_words(review, shared=shared)
        best = _part_of_fewest_changes if fewest else _best_part
        return [
            best(table, question.models, stratum, usable, reviewed, rejected, taken)
            for stratum in question.strata(table, same_length=same_length)
        ]

    parts = answer(question, shared=False)
    shared = review is not None and _lacks(parts)
    if shared:
        parts = answer(question)
    if shared and _lacks(parts):
        parts = answer(question, fewest=True)
    if _lacks(parts):
        raise _infeasible(question, parts, answer)
    # Pairs stand in the order of the models, then of rows, whatever their stratum.
    order = {model_pair: number for number, model_pair in enumerate(question.of_pair)}
    pairs = sorted(
        (pair for part in parts for pair in _pairs(table, part)),
        key=lambda pair: (order[pair.model_1, pair.model_2], pair.row_1),
    )
    certificate = replace(
        _certify(question, parts, usable, same_length=same_length),
        repeatable=None if repeatable is None else tuple(sorted(repeatable)),
        excluded=len(banned),
        reviewed=len(reviewed),
        rejected=len(rejected & reviewed.keys()),
        shared=shared,
    )
    selection = NaturalSelection(tuple(pairs), certificate)
    verify_natural(
        table,
        selection,
        per_pair=per_pair,
        repeatable=repeatable,
        counts=counts,
        excluded=excluded,
        same_length=same_length,
        agreeing=agreeing,
        review=review,
    )
    certificate = replace(selection.certificate, seconds=perf_counter() - started)
    return replace(selection, certificate=certificate)


@dataclass(frozen=True, eq=False)
class _Part:
    """The answer to one stratum's question.

    Attributes:
        stratum: which sentences, and how many pairs of them.
        standing: reviewed pairs that stay.
        demand: (n_sources,) sentences that each source needs beside those that stay.
        admissible: (n_sources,) sentences that it may use, as far as they were looked at.
        shortfall: (n_sources,) sentences that it lacks; the rest is of use where it lacks none.
        chosen: the places of the sentences of each source, in turn.
        prices: (n_sources,).
        objective: doubled ranks of all pairs, those that stay among them.
        bound: what the prices prove of it.
        kept_bound: no more reviewed pairs can stay.
        lacked: (n_sources,) sentences that each source lacks where all that may do stay.
    """

    stratum: Stratum
    standing: list[StandingPair]
    demand: IntArray
    admissible: IntArray
    shortfall: IntArray
    chosen: list[IntArray]
    prices: IntArray
    objective: int
    bound: int
    kept_bound: int
    lacked: IntArray


def _part_of_fewest_changes(
    table: ScoreTable,
    models: tuple[str, ...],
    stratum: Stratum,
    usable: BoolArray,
    reviewed: Mapping[str, ReviewedItem],
    rejected: frozenset[str],
    taken: frozenset[tuple[str, ...]],
) -> _Part:
    """The same where not all reviewed pairs can stay: as many as can, by a whole-number program."""
    given = (table, models, stratum, usable, reviewed, rejected, taken)
    every = _best_part(*given)
    if not every.shortfall.any() or not every.standing:
        return every
    free = usable[stratum.rows]
    free &= ~np.array([s.words in taken for s in _sentences_of(table, stratum)])
    counts = {frozenset(models): count for models, count in stratum.counts.items()}
    sources = [frozenset(source) for source in permutations(models, 2)]
    needs = [counts[source] for source in sources]
    arcs = _cheapest_arcs(stratum, free, sum(needs) + 1)
    # Candidates are the reviewed pairs, then the arcs
    n = len(every.standing)
    uses: dict[int, list[int]] = defaultdict(list)  # place → candidates
    for k, pair in enumerate(every.standing):
        for place in (pair.place_1, pair.place_2):
            uses[place].append(k)
    for k, place in enumerate(arcs.row.tolist(), start=n):
        uses[place].append(k)
    rules = [LinearRule(f"place {p}", who, [1] * len(who), 0, 1) for p, who in uses.items()]
    for number, (source, need) in enumerate(zip(sources, needs, strict=True)):
        stay = [k for k, p in enumerate(every.standing) if {p.model_1, p.model_2} == source]
        members = [*stay, *(n + np.flatnonzero(arcs.source == number)).tolist()]
        rules.append(LinearRule(f"source {number}", members, [1] * len(members), need, need))
    costs = np.repeat([-1.0, 0.0], [n, len(arcs.row)])
    choice = best_choice(costs, rules, seconds=_SECONDS)
    if choice.chosen is None:
        return every
    kept = [pair for pair, stays in zip(every.standing, choice.chosen[:n], strict=True) if stays]
    part = _best_part(*given, standing=kept)
    return replace(part, kept_bound=floor(_ROUNDING - choice.bound), lacked=every.shortfall)


def _sentences_of(table: ScoreTable, stratum: Stratum) -> list[Sentence]:
    return [] if table.sentences is None else [table.sentences[r] for r in stratum.rows.tolist()]


def _best_part(
    table: ScoreTable,
    models: tuple[str, ...],
    stratum: Stratum,
    usable: BoolArray,
    reviewed: Mapping[str, ReviewedItem],
    rejected: frozenset[str],
    taken: frozenset[tuple[str, ...]],
    *,
    standing: list[StandingPair] | None = None,
) -> _Part:
    """Pairs of a stratum that stay, by default all that can, and the best choice of the rest."""
    if standing is None:
        standing = stratum.best_standing(table, usable, reviewed, rejected)
    free = usable[stratum.rows]
    if reviewed and table.sentences is not None:
        # Sentences that stay and those that look like them, and those of rejected items
        taken |= {s.words for pair in standing for s in reviewed[pair.item_id].sentences}
        free &= ~np.array([s.words in taken for s in _sentences_of(table, stratum)])
    # Sources are the ordered pairs (reject, accept) in the order of `permutations`.
    stay = Counter(frozenset((pair.model_1, pair.model_2)) for pair in standing)
    counts = {frozenset(models): count for models, count in stratum.counts.items()}
    sources = [frozenset(source) for source in permutations(models, 2)]
    demand = np.array([counts[source] - stay[source] for source in sources])
    # One sentence more than the total demand: so each source's cheapest idle one is among them.
    arcs = _cheapest_arcs(stratum, free, int(demand.sum()) + 1)
    plan = transportation(demand, arcs.source, arcs.row, arcs.cost)
    admissible = np.bincount(arcs.source, minlength=len(demand))
    if plan.shortfall.any():
        none: list[IntArray] = []
        lacks = plan.shortfall
        return _Part(stratum, standing, demand, admissible, lacks, none, demand, 0, 0, 0, lacks)
    prices = _prices(stratum, arcs, plan.chosen, demand)
    fixed = sum(pair.cost for pair in standing)
    # What the sources pay less what the sentences earn: the dual objective (duals.py).
    earned = sentence_prices(stratum.doubled, prices, stratum.below)[free].sum()
    paid = int(demand @ prices) - int(earned)
    return _Part(
        stratum,
        standing,
        demand,
        admissible,
        plan.shortfall,
        # Arcs are sorted by source, and `chosen` ascends: the places of each source, in turn.
        np.split(arcs.row[plan.chosen], np.cumsum(demand)[:-1]),
        prices,
        fixed + int(arcs.cost[plan.chosen].sum()),
        fixed + paid,
        len(standing),
        plan.shortfall,
    )


@dataclass(frozen=True, eq=False)
class _Arcs:
    """Arcs from sources to the sentences that they may use, with costs; sorted by source."""

    source: IntArray  # (n_arcs,) place of (reject, accept) among the models' permutations
    row: IntArray  # (n_arcs,) place in the stratum
    cost: IntArray  # (n_arcs,) doubled rank under the reject model


def _check_texts(
    table: ScoreTable,
    repeatable: frozenset[str] | None,
    banned: frozenset[tuple[str, ...]],
    review: Review | None,
) -> None:
    if table.sentences is not None:
        return
    if banned:
        raise InputError(
            "Sentences can only be left out of a table that has their texts, and this one has "
            "scores only: add the column 'sentence' or leave the rule out."
        )
    if repeatable is not None:
        raise InputError(
            "The word-repetition rule needs the sentences' texts, and this table has scores only: "
            "add the column 'sentence' or leave the rule out."
        )
    if review is not None:
        raise InputError(
            "A review names pairs by their sentences, and this table has scores only: add the "
            "column 'sentence'."
        )


def _cheapest_arcs(stratum: Stratum, usable: BoolArray, count: int) -> _Arcs:
    """The `count` cheapest admissible sentences of each source, or all there are."""
    doubled = stratum.doubled
    # Usable rows by rank, one order for each reject model.
    orders = [np.argsort(ranks, kind="stable") for ranks in doubled]
    orders = [order[usable[order]] for order in orders]
    rows, costs = [], []  # of each source
    for reject, accept in permutations(range(len(doubled)), 2):
        order = orders[reject]
        admissible = stratum.admits(doubled[reject], doubled[accept])
        # About half are admissible and few are needed: look at a start of the order, doubled until
        # it holds enough or is the whole.
        seen = 4 * count
        while True:
            cheapest = order[:seen][admissible[order[:seen]]][:count]
            if len(cheapest) == count or seen >= len(order):
                break
            seen *= 2
        rows.append(cheapest)
        costs.append(doubled[reject, cheapest])
    source = np.repeat(np.arange(len(rows)), list(map(len, rows)))
    return _Arcs(source, np.concatenate(rows), np.concatenate(costs))


def _prices(stratum: Stratum, arcs: _Arcs, chosen: IntArray, demand: IntArray) -> IntArray:
    """Dual prices of the plan over all sentences, (n_sources,); 0 where nothing is demanded."""
    n_sources = len(demand)
    n_models, n_sentences = stratum.doubled.shape
    # Costs of every chosen sentence to every source, (n_sources, n_chosen), and of each source's
    # cheapest sentence that is not chosen, (n_sources,): one more than was needed has been looked
    # at, so that there is one, or none at all.
    reject, accept = np.array(list(permutations(range(n_models), 2))).T
    ranks = stratum.doubled[:, arcs.row[chosen]]  # (n_models, n_chosen)
    costs = np.where(stratum.admits(ranks[reject], ranks[accept]), ranks[reject], NEVER)
    taken = np.zeros(n_sentences, dtype=np.bool_)
    taken[arcs.row[chosen]] = True
    free = ~taken[arcs.row]
    # No rearrangement saves as much as this: it stands for "no sentence is idle".
    idle = np.full(n_sources, (n_sources + 1) * 2 * n_sentences + 1)
    np.minimum.at(idle, arcs.source[free], arcs.cost[free])
    idle[demand == 0] = 0
    return dual_prices(costs, arcs.source[chosen], idle)


def _certify(
    question: Demand, parts: Sequence[_Part], usable: BoolArray, *, same_length: bool
) -> Certificate:
    candidates = 0
    for part in parts:
        # (n_models, n_sentences): ranks from the median on
        accepted = part.stratum.doubled >= len(part.stratum.rows)
        disputed = accepted.any(axis=0) & ~accepted.all(axis=0)
        candidates += int((disputed & usable[part.stratum.rows]).sum())
    sources = list(permutations(question.models, 2))
    prices = [
        (part.stratum.words, *source, price)
        for part in parts
        for source, price in zip(sources, part.prices.tolist(), strict=True)
    ]
    lacked = np.sum([part.lacked for part in parts], axis=0).tolist()
    admissible = np.sum([part.stratum.admissible(usable) for part in parts], axis=0)
    return Certificate(
        objective=_mean_rank_sum(parts, [part.objective for part in parts]),
        bound=_mean_rank_sum(parts, [part.bound for part in parts]),
        status="optimal",  # verified, like all the rest, before anybody sees it
        solver=SOLVER,
        version=solver_version(),
        tie_rule=TIE_RULE,
        candidates=candidates,
        seconds=0.0,
        objective_numerator=sum(part.objective for part in parts),
        bound_numerator=sum(part.bound for part in parts),
        per_pair=question.per_pair,
        counts=question.counted,
        models=question.models,
        n_sentences=len(usable),
        repeatable=None,
        excluded=0,
        prices=() if same_length else tuple(price[1:] for price in prices),
        lengths=tuple(
            (part.stratum.words, len(part.stratum.rows), part.objective, part.bound)
            for part in parts
            if same_length
        ),
        length_counts=tuple(
            (part.stratum.words, *pair, count)
            for part in parts
            if same_length
            for pair, count in part.stratum.counts.items()
        ),
        length_prices=tuple(prices) if same_length else (),
        agreeing=question.agreeing,
        admissible=tuple(
            (*source, n) for source, n in zip(sources, admissible.tolist(), strict=True)
        ),
        kept=sum(len(part.standing) for part in parts),
        kept_bound=sum(part.kept_bound for part in parts),
        against=tuple(
            (f"sentences for {reject} against {accept}", n)
            for (reject, accept), n in zip(sources, lacked, strict=True)
            if n
        ),
    )


def _mean_rank_sum(parts: Iterable[_Part], numerators: Iterable[int]) -> float:
    """Doubled ranks as fractional ones, summed without rounding: each stratum has its own scale."""
    return float(
        sum(Fraction(n, 2 * len(p.stratum.rows)) for p, n in zip(parts, numerators, strict=True))
    )


def _pairs(table: ScoreTable, part: _Part) -> Iterator[Pair]:
    """The pairs of a stratum: those that stay, by their names, and the new ones, matched."""
    stratum = part.stratum
    for stays in part.standing:
        models, places = (stays.model_1, stays.model_2), [stays.place_1, stays.place_2]
        yield replace(_pair(table, stratum, models, places), trial_id=stays.item_id)
    of_source = dict(zip(permutations(table.models, 2), part.chosen, strict=True))
    for models in combinations(table.models, 2):
        # Sentence 1 is rejected by model 1, so it is of the source (model 1, model 2).
        rows = (stratum.rows[of_source[source]].tolist() for source in (models, models[::-1]))
        for matched in match_by_length(table.sentences, *rows):
            yield _pair(table, stratum, models, np.searchsorted(stratum.rows, matched).tolist())


def _pair(table: ScoreTable, stratum: Stratum, models: tuple[str, str], places: list[int]) -> Pair:
    row_1, row_2 = stratum.rows[places].tolist()
    first, second = (
        None if table.sentences is None else table.sentences[row] for row in (row_1, row_2)
    )
    # Rows × models, so that raveled they are r(s1|m1), r(s1|m2), r(s2|m1), r(s2|m2).
    columns = [table.models.index(model) for model in models]
    ranks = stratum.doubled[np.ix_(columns, places)].T / (2 * len(stratum.rows))
    content = (row_1, row_2) if table.sentences is None else (first, second)
    trial_id = content_id("pair", *models, *content)
    return Pair(trial_id, *models, first, second, row_1, row_2, *ranks.ravel().tolist())


def match_by_length(
    sentences: Sequence[Sentence] | None, rows_1: Iterable[int], rows_2: Iterable[int]
) -> list[tuple[int, int]]:
    """Match rows one to one so that the summed difference in length is smallest.

    Length is the number of characters without the end mark. For absolute differences on a line,
    the shortest meets the shortest, and so on up: uncrossing two matches never adds to the sum.
    Equal lengths, or all sentences where texts are unknown, go by row number.
    """

    def key(row: int) -> tuple[int, int]:
        return (0 if sentences is None else len(sentences[row].bare), row)

    return list(zip(sorted(rows_1, key=key), sorted(rows_2, key=key), strict=True))


def _lacks(parts: Iterable[_Part]) -> bool:
    """True if there are too few sentences."""
    return any(part.shortfall.any() for part in parts)


def _infeasible(
    question: Demand, parts: Sequence[_Part], answer: Callable[[Demand], list[_Part]]
) -> InfeasibleError:
    sources = list(permutations(question.models, 2))
    # Too few admissible sentences explain a lack by themselves; else other sources need the same.
    reasons, lacking, needed, stay = [], 0, 0, 0
    for part in parts:
        of_length = f" of {part.stratum.words} words" if part.stratum.words else ""
        lacking, needed = lacking + int(part.shortfall.sum()), needed + int(part.demand.sum())
        stay += len(part.standing)
        for (reject, accept), needs, has, lacks in zip(
            sources, part.demand, part.admissible, part.shortfall, strict=True
        ):
            if has < needs:
                below = "" if question.agreeing else f"below 0.5 under {reject} and "
                reasons.append(
                    f"{reject} against {accept} needs {needs} sentences{of_length}, only {has} "
                    f"usable ones rank {below}at least 0.5 under {accept}"
                )
            elif lacks:
                reasons.append(
                    f"{reject} against {accept} lacks {lacks} of {needs} sentences{of_length}, "
                    "because others need the same ones"
                )
    beside = f" beside the {counted(stay, 'reviewed pair')} that stay" if stay else ""
    # The largest number that can be had: a bisection, since fewer pairs need fewer sentences
    most, none = 0, max(question.of_pair.values())
    while none - most > 1:
        half = (most + none) // 2
        counts = {pair: min(count, half) for pair, count in question.of_pair.items()}
        if _lacks(answer(replace(question, per_pair=half, counts=counts))):
            none = half
        else:
            most = half
    had = f"{counted(most, 'pair')} for every model pair can be had"
    if not most:
        had = "Not even one pair for every model pair can be had"
    agree = "" if question.agreeing else ", allow pairs that both models order alike (--agreeing)"
    return InfeasibleError(
        f"There is no set of {question.per_pair} pairs for every model pair{beside}; the best one "
        f"lacks {lacking} of {needed} sentences. {had}. By reject against accept model: "
        f"{'; '.join(reasons)}. Score more sentences, ask for fewer pairs{agree}, or leave models "
        f"out."
    )
