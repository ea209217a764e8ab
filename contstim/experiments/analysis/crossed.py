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

Arrays may have leading axes, written …: experiments that are simulated at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contstim.experiments.analysis.measures import evaluate_group

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.experiments.analysis.measures import Measure
    from contstim.experiments.analysis.ratings import Ratings
    from contstim.files.arrays import BoolArray, FloatArray, IntArray

BOTH = "people and items like these"
ITEMS = "items like these, for this participant"
PEOPLE = "people like these, on this trial"
NEITHER = "this answer alone"
_TINY = 1e-20  # variances below this are rounding


@dataclass(frozen=True, eq=False)
class GroupJackknife:
    """Results of a group, and the influence of each of its trials on them.

    Attributes:
        values: (…, n_participants, n_models); nan where no trial evaluates a model.
        lower: the lower noise ceiling, same shape; nan for a group of one.
        influence: (…, n_participants, n_models, n_trials), of each trial on a value, 0 for trials
            that do not evaluate a model; squares add up to the jackknife variance of a value.
        lower_influence: on the lower ceiling, likewise.
        mask: which trials evaluate which model, (n_models, n_trials).
        items: (n_trials,), a number for each sentence pair; the same in all groups that saw it.
    """

    values: FloatArray
    lower: FloatArray
    influence: FloatArray
    lower_influence: FloatArray
    mask: BoolArray
    items: IntArray


@dataclass(frozen=True, eq=False)
class Block:
    """People who rated the same items, and their results: one value or difference.

    Attributes:
        values: (…, n_people).
        influence: (…, n_people, n_items); see `GroupJackknife`.
        items: (n_items,), ascending numbers.
        weights: (n_people,), how much each counts in the mean over everybody.
        means: how many means over items the value is made of: 2 for a difference between models
            that different trials evaluate.
    """

    values: FloatArray
    influence: FloatArray
    items: IntArray
    weights: FloatArray
    means: int

    @property
    def spare(self) -> int:
        """Items less the means over them."""
        return max(0, len(self.items) - self.means)


@dataclass(frozen=True, eq=False)
class VarianceComponents:
    """Uncertainty of a mean, (…) each.

    Attributes:
        variance: of the mean, over what `population` says; nan where that cannot be known.
        freedom: degrees of freedom of the variance, by Satterthwaite; fewer where items scatter
            less evenly than normal ones do.
        of_items: variance and degrees of freedom over items alone, for these people.
        of_people: the same over people alone, on these items.
        residual: variance of the value or difference on single answers: people, items and what is
            left; it standardises.
        person: variance of people's values, single answers included.
        answers: of that, what single answers explain: R / k in the module.
        people: how many.
        items: how many different ones.
        items_each: how many for each mean over items that a difference is made of.
        independent: how many of them, or of people where there is one trial.
        population: what the interval speaks of.
        note: what had to be done, or why it speaks of less than people and items; mostly empty.
    """

    variance: FloatArray
    freedom: FloatArray
    of_items: tuple[FloatArray, FloatArray]
    of_people: tuple[FloatArray, FloatArray]
    residual: FloatArray
    person: FloatArray
    answers: FloatArray
    people: int
    items: int
    items_each: float
    independent: float
    population: str
    note: str


def item_numbers(ratings: Ratings) -> list[IntArray]:
    """For each group, a number for each trial: the same for trials of the same two sentences."""
    numbers: dict[frozenset[str], int] = {}
    texts = [
        [frozenset((t.sentence_1.text, t.sentence_2.text)) for t in group.trials]
        for group in ratings.groups
    ]
    return [np.array([numbers.setdefault(x, len(numbers)) for x in each]) for each in texts]


