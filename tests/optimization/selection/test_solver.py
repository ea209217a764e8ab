"""The solver, compared with exhaustive search over all choices."""

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contstim
from contstim.errors import VerificationError
from contstim.files.arrays import BoolArray
from contstim.optimization.selection import solver
from contstim.optimization.selection.solver import LinearRule, Program, least_violations, solve
from tests.examples import examples


def make_edge_rules(*bounds: tuple[int, int]) -> list[LinearRule]:
    """Return bounds on the number of chosen corners at each edge of a triangle."""
    corners = ((0, 1), (1, 2), (2, 0))
    return [LinearRule(f"edge {n}", corners[n], (1, 1), *bounds[n]) for n in range(3)]


def violates_rules(program: Program, chosen: BoolArray) -> bool:
    sums = program.matrix @ chosen
    return bool(((sums < program.lower) | (sums > program.upper)).any())


@st.composite
def small_programs(draw: st.DrawFn) -> Program:
    n = draw(st.integers(1, 7))
    numbers = st.lists(st.integers(-3, 3), min_size=n, max_size=n)
    goals = [np.array(draw(numbers), dtype=float) for _ in range(draw(st.integers(0, 2)))]
    last = draw(st.lists(st.sampled_from([-2.5, -1.0, 0.0, 0.3, 2.0]), min_size=n, max_size=n))
    rules = []
    for k in range(draw(st.integers(0, 4))):
        lower = draw(st.integers(-3, 3))
        upper = lower + draw(st.integers(0, 3))
        rules.append(LinearRule(f"rule {k}", range(n), draw(numbers), lower, upper))
    return Program.of([*goals, np.array(last)], rules)


@settings(max_examples=examples(50))
@given(small_programs(), st.booleans())
def test_solutions_equal_the_exhaustive_optimum(program: Program, in_steps: bool) -> None:
    """Witness: every choice, by goals in order; with all columns, and with column generation."""
    n = len(program.goals[-1])
    choices = [np.array(choice, dtype=bool) for choice in product((0, 1), repeat=n)]
    allowed = [choice for choice in choices if not violates_rules(program, choice)]
    with pytest.MonkeyPatch.context() as patch:
        if in_steps:
            patch.setattr(solver, "_MAX_COLUMNS", 1)
            program = Program(**{**vars(program), "order": np.arange(n)})
        solution = solve(program)
    if not allowed:
        assert solution is None
        return
    assert solution is not None
    assert not violates_rules(program, solution.chosen)
    best = min(tuple(round(float(g @ c), 9) for g in program.goals) for c in allowed)
    values = tuple(float(goal @ solution.chosen) for goal in program.goals)
    assert values == pytest.approx(best, abs=1e-6)
    assert solution.objective == pytest.approx(best[-1], abs=1e-6)
    assert solution.bound == pytest.approx(best[-1], abs=1e-5)
    assert solution.exact


def test_contradictory_rules_have_no_solution() -> None:
    """Each edge needs exactly one corner, which is impossible in a triangle."""
    program = Program.of([np.zeros(3)], make_edge_rules((1, 1), (1, 1), (1, 1)))
    assert solve(program) is None
    assert [*least_violations(program).values()] == [1]
    required = Program.of([np.zeros(3)], make_edge_rules((1, 1), (1, 1), (0, 0)))
    assert least_violations(required, [2])[2] >= 1
    assert solve(Program.of([np.zeros(3)], make_edge_rules((3, 3), (0, 2), (0, 2)))) is None


def test_presolve_errors_are_reported_as_infeasible() -> None:
    """By hand: one of 5 to 9 is chosen, and each of these has a nonzero weight."""
    rules = [
        LinearRule("first", range(5), (1,) * 5, 1, 1),
        LinearRule("both", (1, 3), (1, -1), 0, 0),
        LinearRule("second", range(5, 10), (1,) * 5, 1, 1),
        LinearRule("balance", range(5, 10), (5, 2, 2, -4, -2), 0, 0),
    ]
    costs = np.array([-17.3, -16.1, -26.2, -13.7, -7, -19.9, -13.8, -11.8, -19.1, -25.2])
    assert solve(Program.of([costs], rules)) is None


def make_hard_program() -> Program:
    """Return a market split problem, whose equations need long branch and bound."""
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 100, (4, 60))
    rules = [
        LinearRule(f"rule {k}", range(60), row.tolist(), int(row.sum() // 2), int(row.sum() // 2))
        for k, row in enumerate(weights)
    ]
    return Program.of([rng.normal(size=60)], rules)


def test_time_limits_without_a_solution_raise_an_error() -> None:
    with pytest.raises(VerificationError, match="seconds"):
        solve(make_hard_program(), seconds=0)


def test_time_limits_leave_a_gap() -> None:
    rng = np.random.default_rng(1)
    weights = rng.integers(1, 1000, (8, 150))
    rules = [
        LinearRule(f"rule {k}", range(150), row.tolist(), 0, int(row.sum() // 3))
        for k, row in enumerate(weights)
    ]
    program = Program.of([-weights.sum(axis=0) - rng.random(150)], rules)
    solution = solve(program, seconds=0.2)
    assert solution is not None
    assert not violates_rules(program, solution.chosen)
    assert solution.bound < solution.objective == pytest.approx(program.goals[0] @ solution.chosen)


def test_one_file_imports_a_solver() -> None:
    folder = Path(contstim.__file__).parent
    pattern = re.compile(r"ortools|scipy\.optimize import [^\n]*(milp|linprog)|highspy")
    imports = re.compile(r"^\s*(from|import) .*$", re.MULTILINE)
    users = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if any(pattern.search(line.group()) for line in imports.finditer(path.read_text()))
    }
    assert users == {"optimization/selection/solver.py"}
