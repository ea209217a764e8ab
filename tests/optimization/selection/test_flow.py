"""Min-cost flow against SciPy's assignment solver, guards around OR-tools, and dual prices."""

from __future__ import annotations

import subprocess
import sys
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from contstim.errors import InputError, VerificationError
from contstim.optimization.selection.flow import (
    NEVER,
    dual_prices,
    sentence_prices,
    solver_version,
    transportation,
)
from tests.optimization.selection.test_natural import small_questions

if TYPE_CHECKING:
    from contstim.files.arrays import IntArray
    from contstim.items.scores import ScoreTable

ABSENT = 10_000  # in the witness: dearer than any plan


def integers(*values: int) -> IntArray:
    return np.array(values, dtype=np.int64)


@st.composite
def networks(draw: st.DrawFn) -> tuple[IntArray, IntArray]:
    """Demands, (n_sources,), and costs, (n_sources, n_sinks), with ABSENT where there is no arc."""
    n_sources, n_sinks = draw(st.integers(1, 4)), draw(st.integers(1, 7))
    demands = draw(st.lists(st.integers(0, 3), min_size=n_sources, max_size=n_sources))
    cost = st.one_of(st.integers(0, 9), st.just(ABSENT))
    size = n_sources * n_sinks
    costs = draw(st.lists(cost, min_size=size, max_size=size))
    return integers(*demands), integers(*costs).reshape(n_sources, n_sinks)


@given(networks())
def test_plan_is_as_cheap_as_the_one_by_scipy(network: tuple[IntArray, IntArray]) -> None:
    """The witness repeats a source once per unit and lets each unit stay away, at a high price."""
    demands, costs = network
    sources, sinks = np.nonzero(costs < ABSENT)
    arc_costs = costs[sources, sinks]
    chosen, unserved = transportation(demands, sources, 5 * sinks, arc_costs)

    units = np.repeat(costs, demands, axis=0)
    units = np.hstack([units, np.full((len(units), len(units)), ABSENT)])
    witness = int(units[linear_sum_assignment(units)].sum())
    shortfall = int(unserved.sum())
    assert int(arc_costs[chosen].sum()) + ABSENT * shortfall == witness

    served = np.bincount(sources[chosen], minlength=len(demands))
    assert (served + unserved == demands).all()
    assert len(set(sinks[chosen])) == len(chosen)


def test_a_detour_over_every_source_beats_leaving_one_short() -> None:
    """Source 0 can only be served when 1, 2 and 3 all move on to a sentence a hundred dearer."""
    chosen, shortfall = transportation(
        integers(1, 1, 1, 1),
        integers(0, 1, 1, 2, 2, 3, 3),
        integers(0, 0, 1, 1, 2, 2, 3),
        integers(100, 0, 100, 0, 100, 0, 100),
    )
    assert chosen.tolist() == [0, 2, 4, 6]
    assert not shortfall.any()


def test_what_cannot_be_served_is_reported_for_the_source() -> None:
    _, shortfall = transportation(integers(1, 3), integers(0, 1), integers(0, 1), integers(5, 5))
    assert shortfall.tolist() == [0, 2]


def test_no_arcs_at_all_leave_everything_over() -> None:
    assert transportation(integers(2), integers(), integers(), integers())[1].tolist() == [2]


@pytest.mark.parametrize(
    ("demands", "sources", "sinks", "costs", "message"),
    [
        ([1], [0], [0], [2**61], "overflow the solver's 64 bits"),
        ([2**61, 2**61], [0], [0], [1], "overflow the solver's 64 bits"),
    ],
)
def test_what_the_solver_would_mistake_is_refused(
    demands: list[float], sources: list[int], sinks: list[int], costs: list[float], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        transportation(*map(np.array, (demands, sources, sinks, costs)))


def test_nothing_is_read_when_the_status_is_not_optimal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading flows after another status crashes the whole process."""
    from ortools.graph.python import min_cost_flow

    class Failing(min_cost_flow.SimpleMinCostFlow):  # type: ignore[misc]
        def solve(self) -> object:
            return self.BAD_COST_RANGE

    monkeypatch.setattr(min_cost_flow, "SimpleMinCostFlow", Failing)
    with pytest.raises(VerificationError, match="BAD_COST_RANGE"):
        transportation(integers(1), integers(0), integers(0), integers(1))


def test_ortools_is_loaded_only_when_it_is_needed() -> None:
    code = (
        "import sys, contstim.optimization.selection.natural; "
        "sys.exit('ortools' in sys.modules or 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert solver_version()


@given(
    small_questions(),
    st.lists(st.integers(-5, 40), min_size=6, max_size=6),
    st.integers(0, 20),
)
def test_sentence_prices_are_their_definition(
    question: tuple[ScoreTable, int], prices: list[int], below: int
) -> None:
    """The formula of the dual, sentence by sentence, for any prices at all."""
    doubled = question[0].doubled_ranks().T
    n_models, n_sentences = doubled.shape
    sources = list(permutations(range(n_models), 2))
    prices = prices[: len(sources)]
    witness = [0] * n_sentences
    for (reject, accept), price in zip(sources, prices, strict=True):
        for s in range(n_sentences):
            if doubled[accept, s] >= n_sentences and doubled[reject, s] < below:
                witness[s] = max(witness[s], price - doubled[reject, s])
    assert sentence_prices(doubled, np.array(prices), below).tolist() == witness


def test_a_plan_that_is_not_optimal_has_no_prices() -> None:
    """Two sources hold each other's sentence: swapping saves two, a negative cycle."""
    costs = np.array([[2, 1], [1, 2]], dtype=np.int64)
    with pytest.raises(VerificationError, match="rearranged at a lower cost"):
        dual_prices(costs, np.array([0, 1]), np.array([9, 9]))
    only = np.array([[1, NEVER], [NEVER, 1]], dtype=np.int64)
    assert dual_prices(only, np.array([0, 1]), np.array([9, 7])).tolist() == [9, 7]