def jackknife(
    ratings: Ratings, measure: Measure, masks: Sequence[BoolArray]
) -> tuple[GroupJackknife, ...]:
    """Evaluate every group with each trial left out in turn.

    Args:
        ratings: who rated what.
        measure: accuracy or signed-rank cosine.
        masks: for each group, which trials evaluate which model, (n_models, n_trials).
    """
    groups = []
    for group, mask, items in zip(ratings.groups, masks, item_numbers(ratings), strict=True):
        people = np.arange(len(group.participants))
        values, lower, _ = evaluate_group(group, measure, mask)
        influence, lower_influence = np.zeros((2, len(people), *mask.shape))
        for trials in np.unique(mask[mask.any(axis=1)], axis=0):
            models, columns = (mask == trials).all(axis=1), np.flatnonzero(trials)
            if len(columns) == 1:
                continue  # without its only trial there is no value: see `Block.means`
            # All trials but each in turn, (k, k - 1)
            others = np.stack([np.delete(columns, place) for place in range(len(columns))])
            ratios = group.ratios[models].take(others, axis=1)
            rated, own = group.preferences.take(others, axis=1), np.ix_(people, models, columns)
            influence[own] = _influence(measure.model(ratios, rated))
            if len(people) > 1:
                lower_influence[own] = _influence(measure.lower(rated))[:, None]
        groups.append(GroupJackknife(values, lower, influence, lower_influence, mask, items))
    return tuple(groups)


def _influence(without: FloatArray) -> FloatArray:
    """Influence of each of k trials, from the results without each, (…, k)."""
    # A value without trial t lies (y_t - mean) / (k - 1) below the mean of those without any trial;
    # the root makes the squares over k trials add up to the variance of a mean, s^2 / k.
    k = without.shape[-1]
    influence: FloatArray = np.sqrt((k - 1) / k) * (without.mean(axis=-1, keepdims=True) - without)
    return influence


def jackknife_of_means(
    agreements: FloatArray, ceilings: FloatArray, mask: BoolArray, items: IntArray
) -> GroupJackknife:
    """The same of accuracies, which are means over trials, in closed form.

    Args:
        agreements: (…, n_participants, n_models, n_trials) with each model, 0 to 1.
        ceilings: (…, n_participants, 1, n_trials) with the majority of the others, 0 to 1.
        mask: which trials evaluate which model, (n_models, n_trials).
        items: (n_trials,); see `GroupJackknife`.
    """
    counts = mask.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        values, lower = ((x * mask).sum(axis=-1) / counts for x in (agreements, ceilings))
    scale = 1 / np.sqrt(np.maximum(1, counts * (counts - 1)))[:, None]
    influence, lower_influence = (
        np.where(mask & (counts > 1)[:, None], x - mean[..., None], 0.0) * scale
        for x, mean in ((agreements, values), (ceilings, lower))
    )
    return GroupJackknife(values, lower, influence, lower_influence, mask, items)


class Side(NamedTuple):
    """Subject of an interval: a model's value, less what it is compared with.

    Attributes:
        first: index of the model.
        second: index of the model that is subtracted, if any.
        ceiling: whether the model's lower noise ceiling is subtracted.
    """

    first: int
    second: int | None = None
    ceiling: bool = False


def blocks_of(
    groups: Iterable[GroupJackknife], shares: FloatArray, side: Side
) -> tuple[Block, ...]:
    """Blocks of all groups for a model's value, or for its difference to a model or the ceiling.

    Groups that lack a side are left out; groups that saw the same items become one block.

    Args:
        groups: all of an experiment's.
        shares: (n_groups,), how much each counts in the mean.
        side: what is measured.
    """
    first, second, ceiling = side
    parts: dict[tuple[int, ...], list[Block]] = {}
    total = 0.0
    for group, share in zip(groups, shares.tolist(), strict=True):
        values, influence = group.values[..., first], group.influence[..., first, :]
        used, means = group.mask[first], 1
        if ceiling:
            values = values - group.lower[..., first]
            influence = influence - group.lower_influence[..., first, :]
        elif second is not None:
            values = values - group.values[..., second]
            influence = influence - group.influence[..., second, :]
            means += int((used != group.mask[second]).any())
            used = used | group.mask[second]
        if np.isnan(values).any():
            continue
        columns = np.flatnonzero(used)
        columns = columns[np.argsort(group.items[columns], kind="stable")]
        items, n_people = group.items[columns], values.shape[-1]
        weights = np.full(n_people, share / n_people)
        block = Block(values, influence[..., columns], items, weights, means)
        parts.setdefault(tuple(items.tolist()), []).append(block)
        total += share
    return tuple(
        Block(
            np.concatenate([block.values for block in same], axis=-1),
            np.concatenate([block.influence for block in same], axis=-2),
            same[0].items,
            np.concatenate([block.weights for block in same]) / total,
            same[0].means,
        )
        for same in parts.values()
    )


