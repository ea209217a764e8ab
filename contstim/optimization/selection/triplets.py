"""Exact selection of triplets."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import fsum
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InfeasibleError
from contstim.files.tables import join_names
from contstim.items.reviews import ItemKind
from contstim.optimization.selection import triplet_rules
from contstim.optimization.selection.question import (
    Certificate,
    TripletQuestion,
    TripletSelection,
    demand,
)
from contstim.optimization.selection.reviewed import ChangedItem, changed_items, review_goals
from contstim.optimization.selection.solver import LinearRule, Program, least_violations, solve
from contstim.optimization.selection.verification import verify_triplets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contstim.items.reviews import Review, ReviewedItem
    from contstim.items.stimuli import Triplet


def select_triplets(
    triplets: Sequence[Triplet],
    question: TripletQuestion | None = None,
    *,
    tokens: Mapping[tuple[str, str], int] | None = None,
    review: Review | None = None,
) -> TripletSelection:
    """Choose the best triplets for every model pair under the rules of a question.

    All rules are linear, so this is a linear program in whole numbers. With quantiles alone it is
    an assignment of deciles to deciles, whose relaxation is whole at every vertex. Rules that
    concern several model pairs may need branch and bound.

    After a review, rejected triplets are excluded. As many other reviewed triplets as possible are
    selected again, then the objective is optimised. Rejected triplets keep their places in the
    quantiles and their ranks, so that those of others do not change.

    Args:
        triplets: candidates for all model pairs. Their controversiality may differ from that of
            their log-probabilities by the rounding of float32; it is computed again.
        question: what to choose; by default the most readable ten a model pair, one per decile.
        tokens: (sentence's text, model) → number of tokens, for `token_balance`.
        review: review of earlier selections.

    Raises:
        InputError: if triplets or question cannot be used.
        InfeasibleError: if no set satisfies the rules; names the deciles, words or sentences that
            fail, and how many triplets of each model pair have enough nats.
        VerificationError: if the time limit was reached without any set, or the result failed
            `verify_triplets`.
    """
    started = perf_counter()
    question = question or TripletQuestion()
    if question.objective == "readable":
        question = replace(question, enough=question.floor)  # stated in the certificate
    triplets = triplet_rules.usable_triplets(triplets)
    needs = demand(question, triplet_rules.by_model_pair(triplets))
    rules = triplet_rules.build_rules(triplets, question, needs, tokens or {})
    costs, values = triplet_rules.triplet_costs(triplets, question, sum(needs.values()))
    index = {triplet.triplet_id: number for number, triplet in enumerate(triplets)}
    kept_items: list[dict[str, ReviewedItem]] = []
    shows = np.zeros(len(triplets), dtype=np.bool_)
    if review is not None:
        kept_items = review.kept_items(ItemKind.TRIPLET)
        rejected = [number for name, number in index.items() if name in review.rejected]
        rules.append(LinearRule("a triplet was rejected", rejected, [1] * len(rejected), 0, 0))
        words = review.shown_words
        shows[:] = [any(s.words in words for s in t.sentences) for t in triplets]
    goals = review_goals([[index[i] for i in items if i in index] for items in kept_items], shows)
    program = Program.of([*goals, costs], rules)
    solution = solve(program, seconds=question.seconds)
    if solution is None:
        raise _infeasible(triplets, question, program)
    chosen = tuple(triplets[number] for number in np.flatnonzero(solution.chosen).tolist())
    objective = fsum(values[solution.chosen])
    bound = triplet_rules.as_bound(solution.bound, objective, question.objective)
    certificate = Certificate.of(
        question,
        (objective, bound),
        len(triplets),
        triplet_rules.TIE_RULES[question.objective],
        solution.exact,
    )
    names = [name for items in kept_items for name in items]
    changed = [ChangedItem(n, "it is not among the triplets") for n in names if n not in index]
    members = {name: index[name] for name in names if name in index}
    changed += changed_items(program, members, solution.chosen)
    selection = TripletSelection(chosen, certificate, tuple(changed))
    verify_triplets(triplets, selection, tokens=tokens, review=review)
    certificate = replace(certificate, seconds=perf_counter() - started)
    return replace(selection, certificate=certificate)


def _infeasible(
    triplets: Sequence[Triplet], question: TripletQuestion, program: Program
) -> InfeasibleError:
    broken = least_violations(program)
    worst_first = sorted(broken.items(), key=lambda item: -item[1])[:10]
    rules = "; ".join(f"{program.names[rule]} ({by})" for rule, by in worst_first)
    keys = dict.fromkeys(f"`{program.keys[rule]}`" for rule, _ in worst_first if program.keys[rule])
    loosen = f", or loosen {join_names([*keys])}" if keys else ""
    message = (
        f"No set of triplets satisfies all rules. The nearest one breaks {len(broken):,} of them, "
        f"each by the number in brackets: {rules}. Give more triplets, ask for fewer{loosen}."
    )
    able = Counter(
        (t.model_1, t.model_2) for t in triplets if triplet_rules.has_enough(t, question)
    )
    total = Counter((t.model_1, t.model_2) for t in triplets)
    if enough := [f"{'-'.join(p)} {able[p]} of {n}" for p, n in total.items() if able[p] < n]:
        message += (
            f" Triplets with {question.floor:g} nats or more on each side: {join_names(enough)}. "
            "Lower `enough` where these are too few."
        )
    return InfeasibleError(message)
