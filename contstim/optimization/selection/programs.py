"""Choosing some of many candidates under linear rules, and a bound that anybody can recompute.

Costs c_t are to be minimised; rule r holds if lower_r <= sum of weight_rt over the chosen t <=
upper_r. For any prices y_r, no choice that keeps the rules costs less than

    sum over r of  y_r · (lower_r if y_r > 0 else upper_r)
    + sum over t of  min(0, c_t - sum over r of  y_r · weight_rt)

because each chosen t costs its share of the prices and what it is dearer, and a rule returns at
least the first term. The prices come from a linear program; however they came about, the bound
holds, and it is computed here without rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from contstim.optimization.selection.solver import choose, slackest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from scipy.sparse import csr_array

    from contstim.arrays import BoolArray, FloatArray, IntArray


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
        prices: rule → price, zeros left out.
        bound: what no choice can cost less than, by the solver's own account.
        solver: which of the solver's methods found it.
    """

    chosen: BoolArray | None
    prices: dict[str, float]
    bound: float
    solver: str


def best_choice(costs: FloatArray, rules: Sequence[LinearRule], *, seconds: float) -> Choice:
    """Minimise the chosen candidates' summed cost under the rules.

    Args:
        costs: (n_candidates,) finite.
        rules: names are distinct.
        seconds: time for the search; where it does not suffice, `bound` is below the cost.

    Raises:
        VerificationError: the time ended before any choice was found, or the solver failed.
    """
    lower, upper = (np.array([getattr(r, side) for r in rules]) for side in ("lower", "upper"))
    answer = choose(costs, _matrix(rules, len(costs)), lower, upper, seconds=seconds)
    prices = {
        rule.name: float(price)
        for rule, price in zip(rules, answer.prices, strict=True)
        if price != 0
    }
    return Choice(answer.chosen, prices, answer.bound, answer.solver)


def violations(rules: Sequence[LinearRule], n_candidates: int, *, seconds: float) -> dict[str, int]:
    """By how much a choice that breaks rules as little as possible breaks each.

    Raises:
        VerificationError: the time ended before any answer was found, or the solver failed.
    """
    lower, upper = (np.array([getattr(r, side) for r in rules]) for side in ("lower", "upper"))
    gravity = np.array([_GRAVER**-rule.rank for rule in rules])
    missing = slackest(_matrix(rules, n_candidates), lower, upper, gravity, seconds=seconds)
    return {rule.name: int(n) for rule, n in zip(rules, missing, strict=True) if n}


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


def _matrix(rules: Sequence[LinearRule], n_candidates: int) -> csr_array:
    from scipy.sparse import csr_array

    # A row for each rule; its members are the columns.
    ends: IntArray = np.cumsum([0, *(len(rule.members) for rule in rules)])
    members = np.concatenate([np.asarray(rule.members, dtype=np.int64) for rule in rules])
    weights = np.concatenate([np.asarray(rule.weights, dtype=np.float64) for rule in rules])
    return csr_array((weights, members, ends), shape=(len(rules), n_candidates))