def variance_components(blocks: Sequence[Block], lacking: str = "") -> VarianceComponents:
    """The variance of the mean over all people, were people and items drawn anew.

    People and items vary alike in all blocks, so that one person alone in a block is as uncertain
    as the people of other blocks say. Where blocks hold too few people or items to say so, the
    blocks themselves are compared, each one observation.

    Args:
        blocks: of one value or difference.
        lacking: why there are none.
    """
    nan = np.array(np.nan)
    if not blocks:
        nothing = (nan, nan), (nan, nan), nan, nan, nan
        return VarianceComponents(nan, nan, *nothing, 0, 0, 0.0, 0.0, NEITHER, lacking)
    items, items_freedom, shared = _over_items(blocks)
    person, answers, answers_freedom = _over_people(blocks)
    sizes, spare = [len(b.weights) for b in blocks], [b.spare for b in blocks]
    weight = float(sum((block.weights**2).sum() for block in blocks))
    freedom, between, population, note = sum(sizes) - len(sizes), len(blocks) - 1, BOTH, ""
    enough_items = sum(spare) >= between and min(spare) > 0
    if between and not (freedom >= between and enough_items):
        variance, all_freedom = _between_blocks(blocks) + shared, np.array(float(between))
        why = "hold one person" if enough_items else "hold too few trials"
        note = f"groups are compared, since most {why}"
    elif freedom and sum(spare):
        # Where people hardly differ, what they add comes out negative as often as positive; cut off
        # at zero it would widen the intervals of designs with many people alone in a group.
        variance = np.maximum(items + weight * (person - answers), weight * person)
        terms = np.stack([items, weight * person, weight * answers])
        known = [np.full(items.shape, float(n)) for n in (freedom, answers_freedom)]
        all_freedom = _satterthwaite(terms, np.stack([items_freedom, *known]), variance)
        note = "a person alone is taken to vary as those in other groups do" * (1 in sizes)
    elif freedom:
        variance, all_freedom = weight * person, np.array(float(freedom))
        population, note = PEOPLE, "one trial: nothing is said of other items"
    elif sum(spare):
        variance, all_freedom = items, items_freedom
        population, note = ITEMS, "one participant: nothing is said of other people"
    else:
        variance, all_freedom = nan, nan
        population, note = NEITHER, "one participant and one trial: nothing is said of others"
    variance = np.where(variance < _TINY, 0.0, variance)
    single = [len(b.items) / b.means * (b.influence**2).sum(axis=-1) for b in blocks]
    residual = np.concatenate(single, axis=-1).mean(axis=-1) + np.maximum(0.0, person - answers)
    if (variance == 0).all() and (residual < _TINY).all():
        note = "no scatter, since everybody of a group has the same value"
    different = len(np.unique(np.concatenate([block.items for block in blocks])))
    each = different / max(block.means for block in blocks)
    of_items = (items, items_freedom) if sum(spare) else (nan, nan)
    of_people = (weight * person, np.array(float(freedom))) if freedom else (nan, nan)
    scatter = (variance, np.maximum(1.0, all_freedom), of_items, of_people)
    independent = float(sum(sizes)) if population == PEOPLE else each
    numbers = (sum(sizes), different, each, independent)
    return VarianceComponents(*scatter, residual, person, answers, *numbers, population, note)


