"""Choosing some of many candidates under linear rules, and a bound that anybody can recompute.

Costs c_t are to be minimised; rule r holds if lower_r <= sum of weight_rt over the chosen t <=
upper_r. For any prices y_r, no choice that keeps the rules costs less than

    sum over r of  y_r · (lower_r if y_r > 0 else upper_r)
    + sum over t of  min(0, c_t - sum over r of  y_r · weight_rt)

because each chosen t costs its share of the prices and what it is dearer, and a rule returns at
least the first term. The prices come from a linear program (SciPy's HiGHS); however they came
about, the bound holds, and it is computed here without rounding.

Items are put into groups by OR-tools' CP-SAT, where anything may be in anything's way. All answers
of solvers are read only after their status.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import VerificationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from scipy.sparse import csr_array

    from contstim.files.arrays import BoolArray, FloatArray, IntArray

LINEAR = "SciPy HiGHS dual simplex"
INTEGER = "SciPy HiGHS branch and bound"
ASSIGNMENT = "OR-tools CP-SAT"

_WHOLE = 1e-6  # HiGHS's own tolerance for integers
_GRAVER = 1000.0  # how much one breach counts in breaches of the next rank


@dataclass(frozen=True, eq=False)
class LinearRule:
    """Rule on the sum of the chosen candidates' weights: at least `lower`, at most `upper`.

    Where rules contradict each other, those of lower `rank` are kept first.
    """

    name: str
    members: Sequence[int]  # candidates that have a weight, each once
    weights: Sequence[int]
    lower: int
    upper: int
    rank: int = 0


@dataclass(frozen=True, eq=False)
class Choice:
    """The best choice that was found, and what proves how good it is.

    Attributes:
        chosen: (n_candidates,) which candidates; None where the rules contradict each other.
        prices: rule → price in the linear relaxation, zeros left out.
        bound: no choice costs less, by the solver's own account.
        solver: `LINEAR` where the relaxation was whole already, `INTEGER` otherwise.
        whole: false where no time was given and the relaxation is not whole, so that `chosen` has
            what it chose more than half of.
    """

    chosen: BoolArray | None
    prices: dict[str, float]
    bound: float
    solver: str
    whole: bool = True


def best_choice(costs: FloatArray, rules: Sequence[LinearRule], *, seconds: float) -> Choice:
    """Minimise the chosen candidates' summed cost under the rules.

    The linear relaxation comes first: its vertex often is whole (always, where the rules only share
    candidates out to two families of groups), and its dual prices prove a bound.

    Args:
        costs: (n_candidates,) finite.
        rules: names are distinct.
        seconds: time for branch and bound; where it does not suffice, `bound` is below the cost. 0
            for the linear relaxation alone.

    Raises:
        VerificationError: the time ended before any choice was found, or the solver failed.
    """
    from scipy.optimize import linprog
    from scipy.sparse import vstack

    matrix, lower, upper = _arrays(rules, len(costs))
    # Rules with one value are equations; of the others each makes two inequalities, from above and,
    # negated, from below. A rule's price is that of its equation, or of the one of its two
    # inequalities that binds, less that of the other (0).
    exact, other = np.flatnonzero(lower == upper), np.flatnonzero(lower != upper)
    relaxed = linprog(
        costs,
        vstack([matrix[other], -matrix[other]]),
        np.concatenate([upper[other], -lower[other]]),
        matrix[exact],
        lower[exact],
        bounds=(0, 1),
        method="highs-ds",
    )
    if relaxed.status == 2:
        return Choice(None, {}, np.inf, LINEAR)
    if relaxed.status != 0:
        raise VerificationError(f"{LINEAR} failed: {relaxed.message}")
    over, under = np.split(relaxed.ineqlin.marginals, 2)
    marginals = np.zeros(len(rules))
    marginals[exact], marginals[other] = relaxed.eqlin.marginals, over - under
    prices = {rule.name: y for rule, y in zip(rules, marginals.tolist(), strict=True) if y}
    whole = np.abs(relaxed.x - relaxed.x.round()).max(initial=0) < _WHOLE
    if whole or not seconds:
        return Choice(relaxed.x > 0.5, prices, float(relaxed.fun), LINEAR, bool(whole))
    values, bound = _branch(costs, matrix, lower, upper, seconds)
    return Choice(None if values is None else values > 0.5, prices, bound, INTEGER)


def violations(rules: Sequence[LinearRule], n_candidates: int, *, seconds: float) -> dict[str, int]:
    """By how much a choice that breaks rules as little as possible breaks each.

    Args:
        rules: those of a higher rank weigh less.
        n_candidates: to choose from.
        seconds: how long branch and bound may take; the best found by then counts.

    Raises:
        VerificationError: the time ended before any answer was found, or the solver failed.
    """
    from scipy.sparse import eye_array, hstack

    matrix, lower, upper = _arrays(rules, n_candidates)
    # Columns: the candidates, then for each rule what its sum lacks, then what it has too much.
    slack = eye_array(len(rules))
    gravity = np.array([_GRAVER**-rule.rank for rule in rules])
    costs = np.concatenate([np.zeros(n_candidates), gravity, gravity])
    values, _ = _branch(costs, hstack([matrix, slack, -slack]), lower, upper, seconds, n_candidates)
    if values is None:
        raise VerificationError(f"{INTEGER} found no solution of a problem that always has one.")
    missing = values[n_candidates:].reshape(2, len(rules)).sum(axis=0).round().astype(int).tolist()
    return {rule.name: n for rule, n in zip(rules, missing, strict=True) if n}


def priced_bound(
    costs: Iterable[float], rules: Sequence[LinearRule], prices: Mapping[str, float]
) -> Fraction:
    """The bound that prices prove, without rounding."""
    # A candidate's cost less what the prices give for it; those below zero are worth choosing.
    reduced = [Fraction(cost) for cost in costs]
    total = Fraction(0)
    for rule in rules:
        price = Fraction(prices.get(rule.name, 0.0))
        if price:
            total += price * (rule.lower if price > 0 else rule.upper)
            for member, weight in zip(rule.members, rule.weights, strict=True):
                reduced[member] -= price * weight
    return total + sum(cost for cost in reduced if cost < 0)


def _arrays(rules: Sequence[LinearRule], n_candidates: int) -> tuple[csr_array, IntArray, IntArray]:
    """Rules as a matrix of weights, (n_rules, n_candidates), and their bounds, (n_rules,) each."""
    from scipy.sparse import csr_array

    # A row for each rule; its members are the columns.
    ends: IntArray = np.cumsum([0, *(len(rule.members) for rule in rules)])
    members = np.concatenate([np.asarray(rule.members, dtype=np.int64) for rule in rules])
    weights = np.concatenate([np.asarray(rule.weights, dtype=np.float64) for rule in rules])
    lower, upper = np.array([[rule.lower, rule.upper] for rule in rules]).T
    return csr_array((weights, members, ends), shape=(len(rules), n_candidates)), lower, upper


def _branch(
    costs: FloatArray,
    matrix: csr_array,
    lower: IntArray,
    upper: IntArray,
    seconds: float,
    n_binary: int | None = None,
) -> tuple[FloatArray | None, float]:
    """Branch and bound over whole numbers, the first `n_binary` of them 0 or 1 (default all)."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    # Candidates are chosen or not; what a rule lacks or has too much may be any whole number.
    most = np.full(len(costs), np.inf)
    most[:n_binary] = 1
    for presolve in (True, False):
        solution = milp(
            costs,
            integrality=np.ones(len(costs)),
            bounds=Bounds(0, most),
            constraints=LinearConstraint(matrix, lower, upper),
            options={"time_limit": seconds, "mip_rel_gap": 0, "presolve": presolve},
        )
        if solution.status != 4:  # an error, which HiGHS's presolve makes of some contradictions
            break
    if solution.status == 2:
        return None, np.inf
    if solution.x is None:
        raise VerificationError(
            f"{INTEGER} found no choice within {seconds:g} s, nor proved that there is none: give "
            f"it more time, or relax the rules. ({solution.message})"
        )
    return solution.x, float(solution.mip_dual_bound)


