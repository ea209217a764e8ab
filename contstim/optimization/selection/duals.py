"""Dual prices of a transportation plan: a proof of optimality that needs no trust in a solver.

The plan serves each source k (reject model, accept model) with d_k sentences at costs c_ks.
For any prices u, no plan costs less than

    sum over k of  d_k · u_k   -   sum over s of  max(0, max over k of  u_k - c_ks)

(k over the sources that admit s). A plan is optimal exactly if some prices make this its own cost.
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import VerificationError

if TYPE_CHECKING:
    from contstim.arrays import IntArray

NEVER = 2**61  # the cost of what is not allowed; a price can be added without overflow


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
