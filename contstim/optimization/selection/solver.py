"""The one place that calls solvers; their answers are read only after their status.

OR-tools' min-cost flow for transportation, SciPy's HiGHS for choices under linear rules, OR-tools'
CP-SAT for assignments in which anything may be in anything's way.

One linear program for all three was tried and is slower: 231,725 sentences and 36 pairs take
min-cost flow .08 s, HiGHS .3 s and OR-tools' GLOP 1.8 s; with 1.4 million arcs 3 s, 19 to 43 s and
129 s.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError, VerificationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scipy.sparse import csr_array

    from contstim.arrays import BoolArray, FloatArray, IntArray

SOLVER = "OR-tools SimpleMinCostFlow"
LINEAR = "SciPy HiGHS dual simplex"
INTEGER = "SciPy HiGHS branch and bound"
ASSIGNMENT = "OR-tools CP-SAT"

_WHOLE = 1e-6  # HiGHS's own tolerance for integers


@dataclass(frozen=True, eq=False)
class Transport:
    """An optimal transportation plan.

    Attributes:
        chosen: (n_chosen,) positions of the arcs in use, ascending.
        shortfall: (n_sources,) units of demand that no plan can serve; all zero where one serves
            everybody.
    """

    chosen: IntArray
    shortfall: IntArray


def solver_version() -> str:
    """The installed version of OR-tools, for certificates."""
    return metadata.version("ortools")


def transportation(
    demands: IntArray, sources: IntArray, sinks: IntArray, costs: IntArray
) -> Transport:
    """Serve every source's demand from sinks that serve at most one unit, at the least cost.

    Demand that cannot be served is reported, not refused: it leaves over an overflow arc. Serving
    one unit more never costs as much, because the rearrangement passes every source at most once;
    so as much as possible is served, and that most cheaply.

    Args:
        demands: (n_sources,) units that each source needs.
        sources: (n_arcs,) which source an arc leaves, 0-based.
        sinks: (n_arcs,) which sink it reaches: any non-negative number.
        costs: (n_arcs,) what it costs, not negative.

    Raises:
        InputError: values that are no integers, negative, out of range or too large for the solver.
        VerificationError: the solver did not report an optimum.
    """
    # OR-tools silently truncates floats, 0.9 to 0.
    named = {"demands": demands, "sources": sources, "sinks": sinks, "costs": costs}
    for name, values in named.items():
        if values.dtype != np.int64 or values.ndim != 1:
            raise InputError(
                f"{name} must be int64 in one dimension, not {values.dtype} {values.shape}."
            )
        if len(values) and values.min() < 0:
            raise InputError(f"{name} must not be negative; the smallest is {values.min()}.")
    if not len(sources) == len(sinks) == len(costs):
        raise InputError(
            f"Arcs need one source, sink and cost each, not {len(sources)}, {len(sinks)} and "
            f"{len(costs)}."
        )
    if len(sources) and sources.max() >= len(demands):
        raise InputError(f"Arcs leave source {sources.max()}; there are {len(demands)} sources.")
    # Sinks by places from 0. The overflow arc costs more than any rearrangement of all the others.
    nodes, places = np.unique(sinks, return_inverse=True)
    overflow = (len(demands) + 1) * int(costs.max(initial=0)) + 1
    n_nodes = len(demands) + len(nodes) + 1
    if overflow * (n_nodes + 1) >= 2**62 or sum(demands.tolist()) >= 2**62:
        raise InputError(
            f"Costs up to {overflow:,} over {n_nodes:,} nodes overflow the solver's 64 bits: "
            "use smaller integers."
        )
    return _solve(demands, sources, places, len(nodes), costs, overflow)


def _solve(
    demands: IntArray,
    sources: IntArray,
    places: IntArray,
    n_places: int,
    costs: IntArray,
    overflow: int,
) -> Transport:
    """Nodes: the sources, the sinks, and one drain that all demand reaches in the end."""
    from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

    n_sources = len(demands)
    drain = n_sources + n_places
    flow = SimpleMinCostFlow()
    arcs = flow.add_arcs_with_capacity_and_unit_cost(
        sources, n_sources + places, np.ones_like(costs), costs
    )
    flow.add_arcs_with_capacity_and_unit_cost(
        np.arange(n_sources, drain),
        np.full(n_places, drain),
        np.ones(n_places, dtype=np.int64),
        np.zeros(n_places, dtype=np.int64),
    )
    spills = flow.add_arcs_with_capacity_and_unit_cost(
        np.arange(n_sources), np.full(n_sources, drain), demands, np.full(n_sources, overflow)
    )
    # Sources supply their demand, sinks pass on what reaches them, the drain takes it all.
    flow.set_nodes_supplies(
        np.arange(drain + 1), np.concatenate([demands, np.zeros(n_places, int), [-demands.sum()]])
    )
    status = flow.solve()
    if status != flow.OPTIMAL:
        raise VerificationError(
            f"{SOLVER} ended with status {status.name} on a problem that always has a solution."
        )
    return Transport(np.flatnonzero(flow.flows(arcs)), np.asarray(flow.flows(spills)))


@dataclass(frozen=True, eq=False)
class Answer:
    """Answer of HiGHS.

    Attributes:
        chosen: (n_candidates,); None where no choice keeps the rules.
        prices: (n_rules,) of the linear relaxation; all zero where it has no solution.
        bound: no choice costs less, by the solver's own account.
        solver: `LINEAR` where the relaxation was whole already, `INTEGER` otherwise.
    """

    chosen: BoolArray | None
    prices: FloatArray
    bound: float
    solver: str


def choose(
    costs: FloatArray, matrix: csr_array, lower: IntArray, upper: IntArray, *, seconds: float
) -> Answer:
    """Choose candidates so that lower <= matrix @ chosen <= upper, at the least cost.

    The linear relaxation comes first: its vertex often is whole (always, where the rules only share
    candidates out to two families of groups), and its dual prices prove a bound.

    Args:
        costs: (n_candidates,).
        matrix: (n_rules, n_candidates).
        lower: (n_rules,).
        upper: (n_rules,).
        seconds: how long branch and bound may take.

    Raises:
        VerificationError: the time ended before any choice was found, or the solver failed.
    """
    from scipy.optimize import linprog
    from scipy.sparse import vstack

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
    prices = np.zeros(len(lower))
    if relaxed.status == 2:
        return Answer(None, prices, np.inf, LINEAR)
    if relaxed.status != 0:
        raise VerificationError(f"{LINEAR} failed: {relaxed.message}")
    over, under = np.split(relaxed.ineqlin.marginals, 2)
    prices[exact], prices[other] = relaxed.eqlin.marginals, over - under
    if np.abs(relaxed.x - relaxed.x.round()).max(initial=0) < _WHOLE:
        return Answer(relaxed.x > 0.5, prices, float(relaxed.fun), LINEAR)
    values, bound = _branch(costs, matrix, lower, upper, seconds)
    return Answer(None if values is None else values > 0.5, prices, bound, INTEGER)


def slackest(
    matrix: csr_array, lower: IntArray, upper: IntArray, gravity: FloatArray, *, seconds: float
) -> IntArray:
    """By how much each rule is broken, (n_rules,), where the weighted sum is least.

    Args:
        matrix: (n_rules, n_candidates).
        lower: (n_rules,).
        upper: (n_rules,).
        gravity: (n_rules,) what each unit of a rule's breach weighs.
        seconds: how long branch and bound may take; the best found by then counts.

    Raises:
        VerificationError: the time ended before any answer was found, or the solver failed.
    """
    from scipy.sparse import eye_array, hstack

    n_rules, n_candidates = matrix.shape
    # Columns: the candidates, then for each rule what its sum lacks, then what it has too much.
    slack = eye_array(n_rules)
    costs = np.concatenate([np.zeros(n_candidates), gravity, gravity])
    values, _ = _branch(costs, hstack([matrix, slack, -slack]), lower, upper, seconds, n_candidates)
    if values is None:
        raise VerificationError(f"{INTEGER} found no solution of a problem that always has one.")
    missing: IntArray = values[n_candidates:].reshape(2, n_rules).sum(axis=0).round().astype(int)
    return missing


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
    solution = milp(
        costs,
        integrality=np.ones(len(costs)),
        bounds=Bounds(0, most),
        constraints=LinearConstraint(matrix, lower, upper),
        options={"time_limit": seconds, "mip_rel_gap": 0},
    )
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


def highs_version() -> str:
    """The installed version of SciPy, which brings HiGHS, for certificates."""
    return metadata.version("scipy")
