"""Crossed tests of many simulated experiments at once, with people and items as random factors.

`analysis.crossed` takes one contrast of one experiment at a time. Here accuracies of all models and
their noise ceilings are columns, and what a contrast needs of two columns is a quadratic form: if G
holds the products of all columns, summed over people, items or single answers, then the sum of
squares of column a less column b is G[a, a] + G[b, b] - 2 G[a, b].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from contstim.arrays import BoolArray, FloatArray, IntArray

_TINY = 1e-20  # variances below this are rounding
_ROUNDING = 1e-12  # so are differences of means


@dataclass(frozen=True, eq=False)
class GroupProducts:
    """Sums of products of all columns in one group: of models, then of their noise ceilings.

    Attributes:
        means: (n_experiments, n_columns) over people and items; nan where no trial evaluates it.
        items: (n_experiments, n_trials, n_columns), how each item moves the mean over people.
        people: (n_experiments, n_columns, n_columns), how people differ from their mean.
        answers: likewise, what of that is the scatter of single answers.
        own: (n_columns, n_trials), which trials a column is made of.
        participants: in the group.
    """

    means: FloatArray
    items: FloatArray
    people: FloatArray
    answers: FloatArray
    own: BoolArray
    participants: int


class ContrastVariance(NamedTuple):
    """Parts of the variance of a difference, each (n_experiments, n_contrasts).

    Attributes:
        difference: of the means over groups.
        variance: of the difference, were people and items drawn anew.
        freedom: its degrees of freedom.
        items: part of the variance that items make up, single answers included.
        people: variance of people's values, single answers included.
        answers: of that, what single answers make up.
    """

    difference: FloatArray
    variance: FloatArray
    freedom: FloatArray
    items: FloatArray
    people: FloatArray
    answers: FloatArray


def products(agreements: FloatArray, own: BoolArray) -> GroupProducts:
    """Moves of people and items in one group, as `crossed.group_moves` gives them for accuracy.

    Args:
        agreements: (n_experiments, n_people, n_trials, n_columns), 0 to 1.
        own: (n_columns, n_trials), which trials a column is made of.
    """
    n_people = agreements.shape[1]
    counts = own.sum(axis=1).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = (agreements * own.T).sum(axis=2) / counts  # (n_experiments, n_people, n_columns)
        # Squares of moves add up to the variance of a mean over k items: see `GroupMoves`.
        scale = np.where(counts > 1, 1 / np.sqrt(counts * (counts - 1)), 0.0)
    moves = np.where(own.T, agreements - values[:, :, None], 0.0) * np.nan_to_num(scale)
    of_items = moves.mean(axis=1)
    rest = (moves - of_items[:, None]).reshape(len(moves), -1, len(own))
    means = values.mean(axis=1)
    apart = np.nan_to_num(values - means[:, None])
    people, answers = (np.swapaxes(x, 1, 2) @ x for x in (apart, rest))
    return GroupProducts(means, of_items, people, answers, own, n_people)


def contrast_variances(
    groups: list[GroupProducts], first: IntArray, second: IntArray
) -> ContrastVariance:
    """Variance of every contrast, as by `crossed.scatter_of`, for groups without shared items.

    Args:
        groups: all of an experiment's.
        first: (n_contrasts,) column that is compared; nothing is said where no group has both.
        second: (n_contrasts,) column that is subtracted.
    """
    parts = [_contrast(groups, int(a), int(b)) for a, b in zip(first, second, strict=True)]
    return ContrastVariance(*(np.stack(column, axis=1) for column in zip(*parts, strict=True)))


def _contrast(groups: list[GroupProducts], a: int, b: int) -> ContrastVariance:
    both = [g for g in groups if g.own[a].any() and g.own[b].any()]
    nothing = np.full(len(groups[0].means), np.nan)
    if not both or any(np.isnan(g.means[:, [a, b]]).any() for g in both):
        return ContrastVariance(*(nothing,) * 6)
    n_groups, n_people = len(both), both[0].participants

    def squares(part: str) -> FloatArray:  # (n_groups, n_experiments)
        sums = np.stack([getattr(g, part) for g in both])
        total: FloatArray = sums[..., a, a] + sums[..., b, b] - 2 * sums[..., a, b]
        return total

    differences = np.stack([g.means[:, a] - g.means[:, b] for g in both])
    difference = differences.mean(axis=0)
    # Squared moves of items, (n_experiments, n_trials) for each group; their sums, (n_groups, …)
    of_items = [((g.items[..., a] - g.items[..., b]) / n_groups) ** 2 for g in both]
    within = np.stack([moves.sum(axis=1) for moves in of_items])
    items = within.sum(axis=0)
    # Items of a group, less one for each mean over items that the difference is made of.
    means = [1 + int((g.own[a] != g.own[b]).any()) for g in both]
    n_items = [int((g.own[a] | g.own[b]).sum()) for g in both]
    counts = np.array([max(0, n - m) for n, m in zip(n_items, means, strict=True)])
    items_freedom = np.minimum(_satterthwaite(within, counts[:, None]), sum(n_items) - 1)
    # Fewer where few items move a result most; see `crossed.scatter_of`.
    uncertain = np.sum([(moves**2).sum(axis=1) for moves in of_items], axis=0)
    uncertain -= (within**2 / np.array(n_items)[:, None]).sum(axis=0)
    fewer = np.divide(2 * items**2, uncertain, out=items_freedom.copy(), where=uncertain > 0)
    items_freedom = np.minimum(items_freedom, fewer)
    freedom = n_groups * (n_people - 1)
    people = squares("people").sum(axis=0) / max(1, freedom)
    answers = squares("answers").sum(axis=0) / max(1, freedom)
    between = n_groups - 1
    if between and not (freedom >= between and counts.sum() >= between and counts.all()):
        variance = differences.var(axis=0, ddof=1) / n_groups
        all_freedom = np.full(len(variance), float(between))
    elif freedom and counts.sum():
        weight = 1 / (n_groups * n_people)
        variance = np.maximum(items + weight * (people - answers), weight * people)
        terms = np.stack([items, weight * people, weight * answers])
        answers_freedom = (n_people - 1) * np.maximum(1, counts).sum()
        freedoms = np.stack(
            [items_freedom, *(np.full(len(items), float(f)) for f in (freedom, answers_freedom))]
        )
        all_freedom = _satterthwaite(terms, freedoms, variance)
    elif freedom:
        variance = people / (n_groups * n_people)
        all_freedom = np.full(len(variance), float(freedom))
    else:
        variance, all_freedom = items, items_freedom
    variance = np.where(variance < _TINY, 0.0, variance)
    all_freedom = np.maximum(1.0, all_freedom)
    return ContrastVariance(difference, variance, all_freedom, items, people, answers)


def _satterthwaite(
    terms: FloatArray, freedom: FloatArray | IntArray, total: FloatArray | None = None
) -> FloatArray:
    """Degrees of freedom of sums over the first axis; see `analysis.crossed`."""
    freedom = np.broadcast_to(freedom, terms.shape).astype(np.float64)
    total = terms.sum(axis=0) if total is None else total
    each = np.divide(terms**2, freedom, out=np.zeros(terms.shape), where=freedom > 0).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        result: FloatArray = np.where(each > 0, total**2 / each, freedom.sum(axis=0))
    return result


def crossed_p_values(contrasts: ContrastVariance) -> FloatArray:
    """Two-sided p-values, (n_experiments, n_contrasts), as `analyze` gives them."""
    from scipy.stats import t as student

    difference, variance = contrasts.difference, contrasts.variance
    with np.errstate(invalid="ignore", divide="ignore"):
        statistics = np.abs(difference) / np.sqrt(variance)
    p_values: FloatArray = 2 * student.sf(statistics, contrasts.freedom)
    # Without any scatter, sides that are the same on every answer have p = 1, others no test.
    same = np.where(np.abs(difference) < _ROUNDING, 1.0, np.nan)
    return np.where(variance == 0, same, p_values)
