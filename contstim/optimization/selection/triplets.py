"""Exact selection of triplets, with a bound that proves how good the set is."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from importlib import metadata
from math import floor, fsum
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InfeasibleError
from contstim.files.tables import listed
from contstim.optimization.selection import triplet_rules
from contstim.optimization.selection.programs import best_choice, priced_bound, violations
from contstim.optimization.selection.question import (
    TripletCertificate,
    TripletQuestion,
    TripletSelection,
    demand,
)
from contstim.optimization.selection.reviewed import ReviewedTriplets
from contstim.optimization.selection.verification import verify_triplets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from contstim.items.reviews import Review
    from contstim.items.stimuli import Triplet
    from contstim.optimization.selection.programs import Choice, LinearRule
    from contstim.optimization.selection.question import ModelPair

_EXPLAIN = 10.0  # seconds to look for the rules that fail


def select_triplets(
    triplets: Sequence[Triplet],
    question: TripletQuestion | None = None,
    *,
    tokens: Mapping[tuple[str, str], int] | None = None,
    review: Review | None = None,
) -> TripletSelection:
    """Choose the best triplets for every model pair under the rules of a question.

    All rules are linear, so this is a linear program in whole numbers. With quantiles alone it is
    an assignment of deciles to deciles, whose relaxation is whole at every vertex: the dual simplex
    solves it, and its prices prove the optimum on the costs as they are, with no rounding to
    integers. Rules that tie model pairs together may need branch and bound; then the certificate
    states the bound that was proved.

    After a review there are two such programs: the first chooses as many as possible of those that
    stood before and were not rejected, the second the best set among those that keep so many.
    Rejected triplets keep their places in the quantiles and their ranks, so that these do not move.

    Args:
        triplets: candidates for all model pairs. What they state as controversiality may differ
            from what their log-probabilities make by the rounding of float32; it is computed anew.
        question: what to choose; by default the most readable ten a model pair, one per decile.
        tokens: (sentence's text, model) → number of tokens, for `token_balance`.
        review: of an earlier selection from these triplets or some of them; what was rejected is
            chosen no more.

    Raises:
        InputError: triplets or question cannot be used, or the review is of other triplets.
        InfeasibleError: no set keeps the rules; names the deciles, words or sentences that fail,
            how many triplets of each model pair have enough nats, and after a review how many each
            lacks.
        VerificationError: the time ended before any set was found, or the result failed its check
            (`verify_triplets`).
    """
    started = perf_counter()
    question = question or TripletQuestion()
    if question.objective == "readable":
        question = replace(question, enough=question.floor)  # which the certificate is to say
    triplets = triplet_rules.usable_triplets(triplets)
    needs = demand(question, triplet_rules.by_model_pair(triplets))
    rules = triplet_rules.build_rules(triplets, question, needs, tokens or {})
    costs, values = triplet_rules.triplet_costs(triplets, question, sum(needs.values()))
    after = None if review is None else ReviewedTriplets.of(review, triplets)
    most_kept, shared = None, False
    if after is not None:
        rules, most_kept, shared = after.keeping_most(rules, question.seconds)
    choice = best_choice(costs, rules, seconds=question.seconds)
    if choice.chosen is None:
        raise _infeasible(triplets, question, needs, rules, after)
    chosen = tuple(triplets[index] for index in np.flatnonzero(choice.chosen).tolist())
    # Two bounds: one that anybody can recompute from the prices, and the solver's own, less its
    # tolerance; after branch and bound the second is often tighter.
    proved = priced_bound(costs.tolist(), rules, choice.prices)
    by_prices = triplet_rules.as_bound(proved, question.objective)
    by_solver = triplet_rules.as_bound(choice.bound - triplet_rules.EXACT, question.objective)
    bound = (min if question.objective == "controversiality" else max)(by_prices, by_solver)
    objective = fsum(values[choice.chosen])
    kept: dict[str, Any] = {}
    if after is not None and most_kept is not None:
        kept = _kept(after, choice, most_kept, rules[:-1]) | {"shared": shared}
    optimal = abs(bound - objective) <= 2 * triplet_rules.EXACT and kept.get("kept") == kept.get(
        "kept_bound"
    )
    certificate = TripletCertificate(
        objective=objective,
        bound=bound,
        status="optimal" if optimal else "gap",
        solver=choice.solver,
        version=metadata.version("scipy"),  # which brings HiGHS
        tie_rule=triplet_rules.TIE_RULES[question.objective],
        candidates=len(triplets),
        question=question,
        price_bound=by_prices,
        prices=tuple(choice.prices.items()),
        edges=tuple(
            (*names, edges) for names, edges in triplet_rules.edges_of(triplets, question).items()
        ),
        **kept,
    )
    selection = TripletSelection(chosen, certificate)
    verify_triplets(triplets, selection, tokens=tokens, review=review)
    certificate = replace(certificate, seconds=perf_counter() - started)
    return replace(selection, certificate=certificate)


def _kept(
    after: ReviewedTriplets, choice: Choice, most_kept: Choice, rules: Sequence[LinearRule]
) -> dict[str, Any]:
    """Statements of the certificate about reviewed triplets.

    Args:
        after: what a review leaves.
        choice: the set.
        most_kept: a set that keeps most.
        rules: of the question and of the review.
    """
    by_prices = after.proved(rules, most_kept.prices)
    kept = 0 if choice.chosen is None else int(choice.chosen[list(after.able)].sum())
    broken = {}
    if kept < len(after.able):
        # The rules that stand against it that all stay
        every = [*rules, after.keeping(len(after.able), rank=-1)]
        broken = violations(every, after.n, seconds=_EXPLAIN)
    return {
        "reviewed": after.reviewed,
        "rejected": after.rejected,
        "kept": kept,
        "kept_bound": min(by_prices, floor(triplet_rules.EXACT - most_kept.bound)),
        "kept_price_bound": by_prices,
        "kept_prices": tuple(most_kept.prices.items()),
        "against": tuple(broken.items()),
    }


def _infeasible(
    triplets: Sequence[Triplet],
    question: TripletQuestion,
    needs: Mapping[ModelPair, int],
    rules: Sequence[LinearRule],
    after: ReviewedTriplets | None,
) -> InfeasibleError:
    broken = violations(rules, len(triplets), seconds=_EXPLAIN)
    worst_first = sorted(broken.items(), key=lambda named: -named[1])
    named = "; ".join(f"{name} ({by})" for name, by in worst_first[:10])
    message = (
        f"No set of triplets keeps all rules. The nearest one found breaks {len(broken):,} of "
        f"them, each by the number in brackets, such as {named}. Give more triplets, ask for "
        "fewer, or relax a rule."
    )
    able = Counter(
        (t.model_1, t.model_2) for t in triplets if triplet_rules.has_enough(t, question)
    )
    every = Counter((t.model_1, t.model_2) for t in triplets)
    if enough := [f"{'-'.join(p)} {able[p]} of {n}" for p, n in every.items() if able[p] < n]:
        message += (
            f" Triplets with {question.floor:g} nats or more on each side: {listed(enough)}. "
            "Lower `enough` where these are too few."
        )
    if after is None:
        return InfeasibleError(message)
    # As many triplets as go together where no rule asks for a least number
    at_most = [replace(rule, lower=min(rule.lower, 0)) for rule in rules]
    largest = best_choice(np.full(len(triplets), -1.0), at_most, seconds=_EXPLAIN).chosen
    found = [] if largest is None else np.flatnonzero(largest).tolist()
    has = Counter((triplets[index].model_1, triplets[index].model_2) for index in found)
    lacking = [
        f"{'-'.join(pair)} lacks {count - has[pair]} of {count}"
        for pair, count in needs.items()
        if has[pair] < count
    ]
    return InfeasibleError(
        f"{message} After the review, of the largest set that keeps the other rules, "
        f"{'; '.join(lacking)}. 'contstim triplets --review FILE' synthesizes others in the place "
        f"of those that were rejected."
    )
