"""Value of a set of triplets, and the cost of each triplet to it."""

from __future__ import annotations

from math import ceil, fsum
from typing import TYPE_CHECKING

import numpy as np

from contstim.optimization.selection.triplet_question import by_model_pair, controversiality, losses
from contstim.scores import doubled_ranks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from contstim.arrays import FloatArray
    from contstim.optimization.selection.triplet_question import Objective, TripletQuestion
    from contstim.stimuli import Triplet

TIE_RULES = {
    "controversiality": "among sets of equal controversiality the solver's stands",
    "worst-rank": "losses that tie share their mean rank, worst ranks that tie are ranked by first "
    "occurrence; among sets of equal rank sum the more controversial one stands: a triplet costs "
    "its rank, less its controversiality over the least in a share too small to add up to one rank",
}
EXACT = 1e-6  # nats or ranks: objective and bound that differ by less are called equal


def worst_ranks(triplets: Sequence[Triplet]) -> FloatArray:
    """The published code's measure, (n_triplets,), 1 … n: the lower, the more controversial.

    Inside a model pair both losses are ranked (ties share their mean rank), a triplet gets the
    worse of its two ranks, and these are ranked again, ties by first occurrence.
    """
    ranks = np.empty(len(triplets))
    for places in by_model_pair(triplets).values():
        both = np.array([losses(triplets[place]) for place in places]).T  # (2, n_of_pair)
        worse = np.maximum(*map(doubled_ranks, both))
        # The triplet with the least worse rank of the pair's gets 1, the next one 2, and so on, at
        # its own place among all triplets.
        ranks[np.array(places)[np.argsort(worse, kind="stable")]] = np.arange(1, len(places) + 1)
    return ranks


def triplet_costs(triplets: Sequence[Triplet], question: TripletQuestion) -> FloatArray:
    """Cost of each triplet to a set, (n_triplets,), to be minimised.

    For `worst-rank` it is the rank, less a share of the triplet's controversiality so small that
    all shares together make less than half a rank: it decides between sets of equal rank sum.
    """
    values = np.array([controversiality(triplet) for triplet in triplets])
    if question.objective == "controversiality":
        return -values
    # A share is at most 1 / (2 * chosen), so that `chosen` of them make half a rank at most.
    chosen = sum(map(question.count, by_model_pair(triplets)))
    above = values - values.min()
    costs: FloatArray = worst_ranks(triplets) - above / (
        2 * max(chosen, 1) * above.max(initial=1.0)
    )
    return costs


def set_value(
    triplets: Sequence[Triplet], chosen: Sequence[Triplet], objective: Objective
) -> float:
    """Value of a set: its summed Eq. 4 (nats), or its summed ranks among all triplets."""
    if objective == "controversiality":
        return fsum(map(controversiality, chosen))
    names = {triplet.triplet_id for triplet in chosen}
    ranks = worst_ranks(triplets)
    return fsum(r for t, r in zip(triplets, ranks, strict=True) if t.triplet_id in names)


def as_bound(cost: Fraction | float, objective: Objective) -> float:
    """A lower bound on summed `triplet_costs` as a bound on `set_value`; rank sums are whole."""
    if objective == "controversiality":
        return -float(cost)
    return float(ceil(cost)) if np.isfinite(float(cost)) else float(cost)
