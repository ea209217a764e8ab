"""Exact selection of triplets, with a bound that proves how good the set is."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import floor
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InfeasibleError
from contstim.optimization.selection.certificate import TripletCertificate, TripletSelection
from contstim.optimization.selection.programs import best_choice, priced_bound, violations
from contstim.optimization.selection.reviewed import ReviewedTriplets
from contstim.optimization.selection.solver import highs_version
from contstim.optimization.selection.triplet_objective import (
    EXACT,
    TIE_RULES,
    as_bound,
    set_value,
    triplet_costs,
)
from contstim.optimization.selection.triplet_question import (
    TripletQuestion,
    build_rules,
    by_model_pair,
    check_question,
    edges_of,
    model_pair,
    recomputed,
)
from contstim.optimization.selection.triplet_verification import verify_triplets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from contstim.optimization.selection.programs import Choice, LinearRule
    from contstim.reviews import Review
    from contstim.stimuli import Triplet

_EXPLAIN = 10.0  # seconds to look for the rules that fail


def select_triplets(
    triplets: Sequence[Triplet],
    question: TripletQuestion | None = None,
    *,
    tokens: Mapping[tuple[str, str], int] | None = None,
    seconds: float = 60.0,
    review: Review | None = None,
) -> TripletSelection:
    """Choose the most controversial triplets for every model pair under the rules of a question.

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
        question: what to choose; by default ten a model pair, one per decile.
        tokens: (sentence's text, model) → number of tokens, for `token_balance`.
        seconds: how long branch and bound may take, for each program.
        review: of an earlier selection from these triplets or some of them; what was rejected is
            chosen no more.

    Raises:
        InputError: triplets or question cannot be used, or the review is of other triplets.
        InfeasibleError: no set keeps the rules; names the deciles, words or sentences that fail,
            and after a review how many triplets each model pair lacks.
        VerificationError: the time ended before any set was found, or the result failed its
            independent check (`verify_triplets`).
    """
    started = perf_counter()
    question = question or TripletQuestion()
    tokens = tokens or {}
    check_question(triplets, question)
    triplets = [recomputed(triplet) for triplet in triplets]
    rules = build_rules(triplets, question, tokens)
    costs = triplet_costs(triplets, question)
    after = None if review is None else ReviewedTriplets.of(review, triplets)
    most_kept, shared = None, False
    if after is not None:
        kept_costs, of_question = after.costs(len(triplets)), rules
        rules = [*of_question, *after.rules(shared=False)]
        most_kept = best_choice(kept_costs, rules, seconds=seconds)
        shared = most_kept.chosen is None and bool(after.shown)
        if shared:
            rules = [*of_question, *after.rules(shared=True)]
            most_kept = best_choice(kept_costs, rules, seconds=seconds)
        if most_kept.chosen is not None:
            # The sets that keep most are a face of all sets: where the first program's vertices
            # are whole, so are those of the second.
            rules.append(after.keeping(int(most_kept.chosen[list(after.places)].sum())))
    choice = best_choice(costs, rules, seconds=seconds)
    if choice.chosen is None:
        raise _infeasible(triplets, question, rules, after)
    chosen = tuple(triplets[place] for place in np.flatnonzero(choice.chosen).tolist())
    proved = priced_bound(costs.tolist(), rules, choice.prices)
    certificate = _certify(triplets, question, chosen, choice, proved)
    if after is not None and most_kept is not None:
        by_prices = after.proved(len(triplets), rules[:-1], most_kept.prices)
        kept = int(choice.chosen[list(after.places)].sum())
        # The rules that stand against it that all stay
        every = [*rules[:-1], replace(after.keeping(len(after.places)), rank=-1)]
        broken = (
            violations(every, len(triplets), seconds=_EXPLAIN) if kept < len(after.places) else {}
        )
        kept_bound = min(by_prices, floor(EXACT - most_kept.bound))
        certificate = replace(
            certificate,
            status=certificate.status if kept == kept_bound else "gap",
            reviewed=after.reviewed,
            rejected=after.rejected,
            kept=kept,
            kept_bound=kept_bound,
            shared=shared,
            kept_price_bound=by_prices,
            kept_prices=tuple(most_kept.prices.items()),
            against=tuple(broken.items()),
        )
    selection = TripletSelection(chosen, certificate)
    verify_triplets(triplets, selection, question, tokens=tokens, review=review)
    certificate = replace(certificate, seconds=perf_counter() - started)
    return replace(selection, certificate=certificate)


def _certify(
    triplets: Sequence[Triplet],
    question: TripletQuestion,
    chosen: tuple[Triplet, ...],
    choice: Choice,
    proved: Fraction,
) -> TripletCertificate:
    objective = set_value(triplets, chosen, question.objective)
    # Two bounds: one that anybody can recompute from the prices, and the solver's own, less its
    # tolerance; after branch and bound the second is often tighter.
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
        edges=tuple((*names, edges) for names, edges in edges_of(triplets, question).items()),
    )


def _infeasible(
    triplets: Sequence[Triplet],
    question: TripletQuestion,
    rules: Sequence[LinearRule],
    after: ReviewedTriplets | None,
) -> InfeasibleError:
    broken = violations(rules, len(triplets), seconds=_EXPLAIN)
    worst_first = sorted(broken.items(), key=lambda named: -named[1])
    named = [f"{name} ({by})" for name, by in worst_first]
    more = f" and {len(named) - 10} more" if len(named) > 10 else ""
    message = (
        "No set of triplets keeps all rules. The nearest one found breaks, each by the number in "
        f"brackets: {'; '.join(named[:10])}{more}. Give more triplets, ask for fewer, or relax a "
        "rule."
    )
    if after is None:
        return InfeasibleError(message)
    # As many triplets as go together where no rule asks for a least number
    at_most = [replace(rule, lower=min(rule.lower, 0)) for rule in rules]
    largest = best_choice(np.full(len(triplets), -1.0), at_most, seconds=_EXPLAIN).chosen
    places = [] if largest is None else np.flatnonzero(largest).tolist()
    has = Counter(model_pair(triplets[place]) for place in places)
    lacking = [
        f"{first}-{second} lacks {needs - has[first, second]} of {needs}"
        for first, second in by_model_pair(triplets)
        if has[first, second] < (needs := question.count((first, second)))
    ]
    return InfeasibleError(
        f"{message} After the review, of the largest set that keeps the other rules, "
        f"{'; '.join(lacking)}. 'contstim triplets --review FILE' synthesizes others in the place "
        f"of those that were rejected."
    )