@dataclass(frozen=True, eq=False)
class Assignment:
    """Items in groups.

    Attributes:
        groups: (n_items,) the 0-based group of each.
        kept: how many are in the group that they were in before.
        kept_bound: no assignment keeps more.
    """

    groups: IntArray
    kept: int
    kept_bound: int


def assign(
    n_groups: int,
    shares: Sequence[Sequence[int]],
    apart: Sequence[Sequence[int]],
    *,
    n_items: int,
    seed: int,
    seconds: float,
    before: Mapping[int, int] | None = None,
) -> Assignment | None:
    """Put items into groups, each share evenly, items that must stay apart into different ones.

    Args:
        n_groups: how many groups there are.
        shares: sets of items; every item is in one, each set's size a multiple of `n_groups`.
        apart: sets of items no two of which may be in one group.
        n_items: items are 0 to `n_items` - 1.
        seed: of the search.
        seconds: how long it may take.
        before: item → the group in which to leave it, if possible; as many as can be stay.

    Returns:
        The assignment, or None where it is proved that there is none.

    Raises:
        VerificationError: the time ended without an answer, or the solver failed.
    """
    from ortools.sat.python import cp_model

    before = before or {}
    solver = cp_model.CpSolver()
    solver.parameters.random_seed = seed
    solver.parameters.num_workers = 8
    solver.parameters.interleave_search = True  # the same answer every time, on any machine
    solver.parameters.max_time_in_seconds = seconds
    # Where all can stay, the few others are placed at once: most variables are then known. Only
    # where they cannot is it asked how many can.
    for all_stay in (True, False) if before else (False,):
        model = cp_model.CpModel()
        # put[item][group]: whether the item is in the group.
        put = [[model.new_bool_var("") for _ in range(n_groups)] for _ in range(n_items)]
        for places in put:
            model.add_exactly_one(places)
        for group in range(n_groups):
            for share in shares:
                model.add(sum(put[i][group] for i in share) == len(share) // n_groups)
            for items in apart:
                model.add_at_most_one(put[i][group] for i in items)
        stay = [put[item][group] for item, group in before.items()]
        if all_stay:
            model.add_bool_and(stay)
        elif stay:
            model.maximize(sum(stay))
        status = solver.solve(model)
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            break
    if status == cp_model.INFEASIBLE:
        return None
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise VerificationError(
            f"{ASSIGNMENT} found no way within {seconds:g} s, nor proved that there is none "
            f"(status {solver.status_name(status)}): give it more time, or use more groups."
        )
    values = np.array([[solver.boolean_value(x) for x in places] for places in put])
    groups: IntArray = values.argmax(axis=1)
    kept = sum(int(groups[item]) == group for item, group in before.items())
    bound = len(before) if all_stay else int(solver.best_objective_bound + _WHOLE)
    return Assignment(groups, kept, min(bound, len(before)))
