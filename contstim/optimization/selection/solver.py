"""Choose candidates under linear rules with the solver HiGHS of OR-tools.

No other module imports a solver. This module avoids problems of OR-tools 9.15:

* The allowed gap between objective and bound is zero. Otherwise, HiGHS stops at a choice within
  0.01 % of its bound, and calls this choice optimal.
* MathOpt solves the programs, because OR-tools' model builder has three faults. It loses the best
  choice at the time limit, prints a banner, and ignores a limit of zero seconds.

HiGHS takes 0.8 s for natural pairs from 231,725 sentences and nine models (51,912 candidates). If
rules on words add 31,011 weights, HiGHS takes 5 s, SCIP 19 s and CP-SAT 21 s.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from importlib import metadata
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import VerificationError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ortools.math_opt.python.mathopt import Emphasis, Model, SolveResult
    from scipy.sparse import coo_array, csc_array

    from contstim.files.arrays import BoolArray, FloatArray, IntArray

SOLVER = "OR-tools HiGHS"
EXACT = 1e-6  # costs that differ by less are equal
_SECONDS_OF_DIAGNOSIS = 10.0  # time limit of `least_violations`
_MIN_SECONDS = 0.001  # to HiGHS, a limit of 0 means no limit
_MAX_COLUMNS = 20_000  # a program with `order` and more candidates is first solved for a part
# The first part of a large program has the candidates with `order` below `_FIRST`. If this part is
# infeasible, this limit on `order` is multiplied by `_GROWTH`
_FIRST, _GROWTH = 3, 8


def solver_version() -> str:
    """Return the installed version of OR-tools, for certificates."""
    return metadata.version("ortools")


@dataclass(frozen=True, eq=False)
class LinearRule:
    """Rule: lower ≤ sum of the weights of the chosen candidates ≤ upper.

    Attributes:
        members: indices of the candidates that have a weight; each index occurs once.
        key: option that loosens the rule; empty if there is none.
    """

    name: str
    members: Sequence[int] | IntArray
    weights: Sequence[int] | IntArray
    lower: int
    upper: float
    key: str = ""


def group_indices(keys: IntArray, n: int) -> list[IntArray]:
    """Return, for each key from 0 to n - 1, the indices at which `keys` has this value."""
    order = np.argsort(keys, kind="stable")
    # The first and the last part are empty
    return np.split(order, np.searchsorted(keys[order], np.arange(n + 1)))[1:-1]


@dataclass(frozen=True, eq=False)
class Program:
    """Candidates to choose from, goals and linear rules.

    Attributes:
        goals: costs of the candidates for each goal, (n_candidates,) each. The solver minimises the
            summed cost of the chosen candidates for the first goal. Among the best choices, it
            minimises the summed cost for the second goal, and so on. The costs for all goals except
            the last are whole numbers.
        matrix: (n_rules, n_candidates) weights.
        lower: (n_rules,) minimum of each rule's sum.
        upper: (n_rules,) maximum of each rule's sum.
        names: (n_rules,) names for messages.
        keys: (n_rules,) options that loosen the rules; a key is empty if there is no such option.
        order: (n_candidates,) numbers. A large program is first solved for the candidates with the
            smallest numbers; other candidates are added later. None to solve the program with all
            candidates at once.
    """

    goals: Sequence[FloatArray]
    matrix: csc_array
    lower: FloatArray
    upper: FloatArray
    names: Sequence[str]
    keys: Sequence[str]
    order: IntArray | None = None

    @classmethod
    def of(cls, goals: Sequence[FloatArray], rules: Sequence[LinearRule]) -> Program:
        """Build a program from rules."""
        from scipy.sparse import csr_array

        ends: IntArray = np.cumsum([0, *(len(rule.members) for rule in rules)])
        none: list[IntArray] = [np.zeros(0, dtype=np.int64)]
        members = np.concatenate(none + [np.asarray(rule.members, np.int64) for rule in rules])
        weights = np.concatenate(none + [np.asarray(rule.weights, np.int64) for rule in rules])
        shape = (len(rules), len(goals[-1]))
        return cls(
            goals,
            csr_array((weights.astype(float), members, ends), shape=shape).tocsc(),
            np.array([rule.lower for rule in rules], dtype=np.float64),
            np.array([rule.upper for rule in rules], dtype=np.float64),
            [rule.name for rule in rules],
            [rule.key for rule in rules],
        )


@dataclass(frozen=True, eq=False)
class Solution:
    """The best choice of a program.

    Attributes:
        objective: summed cost for the last goal.
        bound: proven lower bound of `objective`.
        exact: whether the summed costs for all other goals are proven to be minimal.
    """

    chosen: BoolArray
    objective: float
    bound: float
    exact: bool


def solve(program: Program, *, seconds: float = 60.0) -> Solution | None:
    """Choose candidates that satisfy the rules of a program and minimise its goals in order.

    `seconds` limits branch and bound, separately for each goal. If the limit is reached, `bound`
    may be below `objective`.

    Returns:
        The best choice; None if no choice satisfies the rules.

    Raises:
        VerificationError: if the time limit was reached without any choice, or the solver failed.
    """
    from scipy.sparse import csr_array, vstack

    exact = True
    *first_goals, last = program.goals
    for costs in first_goals:
        if not costs.any():
            continue
        best = _minimise(program, costs, seconds)
        if best is None:
            return None
        value = round(best.objective)
        exact &= ceil(best.bound - EXACT) >= value
        # Add the rule that the summed cost of the chosen candidates is at most `value`
        matrix = vstack([program.matrix, csr_array(costs[None])]).tocsc()
        lower, upper = np.append(program.lower, -np.inf), np.append(program.upper, value)
        program = replace(program, matrix=matrix, lower=lower, upper=upper)
    solution = _minimise(program, last, seconds)
    return None if solution is None else replace(solution, exact=exact)


def linear_minimum(costs: FloatArray, weights: FloatArray, upper: FloatArray) -> FloatArray:
    """Return x, (n,), that minimises costs · x under weights · x ≤ upper and 0 ≤ x ≤ 1.

    Weights are (n_rules, n).

    Raises:
        VerificationError: if no values satisfy the rules, or the solver failed.
    """
    from scipy.sparse import csc_array

    none = np.full(len(upper), -np.inf)
    result = _highs(costs, csc_array(weights), none, upper, np.inf, integral=False)
    if result is None:
        raise VerificationError(f"{SOLVER} found no values that satisfy all rules.")
    return result[0]


def least_violations(
    program: Program, forced: Collection[int] = (), *, hard: Collection[int] = ()
) -> dict[int, int]:
    """Find the choice with the smallest total violation of rules, and return its violations.

    The violation of a rule is the amount by which its sum is too small or too large. A
    violation counts 1,000 times as much if `lower` = `upper`, for example if the rule sets the
    number of items. Candidates in `forced` must be chosen, and rules in `hard` must not be
    violated. Goals are ignored.

    Returns:
        Index of a violated rule → violation.

    Raises:
        VerificationError: if the solver failed.
    """
    from scipy.sparse import eye_array, hstack

    n_rules, n_candidates = program.matrix.shape
    # Columns: candidates, then the deficit and the excess of each rule's sum
    slack = eye_array(n_rules)
    matrix = hstack([program.matrix, slack, -slack]).tocsc()
    weights = np.where(program.lower == program.upper, 1000.0, 1.0)
    largest = np.repeat([1.0, np.inf], [n_candidates, 2 * n_rules])
    largest[n_candidates:].reshape(2, n_rules)[:, [*hard]] = 0
    costs = np.concatenate([np.zeros(n_candidates), weights, weights])
    limits = (program.lower, program.upper, _SECONDS_OF_DIAGNOSIS)
    result = _highs(costs, matrix, *limits, largest=largest, forced=forced, integral=False)
    if result is not None and not _are_whole(result[0]):
        result = _highs(costs, matrix, *limits, largest=largest, forced=forced, integral=True)
    if result is None:
        raise VerificationError(f"{SOLVER} failed: it found no solution, although there is one.")
    amounts = result[0][n_candidates:].reshape(2, n_rules).sum(axis=0).round().astype(int)
    return {rule: int(amounts[rule]) for rule in np.flatnonzero(amounts).tolist()}


def _minimise(program: Program, costs: FloatArray, seconds: float) -> Solution | None:
    """Minimise one goal by a linear relaxation; if its values are not whole, by branch and bound.

    If a large program has `order`, it is first solved for a part of the candidates. Then the
    candidates with a reduced cost below the gap between objective and bound are added. The
    candidates that are still missing cannot improve the choice.
    """
    n_candidates, first, limits = len(costs), _FIRST, (program.lower, program.upper, seconds)
    order = program.order if n_candidates > _MAX_COLUMNS else None
    columns = np.arange(n_candidates) if order is None else np.flatnonzero(order < first)
    integral, bound, reduced = False, -np.inf, np.zeros(n_candidates)
    while True:
        part = program.matrix[:, columns]
        result = _highs(costs[columns], part, *limits, integral=integral)
        if result is None:
            if order is None or len(columns) == n_candidates:
                return None
            first *= _GROWTH
            columns = np.union1d(columns, np.flatnonzero(order < first))
            continue
        values, objective, result_bound, duals = result
        if not integral:
            bound = result_bound
            if order is not None:
                # Dual values for a part of the candidates prove a bound for all candidates
                reduced = costs - program.matrix.T @ duals
                binding = np.where(duals > 0, program.lower, program.upper)
                returned = duals[duals != 0] * binding[duals != 0]
                bound = float(returned.sum() + np.minimum(reduced, 0).sum())
        gap = objective - bound if integral else 0.0
        near = np.union1d(columns, np.flatnonzero(reduced < gap - EXACT))
        if order is not None and len(near) > len(columns):
            columns = near
        elif integral or _are_whole(values):
            chosen = np.zeros(n_candidates, dtype=np.bool_)
            chosen[columns] = values > 0.5
            bound = max(bound, result_bound) if integral else bound
            if not (costs % 1).any():
                bound = ceil(bound - EXACT)
            return Solution(chosen, float(costs[chosen].sum()), bound, True)
        else:
            integral = True


def _are_whole(values: FloatArray) -> bool:
    return bool(np.abs(values - values.round()).max(initial=0) < EXACT)


def _highs(
    costs: FloatArray,  # (n_columns,)
    matrix: csc_array,  # (n_rules, n_columns)
    lower: FloatArray,  # (n_rules,) minima of the rules' sums
    upper: FloatArray,  # (n_rules,) maxima
    seconds: float,  # time limit if values are whole numbers
    *,
    largest: FloatArray | None = None,  # (n_columns,) largest value of each column; by default 1
    forced: Collection[int] = (),  # columns with a value of at least 1
    integral: bool,
) -> tuple[FloatArray, float, float, FloatArray] | None:
    """Solve a linear program; if `integral`, the values of the columns must be whole numbers.

    Returns:
        Values of the columns, (n_columns,); the objective and its proven bound; and the rules' dual
        values, (n_rules,), which are zeros if `integral`. None if the program is infeasible.
    """
    from ortools.math_opt.python import mathopt

    largest = np.ones(len(costs)) if largest is None else largest
    least = np.zeros(len(costs))
    least[[*forced]] = 1
    # Omit rules that no choice of these columns breaks
    finite = np.minimum(largest, 1e9)
    can_break = (lower > matrix.minimum(0) @ finite) | (upper < matrix.maximum(0) @ finite)
    rules = np.flatnonzero(can_break)
    sums, limits = (lower[rules], upper[rules]), (least, largest)
    model = _model(costs, matrix.tocsr()[rules].tocoo(), sums, limits, integral=integral)
    for presolve in (mathopt.Emphasis.MEDIUM, mathopt.Emphasis.OFF):
        result = _run(model, seconds if integral else None, presolve)
        if result is not None:
            break
    else:
        raise VerificationError(f"{SOLVER} failed.")
    reason, reasons = result.termination.reason, mathopt.TerminationReason
    if reason in (reasons.INFEASIBLE, reasons.INFEASIBLE_OR_UNBOUNDED):
        return None
    has_solution = integral and result.has_primal_feasible_solution()
    if reason is not reasons.OPTIMAL and not has_solution:
        raise VerificationError(
            f"{SOLVER} found no choice within {seconds:g} s, and no proof that none exists. Loosen "
            "the rules, or raise `seconds` (only a selection of triplets has this time limit). "
            f"({result.termination.detail})"
        )
    values, duals = np.zeros(len(costs)), np.zeros(len(lower))
    for variable, value in result.variable_values().items():
        values[variable.id] = value
    if not integral and result.has_dual_feasible_solution():
        for rule, dual in result.dual_values().items():
            duals[rules[rule.id]] = dual
        # A positive dual value of a rule without a minimum is a rounding error
        duals[(duals > 0) & np.isinf(lower)] = 0
    bounds = result.termination.objective_bounds
    return values, bounds.primal_bound, bounds.dual_bound, duals


def _model(
    costs: FloatArray,
    weights: coo_array,
    sums: tuple[FloatArray, FloatArray],
    values: tuple[FloatArray, FloatArray],
    *,
    integral: bool,
) -> Model:
    """Build OR-tools' model.

    `sums` are the minima and the maxima of the rules' sums. `values` are the minima and the maxima
    of the columns.
    """
    from ortools.math_opt import model_pb2
    from ortools.math_opt.python import mathopt

    model = model_pb2.ModelProto()
    columns, rules = model.variables, model.linear_constraints
    columns.ids.extend(range(len(costs)))
    columns.lower_bounds.extend(values[0].tolist())
    columns.upper_bounds.extend(values[1].tolist())
    columns.integers.extend([integral] * len(costs))
    objective, priced = model.objective.linear_coefficients, np.flatnonzero(costs)
    objective.ids.extend(priced.tolist())
    objective.values.extend(costs[priced].tolist())
    rules.ids.extend(range(len(sums[0])))
    rules.lower_bounds.extend(sums[0].tolist())
    rules.upper_bounds.extend(sums[1].tolist())
    order = np.lexsort((weights.col, weights.row))
    matrix = model.linear_constraint_matrix
    matrix.row_ids.extend(weights.row[order].tolist())
    matrix.column_ids.extend(weights.col[order].tolist())
    matrix.coefficients.extend(weights.data[order].tolist())
    return mathopt.Model.from_model_proto(model)


def _run(model: Model, seconds: float | None, presolve: Emphasis) -> SolveResult | None:
    """Run HiGHS; return None if it fails. Presolve fails for some infeasible programs."""
    from ortools.math_opt.python import mathopt

    parameters = mathopt.SolveParameters(
        time_limit=None if seconds is None else timedelta(seconds=max(seconds, _MIN_SECONDS)),
        relative_gap_tolerance=0.0,
        absolute_gap_tolerance=0.0,
        presolve=presolve,
    )
    # Reading results is slow, so omit values of zero and all reduced costs
    fields = mathopt.ModelSolveParameters(
        variable_values_filter=mathopt.VariableFilter(skip_zero_values=True),
        dual_values_filter=mathopt.LinearConstraintFilter(skip_zero_values=True),
        reduced_costs_filter=mathopt.VariableFilter(filtered_items=()),
    )
    solver = mathopt.SolverType.HIGHS
    try:
        result = mathopt.solve(model, solver, params=parameters, model_params=fields)
    except (AttributeError, RuntimeError, ValueError):  # OR-tools 9.15 fails to raise its own error
        return None
    failed = result.termination.reason is mathopt.TerminationReason.OTHER_ERROR
    return None if failed else result
