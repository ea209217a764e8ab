"""Programs over many candidates in cells, and counts of cells that are as even as possible.

Few of a million candidates matter. A linear program over the best of each cell gives prices of the
rules, with which all others are priced (`contstim.optimization.selection.programs`): those that
could improve the choice join the program, until none is left.

Counts are as even as possible if the fewest cells have none, then the fewest have one, and so on
(leximin). For each k, a column of every cell says whether the cell has k candidates or more. The
sum of these columns is maximised for k = 1, and fixed, then for k = 2, and so on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from contstim.optimization.selection.programs import LinearRule, best_choice, priced_bound
from contstim.optimization.selection.triplet_rules import EXACT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from scipy.sparse import csr_array

    from contstim.files.arrays import FloatArray, IntArray
    from contstim.optimization.selection.programs import Choice

_MORE = 3  # candidates of each cell, in addition to those that may be needed, to begin with
_GROWTH = 8  # factor of these where they do not suffice
_SECONDS = 60.0  # for branch and bound


@dataclass(frozen=True, eq=False)
class Program:
    """Candidates, and levels of cells, as columns; each is chosen or not.

    Attributes:
        costs: (n_columns,) to be minimised.
        matrix: (n_columns, n_rules) weight of each column in each rule.
        limits: rule → least and most of its sum, in the order of the matrix.
        order: (n_columns,) place of a candidate in its cell by cost, less the number that may be
            needed; those below zero are in the program from the beginning.
    """

    costs: FloatArray
    matrix: csr_array
    limits: Mapping[str, tuple[int, int]]
    order: IntArray

    def rules(self, some: IntArray, prices: Collection[str] = ()) -> Iterator[LinearRule]:
        """The rules about some columns that can be broken, and those that have a price."""
        part = self.matrix[some].tocsc()
        # Entries are 1, or -1 of levels
        size, total = np.diff(part.indptr), part.sum(axis=0)
        lower, upper = np.array([*self.limits.values()]).T
        can_break = (lower > (total - size) / 2) | (upper < (total + size) / 2)
        for number, name in enumerate(self.limits):
            if can_break[number] or name in prices:
                entries = slice(part.indptr[number], part.indptr[number + 1])
                members, weights = part.indices[entries].tolist(), part.data[entries].astype(int)
                yield LinearRule(name, members, weights.tolist(), *self.limits[name])

    def reduced(self, prices: Mapping[str, float]) -> FloatArray:
        """Costs less what the prices give for each column, (n_columns,)."""
        reduced: FloatArray = self.costs - self.matrix @ self._every(prices)
        return reduced

    def bound(self, prices: Mapping[str, float]) -> float:
        """The bound on summed costs that prices prove over all columns, rounded."""
        every, limits = self._every(prices), np.array([*self.limits.values()])
        returned = every @ np.where(every > 0, *limits.T)
        return float(returned + np.minimum(self.reduced(prices), 0).sum())

    def exact_bound(self, prices: Mapping[str, float]) -> float:
        """The same, computed without rounding."""
        # A column that is clearly dearer than its prices does not count
        some = np.flatnonzero(self.reduced(prices) < EXACT)
        return float(priced_bound(self.costs[some].tolist(), [*self.rules(some, prices)], prices))

    def _every(self, prices: Mapping[str, float]) -> FloatArray:
        return np.array([prices.get(name, 0.0) for name in self.limits])

    def with_level(self, cells: IntArray, level: int) -> Program:
        """The program with a column for each cell: whether it has so many candidates or more.

        Args:
            cells: (n_cells,) the rules of the cells that have so many, by number.
            level: the number of candidates, from 1; the levels below are columns already.
        """
        from scipy.sparse import csr_array, hstack, vstack

        n_columns, n_rules = self.matrix.shape
        rows = np.tile(np.arange(len(cells)), 2)
        columns = np.concatenate([cells, np.full(len(cells), n_rules)])
        weights = np.repeat([-1.0, 1.0], len(cells))
        levels = csr_array((weights, (rows, columns)), shape=(len(cells), n_rules + 1))
        before = hstack([self.matrix, csr_array((n_columns, 1))])
        return Program(
            np.concatenate([np.zeros(n_columns), np.full(len(cells), -1.0)]),
            csr_array(vstack([before, levels])),
            {**self.limits, _level(level): (0, len(cells))},
            np.concatenate([self.order, np.full(len(cells), -1)]),
        )


def solve(
    program: Program, *, more: int = _MORE, grow: bool = True
) -> tuple[Choice, IntArray] | None:
    """The best choice, and the chosen columns, (n_chosen,); None where the rules contradict.

    Args:
        program: what to minimise.
        more: candidates of each cell to begin with, in addition to those that may be needed.
        grow: whether more candidates join where the first ones break a rule.

    Raises:
        VerificationError: no choice was found in time.
    """
    costs, seconds = program.costs, 0.0
    some = np.flatnonzero(program.order < more)
    while True:
        choice = best_choice(costs[some], [*program.rules(some)], seconds=seconds)
        if choice.chosen is None:
            if not grow or len(some) == len(costs):
                return None
            more *= _GROWTH
            some = np.union1d(some, np.flatnonzero(program.order < more))
            continue
        chosen = some[choice.chosen]
        # Columns that could improve the linear program; then those that could be in a better
        # choice, which are dearer than their prices by less than the choice is than its bound
        gap = float(costs[chosen].sum()) - proven(program, choice) if seconds else 0.0
        near = np.flatnonzero(program.reduced(choice.prices) < gap - EXACT)
        if len(every := np.union1d(some, near)) > len(some):
            some = every
        elif seconds or choice.whole:
            return choice, chosen
        else:
            seconds = _SECONDS


def proven(program: Program, choice: Choice) -> float:
    """The bound on summed costs by prices; a whole number where all costs are."""
    bound = program.bound(choice.prices)
    whole = not (program.costs % 1).any()
    return ceil(bound - EXACT) if whole else bound


def with_even_counts(
    program: Program, available: Mapping[int, int], total: int
) -> tuple[Program, bool] | None:
    """The program with rules that make the counts of cells as even as possible.

    Args:
        program: costs of candidates, and rules; that of a cell has no lower limit.
        available: rule of a cell, by number → number of candidates that may be chosen.
        total: number of candidates that every choice has.

    Returns:
        The program, and whether no counts are more even; None where the rules contradict each
        other.

    Raises:
        VerificationError: no choice was found in time.
    """
    from scipy.sparse import csr_array, hstack

    costs, names, of_cells = program.costs, [*program.limits], [*available]
    first = len(names)  # rules that a cell has as many candidates as levels
    program = replace(
        program,
        matrix=csr_array(hstack([program.matrix, program.matrix[:, of_cells]])),
        limits={**program.limits, **{f"{names[c]}, levels": (0, total) for c in of_cells}},
    )
    sizes, is_proven = np.array([*available.values()]), True
    for level in range(1, int(sizes.max()) + 1):
        program = program.with_level(first + np.flatnonzero(sizes >= level), level)
        solved = solve(program)
        if solved is None:
            return None
        choice, chosen = solved
        number = round(-float(program.costs[chosen].sum()))
        is_proven &= -number <= max(proven(program, choice), ceil(choice.bound - EXACT))
        program = replace(program, limits={**program.limits, _level(level): (number, number)})
        total -= number
        if not total:
            break
    further = np.zeros(len(program.costs) - len(costs))
    return replace(program, costs=np.concatenate([costs, further])), is_proven


def _level(level: int) -> str:
    return f"{level} or more"
