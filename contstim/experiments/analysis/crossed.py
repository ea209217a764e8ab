"""Variation of results over other people and other items, both drawn anew.

Everybody in a group rates the same trials, so that answers are crossed: two answers share a person,
an item, or neither. A resample of both at once counts the scatter of single answers up to three
times and is too wide (Schütt et al. 2023, eLife 12:e82566). What they correct by resampling three
times, 2 (a + b) - c with factors for small samples, has a closed form for means; a jackknife over
items gives it for the cosine too. With n people and k items in a group,

    variance of a group's mean = P / n + I / k + R / (n k),

P between people, I between items, R of single answers beyond both. The items' own scatter holds
the last two; what is missing is P, which is the scatter of people less what single answers explain:

    variance = (scatter of the k item means) + (scatter of people - R / k) / n.

Example: 2 people and 4 items, right (1) or wrong (0): 1 1 1 0 and 1 0 0 0. Item means are 1, 1/2,
1/2, 0 with variance 1/6, so that the first term is 1/6 / 4; people's means are 3/4 and 1/4 with
variance 1/8; single answers leave R = 1/6. The variance is 1/24 + (1/8 - 1/24) / 2 = 1/12.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contstim.experiments.analysis.evaluation import evaluate_group

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.experiments.analysis.evaluation import Measure
    from contstim.experiments.analysis.ratings import GroupRatings, Ratings

BOTH = "people and items like these"
ITEMS = "items like these, for this participant"
PEOPLE = "people like these, on this trial"
NEITHER = "this answer alone"
_TINY = 1e-20  # variances below this are rounding


@dataclass(frozen=True, eq=False)
class GroupMoves:
    """Results of a group, and how far they move without each of its trials.

    Attributes:
        values: (n_participants, n_models); nan where no trial evaluates a model.
        lower: the lower noise ceiling, same shape; nan for a group of one.
        value_moves: (n_participants, n_models, n_trials), 0 for trials that do not evaluate a
            model; squares add up to the jackknife variance of a value.
        lower_moves: of the lower ceiling, likewise.
        mask: which trials evaluate which model, (n_models, n_trials).
        items: (n_trials,), a number for each sentence pair; the same in all groups that saw it.
    """

    values: FloatArray
    lower: FloatArray
    value_moves: FloatArray
    lower_moves: FloatArray
    mask: BoolArray
    items: IntArray


@dataclass(frozen=True, eq=False)
class Block:
    """People who rated the same items: what they show of one value or difference.

    Attributes:
        values: (n_people,).
        moves: (n_people, n_items); see `GroupMoves`.
        items: (n_items,), ascending numbers.
        weights: (n_people,), how much each counts in the mean over everybody.
        means: how many means over items the value is made of: 2 for a difference between models
            that different trials evaluate.
    """

    values: FloatArray
    moves: FloatArray
    items: IntArray
    weights: FloatArray
    means: int


@dataclass(frozen=True)
class Scatter:
    """Uncertainty of a mean.

    Attributes:
        variance: of the mean, over what `population` says; nan where that cannot be known.
        freedom: degrees of freedom of the variance, by Satterthwaite; fewer where items scatter
            less evenly than normal ones do.
        of_items: variance and degrees of freedom over items alone, for these people.
        of_people: the same over people alone, on these items.
        answer: variance of the value or difference on single answers: people, items and what is
            left; it standardises.
        people: how many.
        items: how many different ones.
        items_each: how many for each mean over items that a difference is made of.
        independent: how many of them, or of people where there is one trial.
        population: what the interval speaks of.
        note: what had to be done, or why it speaks of less than people and items; mostly empty.
    """

    variance: float
    freedom: float
    of_items: tuple[float, float]
    of_people: tuple[float, float]
    answer: float
    people: int
    items: int
    items_each: float
    independent: float
    population: str
    note: str


def item_numbers(ratings: Ratings) -> list[IntArray]:
    """For each group, a number for each trial: the same for trials of the same two sentences."""
    numbers: dict[frozenset[str], int] = {}
    return [
        np.array(
            [
                numbers.setdefault(frozenset((t.sentence_1.text, t.sentence_2.text)), len(numbers))
                for t in group.trials
            ],
            dtype=np.int64,
        )
        for group in ratings.groups
    ]


def group_moves(
    ratings: Ratings, measure: Measure, masks: Sequence[BoolArray]
) -> tuple[GroupMoves, ...]:
    """Evaluate every group with each trial left out in turn.

    Args:
        ratings: who rated what.
        measure: accuracy or signed-rank cosine.
        masks: for each group, which trials evaluate which model, (n_models, n_trials).
    """
    return tuple(
        _moves_of_group(group, measure, mask, items)
        for group, mask, items in zip(ratings.groups, masks, item_numbers(ratings), strict=True)
    )


def _moves_of_group(
    group: GroupRatings, measure: Measure, mask: BoolArray, items: IntArray
) -> GroupMoves:
    people = group.preferences
    values, lower, _ = evaluate_group(group, measure, mask)
    value_moves, lower_moves = np.zeros((2, len(people), *mask.shape))
    for trials in np.unique(mask[mask.any(axis=1)], axis=0):
        models, k = (mask == trials).all(axis=1), int(trials.sum())
        if k == 1:
            continue  # without its only trial there is no value: see `Block.means`
        # In resample t, trial t counts 0 and all others 1. A value without trial t lies
        # (y_t - mean) / (k - 1) below the mean of those without any trial; the root makes the
        # squares over k trials add up to the variance of a mean, s^2 / k.
        left_out = 1.0 - np.eye(k)
        rated, scale = people[:, trials], np.sqrt((k - 1) / k)
        without = measure.model(group.ratios[np.ix_(models, trials)], rated, left_out)
        value_moves[np.ix_(np.arange(len(people)), models, trials)] = scale * (
            without.mean(axis=-1, keepdims=True) - without
        )
        if len(people) > 1:
            without = measure.lower(rated, left_out)  # (n_participants, k)
            lower_moves[np.ix_(np.arange(len(people)), models, trials)] = (
                scale * (without.mean(axis=-1, keepdims=True) - without)
            )[:, None]
    return GroupMoves(values, lower, value_moves, lower_moves, mask, items)


def blocks_of(
    moves: Iterable[GroupMoves],
    shares: FloatArray,
    first: int,
    second: int | None = None,
    *,
    ceiling: bool = False,
) -> tuple[Block, ...]:
    """Blocks of all groups for a model's value, or for its difference to a model or the ceiling.

    Groups that lack a side are left out; groups that saw the same items become one block.

    Args:
        moves: of all groups.
        shares: (n_groups,), how much each counts in the mean.
        first: the model's place.
        second: the place of the model that is subtracted, if any.
        ceiling: subtract the model's lower noise ceiling.
    """
    parts: dict[tuple[int, ...], list[Block]] = {}
    total = 0.0
    for group, share in zip(moves, shares.tolist(), strict=True):
        values, changes = group.values[:, first], group.value_moves[:, first]
        used, means = group.mask[first], 1
        if ceiling:
            values, changes = values - group.lower[:, first], changes - group.lower_moves[:, first]
        elif second is not None:
            values = values - group.values[:, second]
            changes = changes - group.value_moves[:, second]
            means += int((used != group.mask[second]).any())
            used = used | group.mask[second]
        if np.isnan(values).any():
            continue
        columns = np.flatnonzero(used)
        columns = columns[np.argsort(group.items[columns], kind="stable")]
        items = group.items[columns]
        weights = np.full(len(values), share / len(values))
        block = Block(values, changes[:, columns], items, weights, means)
        parts.setdefault(tuple(items.tolist()), []).append(block)
        total += share
    return tuple(
        Block(
            np.concatenate([block.values for block in same]),
            np.concatenate([block.moves for block in same]),
            same[0].items,
            np.concatenate([block.weights for block in same]) / total,
            same[0].means,
        )
        for same in parts.values()
    )


def scatter_of(blocks: Sequence[Block]) -> Scatter:
    """The variance of the mean over all people, were people and items drawn anew.

    People and items vary alike in all blocks, so that one person alone in a block is as uncertain
    as the people of other blocks say. Where blocks hold too few people or items to say so, the
    blocks themselves are compared, each one observation.
    """
    if not blocks:
        nothing, note = (np.nan, np.nan), "nobody rated such trials"
        return Scatter(np.nan, np.nan, nothing, nothing, np.nan, 0, 0, 0.0, 0.0, NEITHER, note)
    items, people = _items_scatter(blocks), _people_scatter(blocks)
    sizes = np.array([len(block.values) for block in blocks])
    between, population = len(blocks) - 1, BOTH
    enough_items = items.freedom >= between and items.each_block
    note = ""
    if between and not (people.freedom >= between and enough_items):
        variance, freedom = _between_blocks(blocks, items.shared), float(between)
        why = "hold one person" if enough_items else "hold too few trials"
        note = f"groups are compared, since most {why}"
    elif people.freedom and items.freedom:
        # Where people hardly differ, what they add comes out negative as often as positive; cut off
        # at zero it would widen the intervals of designs with many people alone in a group.
        extra = people.weight * (people.variance - people.answers)
        variance = max(items.variance + extra, people.of_mean[0])
        terms = (items.variance, people.weight * people.variance, people.weight * people.answers)
        freedoms = (items.of_mean[1], people.freedom, people.answers_freedom)
        freedom = _satterthwaite(np.array(terms), np.array(freedoms), variance)
        if (sizes == 1).any():
            note = "a person alone is taken to vary as those in other groups do"
    elif people.freedom:
        variance, freedom = people.of_mean
        population, note = PEOPLE, "one trial: nothing is said of other items"
    else:
        variance, freedom = items.of_mean
        population, note = ITEMS, "one participant: nothing is said of other people"
        if not items.freedom:
            population, note = NEITHER, "one participant and one trial: nothing is said of others"
    if variance < _TINY:
        variance, note = 0.0, "no scatter: every answer says the same"
    answers = [len(b.items) / b.means * (b.moves**2).sum(axis=1) for b in blocks]
    single = float(np.concatenate(answers).mean()) + max(0.0, people.variance - people.answers)
    total = int(sizes.sum())
    different = len(np.unique(np.concatenate([block.items for block in blocks])))
    each = different / max(block.means for block in blocks)
    return Scatter(
        variance,
        float(np.maximum(1.0, freedom)),
        items.of_mean,
        people.of_mean,
        single,
        total,
        different,
        each,
        float(total) if population == PEOPLE else each,
        population,
        note,
    )


class _Items(NamedTuple):
    """Scatter of items: of the mean, and its degrees of freedom; nan where there is one item.

    `freedom` counts items less means; `shared` is what items that several blocks saw add to the
    variance; `each_block` tells whether every block holds enough items to say how they scatter.
    """

    variance: float
    freedom: int
    shared: float
    each_block: bool
    of_mean: tuple[float, float]


class _People(NamedTuple):
    """Scatter of people's values, and what of it single answers explain (R / k in the module).

    Of the mean over people it is `weight` times as much: 1 / n for n who count alike.
    """

    variance: float
    answers: float
    freedom: int
    answers_freedom: int
    weight: float
    of_mean: tuple[float, float]


def _items_scatter(blocks: Sequence[Block]) -> _Items:
    # Item by item, weighted moves of everybody: (n_items,) of each block. An item that several
    # blocks saw moves all of them at once, so that its moves are added before they are squared.
    by_item = [block.weights @ block.moves for block in blocks]
    within = np.array([(moves**2).sum() for moves in by_item])
    _, places = np.unique(np.concatenate([block.items for block in blocks]), return_inverse=True)
    squares = np.bincount(places, np.concatenate(by_item)) ** 2
    variance = float(squares.sum())
    counts = np.array([max(0, len(block.items) - block.means) for block in blocks])
    freedom = min(_satterthwaite(within, counts), float(places.max()))
    # Items on which model and people are surest move a result most, so that moves are not normal
    # and their variance is less certain than its count of items says: v^2 / (variance of v) is half
    # its degrees of freedom (O'Neill 2014), and v, a sum of squares, varies as these do.
    uncertain = float((squares**2).sum() - sum(within**2 / [len(b.items) for b in blocks]))
    if uncertain > 0:
        freedom = min(freedom, 2 * variance**2 / uncertain)
    of_mean = (variance, max(1.0, freedom))
    return _Items(
        variance,
        int(counts.sum()),
        max(0.0, variance - float(within.sum())),
        bool(counts.all()),
        of_mean if counts.any() else (np.nan, np.nan),
    )


def _people_scatter(blocks: Sequence[Block]) -> _People:
    freedom = sum(len(block.values) - 1 for block in blocks)
    variance, answers, answers_freedom = 0.0, 0.0, 0
    for block in blocks:
        if len(block.values) > 1:
            rest = block.moves - block.moves.mean(axis=0)
            variance += float(((block.values - block.values.mean()) ** 2).sum()) / freedom
            answers += float((rest**2).sum()) / freedom
            answers_freedom += (len(block.values) - 1) * max(1, len(block.items) - block.means)
    weight = float(sum((block.weights**2).sum() for block in blocks))
    of_mean = (weight * variance, float(freedom)) if freedom else (np.nan, np.nan)
    return _People(variance, answers, freedom, answers_freedom, weight, of_mean)


def _between_blocks(blocks: Sequence[Block], shared: float) -> float:
    """The variance of the mean by the scatter of blocks, each one observation."""
    shares = np.array([block.weights.sum() for block in blocks])
    means = np.array([block.weights @ block.values for block in blocks]) / shares
    deviations = shares * (means - shares @ means)
    return float((deviations**2).sum()) * len(blocks) / (len(blocks) - 1) + shared


def _satterthwaite(
    terms: FloatArray, freedom: FloatArray | IntArray, total: float | None = None
) -> float:
    """Degrees of freedom of a sum of variances that are known with some degrees of freedom each."""
    total = float(terms.sum()) if total is None else total
    each = np.divide(terms**2, freedom, out=np.zeros(terms.shape), where=freedom > 0)
    return total**2 / float(each.sum()) if each.sum() > 0 else float(freedom.sum())
