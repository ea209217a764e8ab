"""Exact selection of controversial natural pairs (2023, Eqs. 5-6), with a proof of optimality."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, permutations
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InfeasibleError, InputError
from contstim.optimization.selection.certificate import Certificate, NaturalSelection
from contstim.optimization.selection.demand import Demand, usable_rows
from contstim.optimization.selection.duals import NEVER, dual_prices, sentence_prices
from contstim.optimization.selection.natural_verification import verify_natural
from contstim.optimization.selection.solver import SOLVER, solver_version, transportation
from contstim.stimuli import Pair, content_id

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from contstim.arrays import BoolArray, IntArray
    from contstim.scores import ScoreTable
    from contstim.sentence import Sentence

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
) -> NaturalSelection:
    """Choose the most controversial natural pairs, `per_pair` for every model pair.

    Minimises the sum of r(s1|m1) + r(s2|m2) over all chosen pairs, where r(s1|m2) >= 0.5 and
    r(s2|m1) >= 0.5 and no sentence is used twice; r is the fractional rank among all sentences.
    Which s1 meets which s2 inside a model pair does not change that sum; they are matched so that
    the summed difference in length (characters, without end marks) is smallest.

    This is a transportation problem: every ordered pair (reject, accept) is a source that needs
    `per_pair` sentences, every sentence serves once. With D the total demand, a source never needs
    more than its D cheapest admissible sentences: were it served by another, the remaining D - 1
    units would leave one of these free, and no dearer. So a min-cost flow over few sentences is
    exact for all, and the certificate proves it over all of them.

    Args:
        table: scores of all sentences; without texts, lengths are unknown and row numbers decide.
        per_pair: pairs for each unordered model pair, at least 1.
        repeatable: where given, sentences in which any other word repeats (compared in lower case)
            are not chosen, though they keep their ranks.
        counts: model pairs, in the order of the table's columns, that need another number than
            `per_pair`; 0 leaves one out.
        excluded: sentences that are not chosen, whatever their end mark, and keep their ranks.

    Sentences that look alike to people, whatever their end marks, count once: only the first row
    can be chosen.

    Raises:
        InputError: `per_pair` below 1, fewer than two models, counts for a pair that is not there,
            or a rule about words or sentences without texts.
        InfeasibleError: too few sentences; names the model pairs that fail.
        VerificationError: the result failed its check (`verify_natural`).
    """
    # Ranks are doubled, so that mean ranks of ties are whole; sources are the ordered pairs
    # (reject, accept) in the order of `permutations`.
    started = perf_counter()
    question = Demand(table.models, per_pair, counts or {})
    banned = frozenset(sentence.words for sentence in excluded)
    _check_texts(table, repeatable, banned)
    doubled = np.ascontiguousarray(table.doubled_ranks().T)  # (n_models, n_sentences), 2 … 2N
    usable = usable_rows(table, repeatable, banned)
    # One sentence more than the total demand: so each source's cheapest idle one is among them.
    arcs = _cheapest_arcs(doubled, usable, int(question.of_source.sum()) + 1)
    plan = transportation(question.of_source, arcs.source, arcs.row, arcs.cost)
    if plan.shortfall.any():
        raise _infeasible(question, arcs, plan.shortfall)
    prices = _prices(doubled, arcs, plan.chosen, question.of_source)
    objective = int(arcs.cost[plan.chosen].sum())
    # Arcs are sorted by source, and `chosen` ascends: the rows of each source, in turn.
    rows = np.split(arcs.row[plan.chosen], np.cumsum(question.of_source)[:-1])
    rule = None if repeatable is None else tuple(sorted(repeatable))
    selection = NaturalSelection(
        tuple(_pairs(table, doubled, rows)),
        _certify(question, doubled, usable, objective, prices, rule, len(banned)),
    )
    verify_natural(
        table,
        selection,
        per_pair=per_pair,
        repeatable=repeatable,
        counts=counts,
        excluded=excluded,
    )
    certificate = replace(selection.certificate, seconds=perf_counter() - started)
    return replace(selection, certificate=certificate)


@dataclass(frozen=True, eq=False)
class _Arcs:
    """Which source may use which sentence at what cost; sorted by source."""

    source: IntArray  # (n_arcs,) place of (reject, accept) among the models' permutations
    row: IntArray  # (n_arcs,)
    cost: IntArray  # (n_arcs,) doubled rank under the reject model


def _check_texts(
    table: ScoreTable, repeatable: frozenset[str] | None, banned: frozenset[tuple[str, ...]]
) -> None:
    if banned and table.sentences is None:
        raise InputError(
            "Sentences can only be left out of a table that has their texts, and this one has "
            "scores only: add the column 'sentence' or leave the rule out."
        )
    if repeatable is not None and table.sentences is None:
        raise InputError(
            "The word-repetition rule needs the sentences' texts, and this table has scores only: "
            "add the column 'sentence' or leave the rule out."
        )


def _cheapest_arcs(doubled: IntArray, usable: BoolArray, count: int) -> _Arcs:
    """The `count` cheapest admissible sentences of each source, or all there are."""
    n_models, n_sentences = doubled.shape
    # Usable rows by rank, one order for each reject model.
    orders = [np.argsort(ranks, kind="stable") for ranks in doubled]
    orders = [order[usable[order]] for order in orders]
    rows, costs = [], []  # of each source
    for reject, accept in permutations(range(n_models), 2):
        order = orders[reject]
        admissible = doubled[accept] >= n_sentences  # accepted from the median, rank 0.5, on
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


def _prices(doubled: IntArray, arcs: _Arcs, chosen: IntArray, demand: IntArray) -> IntArray:
    """Dual prices of the plan over all sentences, (n_sources,); 0 where nothing is demanded."""
    n_sources = len(demand)
    n_models, n_sentences = doubled.shape
    # Costs of every chosen sentence to every source, (n_sources, n_chosen), and of each source's
    # cheapest sentence that is not chosen, (n_sources,): one more than was needed has been looked
    # at, so that there is one, or none at all.
    reject, accept = np.array(list(permutations(range(n_models), 2))).T
    ranks = doubled[:, arcs.row[chosen]]  # (n_models, n_chosen)
    costs = np.where(ranks[accept] >= n_sentences, ranks[reject], NEVER)
    taken = np.zeros(n_sentences, dtype=np.bool_)
    taken[arcs.row[chosen]] = True
    free = ~taken[arcs.row]
    # No rearrangement saves as much as this: it stands for "no sentence is idle".
    idle = np.full(n_sources, (n_sources + 1) * 2 * n_sentences + 1)
    np.minimum.at(idle, arcs.source[free], arcs.cost[free])
    idle[demand == 0] = 0
    return dual_prices(costs, arcs.source[chosen], idle)


def _certify(
    question: Demand,
    doubled: IntArray,
    usable: BoolArray,
    objective: int,
    prices: IntArray,
    repeatable: tuple[str, ...] | None,
    excluded: int,
) -> Certificate:
    n_sentences = len(usable)
    # What the sources pay less what the sentences earn: the dual objective (duals.py).
    bound = int(question.of_source @ prices) - int(sentence_prices(doubled, prices)[usable].sum())
    accepted = doubled >= n_sentences  # (n_models, n_sentences): ranks from the median on
    return Certificate(
        objective=objective / (2 * n_sentences),
        bound=bound / (2 * n_sentences),
        status="optimal",  # verified, like all the rest, before anybody sees it
        solver=SOLVER,
        version=solver_version(),
        tie_rule=TIE_RULE,
        candidates=int((accepted.any(axis=0) & ~accepted.all(axis=0) & usable).sum()),
        seconds=0.0,
        objective_numerator=objective,
        bound_numerator=bound,
        per_pair=question.per_pair,
        counts=question.counted,
        models=question.models,
        n_sentences=n_sentences,
        repeatable=repeatable,
        excluded=excluded,
        prices=tuple(
            (reject, accept, price)
            for (reject, accept), price in zip(
                permutations(question.models, 2), prices.tolist(), strict=True
            )
        ),
    )


def _pairs(table: ScoreTable, doubled: IntArray, rows: Iterable[IntArray]) -> Iterator[Pair]:
    """Name the pairs, given each source's rows."""
    indices = range(len(table.models))
    of_source = dict(zip(permutations(indices, 2), (some.tolist() for some in rows), strict=True))
    for models in combinations(indices, 2):
        model_1, model_2 = (table.models[model] for model in models)
        # Sentence 1 is rejected by model 1, so it is of the source (model 1, model 2).
        matched = match_by_length(table.sentences, of_source[models], of_source[models[::-1]])
        for pair_rows in sorted(matched):
            first, second = (
                None if table.sentences is None else table.sentences[row] for row in pair_rows
            )
            # Rows × models, so that raveled they are r(s1|m1), r(s1|m2), r(s2|m1), r(s2|m2).
            ranks = doubled[np.ix_(models, pair_rows)].T / (2 * len(table.log_probs))
            content = pair_rows if table.sentences is None else (first, second)
            trial_id = content_id("pair", model_1, model_2, *content)
            yield Pair(
                trial_id, model_1, model_2, first, second, *pair_rows, *ranks.ravel().tolist()
            )


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


def _infeasible(question: Demand, arcs: _Arcs, shortfall: IntArray) -> InfeasibleError:
    sources, demand = list(permutations(question.models, 2)), question.of_source
    # Too few admissible sentences explain a lack by themselves; else other sources need the same.
    admissible = np.bincount(arcs.source, minlength=len(sources))
    reasons = []
    for (reject, accept), needs, has, lacks in zip(
        sources, demand, admissible, shortfall, strict=True
    ):
        if has < needs:
            reasons.append(
                f"{reject} against {accept} needs {needs} sentences, only {has} usable ones "
                f"rank at least 0.5 under {accept}"
            )
        elif lacks:
            reasons.append(
                f"{reject} against {accept} lacks {lacks} of {needs} sentences, because others "
                "need the same ones"
            )
    return InfeasibleError(
        f"There is no set of {question.per_pair} pairs for every model pair; the best one lacks "
        f"{shortfall.sum()} of {demand.sum()} sentences. By reject against accept "
        f"model: {'; '.join(reasons)}. Score more sentences, ask for fewer pairs, or leave models "
        "out."
    )
