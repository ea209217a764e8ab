"""Min-cost flow, and dual prices that prove a plan optimal without trust in the solver.

The plan serves each source k (reject model, accept model) with d_k sentences at costs c_ks.
For any prices u, no plan costs less than

    sum over k of  d_k · u_k   -   sum over s of  max(0, max over k of  u_k - c_ks)

(k over the sources that admit s). A plan is optimal exactly if some prices make this its own cost.

One linear program for flows, triplets and groups was tried and is slower: 231,725 sentences and 36
pairs take min-cost flow .08 s, HiGHS .3 s and OR-tools' GLOP 1.8 s; with 1.4 million arcs 3 s, 19
to 43 s and 129 s.
"""

from __future__ import annotations

from importlib import metadata
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError, VerificationError

if TYPE_CHECKING:
    from contstim.files.arrays import IntArray

SOLVER = "OR-tools SimpleMinCostFlow"
NEVER = 2**61  # the cost of what is not allowed; a price can be added without overflow


def solver_version() -> str:
    """The installed version of OR-tools, for certificates."""
    return metadata.version("ortools")


def transportation(
    demands: IntArray, sources: IntArray, sinks: IntArray, costs: IntArray
) -> tuple[IntArray, IntArray]:
    """Serve every source's demand from sinks that serve at most one unit, at the least cost.

    Demand that cannot be served is reported, not refused: it leaves over an overflow arc. Serving
    one unit more never costs as much, because the rearrangement passes every source at most once;
    so as much as possible is served, and that most cheaply.

    Args:
        demands: (n_sources,) units that each source needs.
        sources: (n_arcs,) which source an arc leaves, 0-based.
        sinks: (n_arcs,) which sink it reaches: any non-negative number.
        costs: (n_arcs,) what it costs, not negative.

    Returns:
        (n_chosen,) positions of the arcs in use, ascending; (n_sources,) units of demand that no
        plan can serve.

    Raises:
        InputError: costs or demands are too large for the solver.
        VerificationError: the solver did not report an optimum.
    """
    from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

    # Nodes: the sources, the sinks by places from 0, and one drain that all demand reaches in the
    # end. The overflow arc costs more than any rearrangement of all the others.
    nodes, places = np.unique(sinks, return_inverse=True)
    n_sources, n_places = len(demands), len(nodes)
    drain = n_sources + n_places
    overflow = (n_sources + 1) * int(costs.max(initial=0)) + 1
    if overflow * (drain + 2) >= 2**62 or sum(demands.tolist()) >= 2**62:
        raise InputError(
            f"Costs up to {overflow:,} over {drain + 1:,} nodes overflow the solver's 64 bits: "
            "use smaller integers."
        )
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
    return np.flatnonzero(flow.flows(arcs)), np.asarray(flow.flows(spills))


def dual_prices(costs: IntArray, served: IntArray, idle: IntArray) -> IntArray:
    """The highest prices that agree with an optimal plan, (n_sources,).

    A source pays at most its cheapest idle sentence, and at most another source's price and the
    extra cost of taking one of that source's sentences over. So the prices are shortest paths
    (Bellman-Ford), and there is a shortest path exactly if no rearrangement lowers the cost.

    Args:
        costs: (n_sources, n_chosen) cost of each chosen sentence to each source, or `NEVER`.
        served: (n_chosen,) which source it serves; may leave out sources that need nothing.
        idle: (n_sources,) cost of the source's cheapest sentence that is not chosen; where there is
            none, more than any rearrangement can save.

    Raises:
        VerificationError: the plan is not optimal.
    """
    # extra[j, s]: how much dearer chosen sentence s is to source j than to the source it serves.
    # takeover[k, j]: the least of these over the sentences of k: what j pays to take one from k.
    extra = costs - costs[served, np.arange(len(served))]
    takeover = np.stack(
        [extra[:, served == k].min(axis=1, initial=NEVER) for k in range(len(costs))]
    )
    # Paths to j by way of k, one sentence longer at each turn; a further improvement after as many
    # turns as there are sources would be a circle of takeovers that pays.
    prices = idle
    for _ in range(len(costs) + 1):
        lower = np.minimum(prices, (prices[:, None] + takeover).min(axis=0))
        if np.array_equal(lower, prices):
            return prices
        prices = lower
    raise VerificationError("The selection can be rearranged at a lower cost: it is not optimal.")


def sentence_prices(doubled_ranks: IntArray, prices: IntArray, below: int) -> IntArray:
    """Amounts that the bound subtracts for each sentence, (n_sentences,): most of them zero.

    Args:
        doubled_ranks: (n_models, n_sentences).
        prices: (n_sources,), the ordered pairs (reject, accept) in the order of `permutations`.
        below: what a sentence's doubled rank under the model that rejects it is less than.
    """
    n_models, n_sentences = doubled_ranks.shape
    worth = np.zeros(n_sentences, dtype=np.int64)
    for (reject, accept), price in zip(permutations(range(n_models), 2), prices, strict=True):
        # Sentences cheaper to this source than its price, of those that its accept model accepts.
        wanted = np.flatnonzero(doubled_ranks[reject] < min(price, below))
        wanted = wanted[doubled_ranks[accept, wanted] >= n_sentences]
        worth[wanted] = np.maximum(worth[wanted], price - doubled_ranks[reject, wanted])
    return worth