def _over_items(blocks: Sequence[Block]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Variance of the mean over items, its degrees of freedom, and what shared items add to it."""
    # Item by item, weighted influence on everybody: (…, n_items) of each block. An item that
    # several blocks saw moves all of them at once: influences are added before they are squared.
    by_item = [block.weights @ block.influence for block in blocks]
    within = np.stack([(influence**2).sum(axis=-1) for influence in by_item])
    numbers = np.concatenate([block.items for block in blocks])
    order = np.argsort(numbers, kind="stable")
    starts = np.unique(numbers[order], return_index=True)[1]
    squares = np.add.reduceat(np.concatenate(by_item, axis=-1)[..., order], starts, axis=-1) ** 2
    variance = squares.sum(axis=-1)
    freedom = _satterthwaite(within, np.array([block.spare for block in blocks]))
    freedom = np.minimum(freedom, len(starts) - 1.0)
    # Items on which model and people are surest move a result most, so that influences are not
    # normal and their variance is less certain than its count of items says: v^2 / (variance of v)
    # is half its degrees of freedom (O'Neill 2014), and v, a sum of squares, varies as these do.
    uncertain = (squares**2).sum(axis=-1)
    uncertain = uncertain - sum(v**2 / len(b.items) for v, b in zip(within, blocks, strict=True))
    fewer = np.divide(2 * variance**2, uncertain, out=np.copy(freedom), where=uncertain > 0)
    freedom = np.maximum(1.0, np.minimum(freedom, fewer))
    # Exactly 0 where no item is shared: what rounding leaves is no scatter
    shared = np.maximum(0.0, variance - within.sum(axis=0)) * (len(starts) < len(numbers))
    return variance, freedom, shared


def _over_people(blocks: Sequence[Block]) -> tuple[FloatArray, FloatArray, int]:
    """Variance of people's values, what of it single answers explain, and the latter's freedom."""
    freedom = sum(len(block.weights) - 1 for block in blocks)
    person = answers = np.zeros(blocks[0].values.shape[:-1])
    answers_freedom = 0
    for block in blocks:
        if len(block.weights) > 1:
            apart = block.values - block.values.mean(axis=-1, keepdims=True)
            rest = block.influence - block.influence.mean(axis=-2, keepdims=True)
            person = person + (apart**2).sum(axis=-1) / freedom
            answers = answers + (rest**2).sum(axis=(-2, -1)) / freedom
            answers_freedom += (len(block.weights) - 1) * max(1, block.spare)
    return person, answers, answers_freedom


def _between_blocks(blocks: Sequence[Block]) -> FloatArray:
    """The variance of the mean by the scatter of blocks, each one observation."""
    shares = np.array([block.weights.sum() for block in blocks])
    means = np.stack([block.values @ block.weights for block in blocks], axis=-1) / shares
    deviations = shares * (means - (means @ shares)[..., None])
    variance: FloatArray = (deviations**2).sum(axis=-1) * len(blocks) / (len(blocks) - 1)
    return variance


def _satterthwaite(
    terms: FloatArray, freedom: FloatArray | IntArray, total: FloatArray | None = None
) -> FloatArray:
    """Degrees of freedom of sums, over the first axis, of variances known with some each."""
    freedom = freedom.reshape(freedom.shape + (1,) * (terms.ndim - freedom.ndim))
    total = terms.sum(axis=0) if total is None else total
    shape = np.zeros(terms.shape)
    each = np.divide(terms**2, freedom, out=shape, where=freedom > 0).sum(axis=0)
    most = np.broadcast_to(freedom.sum(axis=0), each.shape).astype(np.float64)
    return np.asarray(np.divide(total**2, each, out=most, where=each > 0), np.float64)
