"""The one place that calls OR-tools; its answers are read only after its status."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError, VerificationError

if TYPE_CHECKING:
    from contstim.arrays import IntArray

SOLVER = "OR-tools SimpleMinCostFlow"


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
    for name, values in zip(
        ("demands", "sources", "sinks", "costs"), (demands, sources, sinks, costs), strict=True
    ):
        _check_integers(name, values)
    if not len(sources) == len(sinks) == len(costs):
        raise InputError(
            f"Arcs need one source, sink and cost each, not {len(sources)}, {len(sinks)} and "
            f"{len(costs)}."
        )
    if len(sources) and sources.max() >= len(demands):
        raise InputError(f"Arcs leave source {sources.max()}; there are {len(demands)} sources.")
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
    flow.set_nodes_supplies(
        np.arange(drain + 1), np.concatenate([demands, np.zeros(n_places, int), [-demands.sum()]])
    )
    status = flow.solve()
    if status != flow.OPTIMAL:
        raise VerificationError(
            f"{SOLVER} ended with status {status.name} on a problem that always has a solution."
        )
    return Transport(np.flatnonzero(flow.flows(arcs)), np.asarray(flow.flows(spills)))


def _check_integers(name: str, values: IntArray) -> None:
    """OR-tools silently truncates floats, 0.9 to 0."""
    if values.dtype != np.int64 or values.ndim != 1:
        raise InputError(
            f"{name} must be int64 in one dimension, not {values.dtype} {values.shape}."
        )
    if len(values) and values.min() < 0:
        raise InputError(f"{name} must not be negative; the smallest is {values.min()}.")
