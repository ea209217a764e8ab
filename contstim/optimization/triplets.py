"""Exact selection of triplets, with a bound that proves how good the set is."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from math import ceil, fsum
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InfeasibleError
from contstim.files import write_text
from contstim.optimization.programs import best_choice, priced_bound, violations
from contstim.optimization.solver import highs_version
from contstim.optimization.triplet_question import (
    TripletQuestion,
    build_rules,
    by_model_pair,
    check_question,
    controversiality,
    losses,
)
from contstim.scores import doubled_ranks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction
    from pathlib import Path

    from contstim.arrays import FloatArray
    from contstim.optimization.programs import Choice
    from contstim.optimization.triplet_question import Objective
    from contstim.stimuli import Triplet

TIE_RULES = {
    "controversiality": "among sets of equal controversiality the solver's stands",
    "worst-rank": "losses that tie share their mean rank, worst ranks that tie are ranked by first "
    "occurrence; among sets of equal rank sum the more controversial one stands: a triplet costs "
    "its rank, less its controversiality over the least in a share too small to add up to one rank",
}
_EXPLAIN = 10.0  # seconds to look for the rules that fail
EXACT = 1e-6  # nats or ranks: objective and bound that differ by less are called equal


@dataclass(frozen=True)
class TripletCertificate:
    """The answer to one question about triplets, and a bound that anybody can recompute.

    Attributes:
        objective: summed Eq. 4 (nats) or summed ranks of the chosen triplets, by `objective_name`.
        bound: what no set can exceed (controversiality) or fall below (worst-rank): the tighter of
            `price_bound` and the solver's own account.
        price_bound: what `prices` prove (`contstim.optimization.programs`).
        status: `optimal`: objective and bound are equal; `gap`: the time ended before.
        candidates: how many triplets there were.
        seconds: from read triplets to the verified selection.
        counts: (model_1, model_2, triplets) for every model pair.
        prices: (rule, price), zeros left out.
    """

    objective: float
    bound: float
    status: str
    solver: str
    version: str
    tie_rule: str
    candidates: int
    seconds: float
    objective_name: str
    price_bound: float
    quantiles: int | None
    natural_once: bool
    word_cap: int | None
    uncapped: tuple[str, ...]
    token_balance: float | None
    counts: tuple[tuple[str, str, int], ...]
    prices: tuple[tuple[str, float], ...]

    def save(self, path: Path | str) -> None:
        """Write the certificate as JSON.

        Raises:
            InputError: the file cannot be written.
        """
        write_text(path, json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n")


@dataclass(frozen=True)
class TripletSelection:
    """The chosen triplets, in the order in which they were given, and their certificate."""

    triplets: tuple[Triplet, ...]
    certificate: TripletCertificate


def select_triplets(
    triplets: Sequence[Triplet],
    question: TripletQuestion | None = None,
    *,
    tokens: Mapping[tuple[str, str], int] | None = None,
    seconds: float = 60.0,
) -> TripletSelection:
    """Choose the most controversial triplets for every model pair under the rules of a question.

    All rules are linear, so this is a linear program in whole numbers. With quantiles alone it is
    an assignment of deciles to deciles, whose relaxation is whole at every vertex: the dual simplex
    solves it, and its prices prove the optimum on the costs as they are, with no rounding to
    integers. Rules that tie model pairs together may need branch and bound; then the certificate
    states the bound that was proved.

    Args:
        triplets: candidates for all model pairs.
        question: what to choose; by default ten a model pair, one per decile.
        tokens: (sentence's text, model) → number of tokens, for `token_balance`.
        seconds: how long branch and bound may take.

    Raises:
        InputError: triplets or question cannot be used.
        InfeasibleError: no set keeps the rules; names the deciles, words or sentences that fail.
        VerificationError: the time ended before any set was found, or the result failed its
            independent check (`verify_triplets`).
    """
    from contstim.optimization.triplet_verification import verify_triplets

    started = perf_counter()
    question = question or TripletQuestion()
    tokens = tokens or {}
    check_question(triplets, question)
    rules = build_rules(triplets, question, tokens)
    costs = triplet_costs(triplets, question)
    choice = best_choice(costs, rules, seconds=seconds)
    if choice.chosen is None:
        raise _infeasible(violations(rules, len(costs), seconds=min(seconds, _EXPLAIN)))
    chosen = tuple(triplets[place] for place in np.flatnonzero(choice.chosen).tolist())
    proved = priced_bound(costs.tolist(), rules, choice.prices)
    certificate = _certify(triplets, question, chosen, choice, proved)
    selection = TripletSelection(chosen, certificate)
    verify_triplets(triplets, selection, question, tokens=tokens)
    certificate = replace(certificate, seconds=perf_counter() - started)
    return replace(selection, certificate=certificate)


def worst_ranks(triplets: Sequence[Triplet]) -> FloatArray:
    """The published code's measure, (n_triplets,), 1 … n: the lower, the more controversial.

    Inside a model pair both losses are ranked (ties share their mean rank), a triplet gets the
    worse of its two ranks, and these are ranked again, ties by first occurrence.
    """
    ranks = np.empty(len(triplets))
    for places in by_model_pair(triplets).values():
        both = np.array([losses(triplets[place]) for place in places]).T
        worse = np.maximum(*map(doubled_ranks, both))
        ranks[np.array(places)[np.argsort(worse, kind="stable")]] = np.arange(1, len(places) + 1)
    return ranks


def triplet_costs(triplets: Sequence[Triplet], question: TripletQuestion) -> FloatArray:
    """What each triplet costs a set, (n_triplets,), to be minimised.

    For `worst-rank` it is the rank, less a share of the triplet's controversiality so small that
    all shares together make less than half a rank: it decides between sets of equal rank sum.
    """
    values = np.array([controversiality(triplet) for triplet in triplets])
    if question.objective == "controversiality":
        return -values
    chosen = sum(map(question.count, by_model_pair(triplets)))
    above = values - values.min()
    costs: FloatArray = worst_ranks(triplets) - above / (
        2 * max(chosen, 1) * above.max(initial=1.0)
    )
    return costs


def set_value(
    triplets: Sequence[Triplet], chosen: Sequence[Triplet], objective: Objective
) -> float:
    """What a set is worth: its summed Eq. 4 (nats), or its summed ranks among all triplets."""
    if objective == "controversiality":
        return fsum(map(controversiality, chosen))
    names = {triplet.triplet_id for triplet in chosen}
    ranks = worst_ranks(triplets)
    return fsum(r for t, r in zip(triplets, ranks, strict=True) if t.triplet_id in names)


def as_bound(cost: Fraction | float, objective: Objective) -> float:
    """A lower bound on summed `triplet_costs` as a bound on `set_value`; rank sums are whole."""
    if objective == "controversiality":
        return -float(cost)
    return float(ceil(cost)) if np.isfinite(float(cost)) else float(cost)


def _certify(
    triplets: Sequence[Triplet],
    question: TripletQuestion,
    chosen: tuple[Triplet, ...],
    choice: Choice,
    proved: Fraction,
) -> TripletCertificate:
    objective = set_value(triplets, chosen, question.objective)
    by_prices = as_bound(proved, question.objective)
    by_solver = as_bound(choice.bound - EXACT, question.objective)
    tighter = min if question.objective == "controversiality" else max
    bound = tighter(by_prices, by_solver)
    return TripletCertificate(
        objective=objective,
        bound=bound,
        status="optimal" if abs(bound - objective) <= 2 * EXACT else "gap",
        solver=choice.solver,
        version=highs_version(),
        tie_rule=TIE_RULES[question.objective],
        candidates=len(triplets),
        seconds=0.0,
        objective_name=question.objective,
        price_bound=by_prices,
        quantiles=question.quantiles,
        natural_once=question.natural_once,
        word_cap=question.word_cap,
        uncapped=() if question.word_cap is None else tuple(sorted(question.uncapped)),
        token_balance=question.token_balance,
        counts=tuple((*pair, question.count(pair)) for pair in by_model_pair(triplets)),
        prices=tuple(choice.prices.items()),
    )


def _infeasible(broken: Mapping[str, int]) -> InfeasibleError:
    worst_first = sorted(broken.items(), key=lambda named: -named[1])
    named = [f"{name} ({by})" for name, by in worst_first]
    more = f" and {len(named) - 10} more" if len(named) > 10 else ""
    return InfeasibleError(
        "No set of triplets keeps all rules. The nearest one found breaks, each by the number in "
        f"brackets: {'; '.join(named[:10])}{more}. Give more triplets, ask for fewer, or relax a "
        "rule."
    )
