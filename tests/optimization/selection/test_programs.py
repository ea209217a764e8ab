"""Choices under rules that a vertex does not fulfil, and groups of items."""

from __future__ import annotations

import numpy as np
import pytest

from contstim.errors import VerificationError
from contstim.optimization.selection.programs import (
    INTEGER,
    LINEAR,
    LinearRule,
    assign,
    best_choice,
    violations,
)


def edges(*bounds: tuple[int, int], ranks: tuple[int, ...] = (0, 0, 0)) -> list[LinearRule]:
    """Bounds on how many of the two corners of each edge of a triangle are chosen."""
    corners = ((0, 1), (1, 2), (2, 0))
    return [
        LinearRule(f"edge {n}", corners[n], (1, 1), *bounds[n], rank=ranks[n]) for n in range(3)
    ]


def test_a_fractional_relaxation_is_branched_and_its_prices_are_kept() -> None:
    """One of a triangle's corners; the relaxation takes half of each, which makes 1.5."""
    found = best_choice(-np.ones(3), edges((0, 1), (0, 1), (0, 1)), seconds=10)
    assert found.chosen is not None
    assert found.chosen.sum() == 1
    assert found.solver == INTEGER
    assert found.bound == pytest.approx(-1)
    assert found.prices == pytest.approx({f"edge {n}": -0.5 for n in range(3)})


def test_rules_that_contradict_each_other_have_no_choice() -> None:
    """Every edge needs exactly one corner: impossible in a triangle, one edge must be wrong."""
    one = (1, 1)
    assert best_choice(np.zeros(3), edges(one, one, one), seconds=10).chosen is None
    assert sum(violations(edges(one, one, one), 3, seconds=10).values()) == 1
    graver = edges(one, one, one, ranks=(0, 0, 1))
    assert violations(graver, 3, seconds=10) == {"edge 2": 1}
    relaxed = best_choice(np.zeros(3), edges((3, 3), (0, 2), (0, 2)), seconds=10)
    assert (relaxed.chosen, relaxed.solver) == (None, LINEAR)


def test_a_contradiction_that_presolving_makes_an_error_of_is_one() -> None:
    """By hand: one of 5 to 9 is chosen, and no single one of these has the weight 0."""
    rules = [
        LinearRule("first", range(5), (1,) * 5, 1, 1),
        LinearRule("both", (1, 3), (1, -1), 0, 0),
        LinearRule("second", range(5, 10), (1,) * 5, 1, 1),
        LinearRule("balance", range(5, 10), (5, 2, 2, -4, -2), 0, 0),
    ]
    costs = np.array([-17.3, -16.1, -26.2, -13.7, -7, -19.9, -13.8, -11.8, -19.1, -25.2])
    assert best_choice(costs, rules, seconds=10).chosen is None


def test_an_assignment_without_time_is_no_answer() -> None:
    apart = [[i, i + 1] for i in range(29)]
    with pytest.raises(VerificationError, match="found no way within 0 s"):
        assign(3, [list(range(30))], apart, n_items=30, seed=0, seconds=0.0)
