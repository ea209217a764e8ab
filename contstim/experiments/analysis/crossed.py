"""Variance of results for new people and new items, with both as random factors.

All participants in a group rate the same trials, so people and items are crossed: each person has
an answer to each item. A bootstrap that resamples people and items at once counts the variance of
single answers up to three times (Schütt et al. 2023, eLife 12:e82566). The corrected variance of
Schütt et al. is 2 (a + b) - c, apart from factors for small samples. Here a, b and c are variances
of three bootstraps, which resample only people (a), only items (b), or both (c). For means, such as
accuracies, the corrected variance has a closed form. For the signed-rank cosine, this form is
applied to a jackknife, which leaves out one item at a time. With n people and k items in a group,

    variance of a group's mean = P / n + I / k + R / (n k),

where P is the variance between people, I the variance between items, and R the remaining variance
of single answers. The variance of the k item means includes I and R, but not P. The variance of the
n people's means is P + R / k. So

    variance = (variance of the item means) / k + (variance of the people's means - R / k) / n.

Example: 2 people and 4 items, right (1) or wrong (0): 1 1 1 0 and 1 0 0 0. Item means are 1, 1/2,
1/2, 0 with variance 1/6, so the first term is 1/6 / 4. People's means are 3/4 and 1/4 with variance
1/8. Single answers have R = 1/6. The variance is 1/24 + (1/8 - 1/24) / 2 = 1/12.

Leading axes of arrays, written …, are experiments that are simulated together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis.measures import Measure, evaluate_group

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.experiments.analysis.ratings import Ratings
    from contstim.files.arrays import BoolArray, FloatArray, IntArray

# Populations to which a variance generalises
BOTH = "people and items like these"
ITEMS = "items like these, for this participant"
PEOPLE = "people like these, on this trial"
NEITHER = "this answer alone"
_TINY = 1e-20  # variances below this are rounding errors


@dataclass(frozen=True, eq=False)
class GroupJackknife:
    """Results of a group, and the influence of each trial on these results.

    The results are the models' values, then the models' lower noise ceilings. So the ceiling on the
    trials of model m is the result n_models + m.

    Attributes:
        values: (…, n_participants, 2 n_models), results; nan where no trial evaluates a model.
            Ceilings are also nan for a group of one participant.
        influence: (…, n_participants, 2 n_models, n_trials), influence of each trial on a result, 0
            for trials that do not evaluate the model. The sum of squares over trials is the
            jackknife variance of the result.
        mask: which trials each result uses, (2 n_models, n_trials).
        items: (n_trials,), number of each trial's sentence pair. A pair has the same number in all
            groups.
    """

    values: FloatArray
    influence: FloatArray
    mask: BoolArray
    items: IntArray


@dataclass(frozen=True, eq=False)
class Block:
    """A model's values (or differences, see `blocks_of`) for all people who rated the same items.

    Attributes:
        values: (…, n_people), value or difference of each person.
        influence: (…, n_people, n_items); see `GroupJackknife`.
        items: (n_items,), numbers in ascending order.
        weights: (n_people,), weight of each person in the overall mean.
        means: number of means over items in the value: 2 for a difference between models that are
            evaluated on different trials, otherwise 1.
    """

    values: FloatArray
    influence: FloatArray
    items: IntArray
    weights: FloatArray
    means: int

    @property
    def spare_items(self) -> int:
        """Degrees of freedom between items: number of items minus `means`, at least 0."""
        return max(0, len(self.items) - self.means)


@dataclass(frozen=True, eq=False)
class VarianceComponents:
    """Uncertainty of a mean; arrays have the shape (…).

    Attributes:
        variance: variance of the mean for `population`; nan if unknown.
        freedom: degrees of freedom of the variance, by Satterthwaite's formula. The number is
            reduced if a few items have most of the influence.
        of_items: variance and degrees of freedom for new items and these people.
        of_people: variance and degrees of freedom for new people and these items.
        residual: total variance of the value or difference in a single answer: between people,
            between items, and the rest. Standardised differences are in units of its square root.
        person: variance of people's values, including `answers`.
        answers: part of `person` that single answers explain (R / k, see the module).
        people: number of people.
        items_each: number of different items, divided by `Block.means`.
        independent: number of independent units: `items_each`, or the number of people if there is
            only one trial.
        population: people and items to which `variance` generalises, such as `BOTH`.
        note: remark about the computation of the variance; may be empty.
    """

    variance: FloatArray
    freedom: FloatArray
    of_items: tuple[FloatArray, FloatArray]
    of_people: tuple[FloatArray, FloatArray]
    residual: FloatArray
    person: FloatArray
    answers: FloatArray
    people: int
    items_each: float
    independent: float
    population: str
    note: str


def item_numbers(ratings: Ratings) -> list[IntArray]:
    """Return a number for each trial of each group: equal for trials of the same two sentences."""
    numbers: dict[frozenset[str], int] = {}
    texts = [
        [frozenset((t.sentence_1.text, t.sentence_2.text)) for t in group.trials]
        for group in ratings.groups
    ]
    return [
        np.array([numbers.setdefault(x, len(numbers)) for x in group_texts])
        for group_texts in texts
    ]


def jackknife(
    ratings: Ratings, measure: Measure, masks: Sequence[BoolArray]
) -> tuple[GroupJackknife, ...]:
    """Evaluate every group with each trial left out in turn.

    The arguments are those of `evaluate`.
    """
    groups = []
    for group, mask, items in zip(ratings.groups, masks, item_numbers(ratings), strict=True):
        people, results = np.arange(len(group.participants)), np.tile(mask, (2, 1))
        values, lower, _ = evaluate_group(group, measure, mask)
        influence = np.zeros((len(people), *results.shape))
        for trials in np.unique(mask[mask.any(axis=1)], axis=0):
            models, columns = (mask == trials).all(axis=1), np.flatnonzero(trials)
            if len(columns) == 1:
                continue  # a value without its only trial is undefined, so the influence stays 0
            # Leave out each trial in turn, (k, k - 1)
            retained = np.stack([np.delete(columns, index) for index in range(len(columns))])
            ratios = group.ratios[models].take(retained, axis=1)
            rated, indices = group.preferences.take(retained, axis=1), np.flatnonzero(models)
            of_models = _influence(measure.model(ratios, rated))
            influence[np.ix_(people, indices, columns)] = of_models
            if len(people) > 1:
                cells = np.ix_(people, len(mask) + indices, columns)
                influence[cells] = _influence(measure.lower(rated))[:, None]
        groups.append(GroupJackknife(np.hstack([values, lower]), influence, results, items))
    return tuple(groups)


def _influence(without: FloatArray) -> FloatArray:
    """Return the influence of each of k trials, given the results without each trial, (…, k)."""
    # If results are means of y, the result without trial t is (y_t - mean) / (k - 1) below the mean
    # of all results in `without`. Because of the factor √((k - 1) / k), the sum of squares of the
    # influences is the variance of a mean, s^2 / k.
    k = without.shape[-1]
    return np.asarray(np.sqrt((k - 1) / k) * (without.mean(axis=-1, keepdims=True) - without))


def jackknife_of_means(
    agreements: FloatArray, ceilings: FloatArray, mask: BoolArray, items: IntArray
) -> GroupJackknife:
    """Return the jackknife of accuracies, which are means over trials, in closed form.

    Args:
        agreements: (…, n_participants, n_models, n_trials), each participant's agreement with each
            model, 0 to 1.
        ceilings: (…, n_participants, 1, n_trials), each participant's agreement with the majority
            of the other participants, 0 to 1.
        mask: which trials evaluate which model, (n_models, n_trials).
        items: (n_trials,); see `GroupJackknife`.
    """
    answers = np.concatenate([agreements, np.broadcast_to(ceilings, agreements.shape)], axis=-2)
    results = np.tile(mask, (2, 1))
    counts = results.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = (answers * results).sum(axis=-1) / counts
    scale = 1 / np.sqrt(np.maximum(1, counts * (counts - 1)))[:, None]
    has_influence = results & (counts > 1)[:, None]
    influence = np.where(has_influence, answers - values[..., None], 0.0) * scale
    return GroupJackknife(values, influence, results, items)


def blocks_of(
    groups: Iterable[GroupJackknife], shares: FloatArray, first: int, second: int | None = None
) -> tuple[Block, ...]:
    """Return the blocks of all groups for a model's value, or for a difference.

    A group is left out if it lacks the value, or one of the two values of the difference. Groups
    that saw the same items form one block.

    Args:
        groups: results of the groups.
        shares: (n_groups,), weights of groups in the mean.
        first: index of the model.
        second: index of the result that is subtracted, if any: another model, or n_models + `first`
            for the model's lower noise ceiling.
    """
    parts: dict[tuple[int, ...], list[Block]] = {}
    total = 0.0
    for group, share in zip(groups, shares.tolist(), strict=True):
        values, influence = group.values[..., first], group.influence[..., first, :]
        used, means = group.mask[first], 1
        if second is not None:
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
            np.concatenate([block.values for block in group_blocks], axis=-1),
            np.concatenate([block.influence for block in group_blocks], axis=-2),
            group_blocks[0].items,
            np.concatenate([block.weights for block in group_blocks]) / total,
            group_blocks[0].means,
        )
        for group_blocks in parts.values()
    )


def variance_components(blocks: Sequence[Block], reason: str = "") -> VarianceComponents:
    """Return the variance of the mean over all people, for new people and items.

    People and items are assumed to have the same variances in all blocks, so a block with a single
    person can also be used. With B > 1 blocks, the variance is computed between blocks, each of
    which is then one observation, in three cases: a block has no spare item (`Block.spare_items`),
    all blocks together have fewer than B - 1 spare items, or there are fewer than 2 B - 1 people.

    `reason` is the note of the result if there are no blocks.
    """
    nan = np.array(np.nan)
    if not blocks:
        nothing = (nan, nan), (nan, nan), nan, nan, nan
        return VarianceComponents(nan, nan, *nothing, 0, 0.0, 0.0, NEITHER, reason)
    items, items_freedom, shared = _over_items(blocks)
    person, answers, answers_freedom = _over_people(blocks)
    sizes, spare = [len(b.weights) for b in blocks], [b.spare_items for b in blocks]
    weight = float(sum((block.weights**2).sum() for block in blocks))
    freedom, between, population, note = sum(sizes) - len(sizes), len(blocks) - 1, BOTH, ""
    enough_items = sum(spare) >= between and min(spare) > 0
    if between and not (freedom >= between and enough_items):
        variance, all_freedom = _between_blocks(blocks) + shared, np.array(float(between))
        why = "participants" if enough_items else "trials"
        note = f"the variance is that between groups, because there are too few {why} in a group"
    elif freedom and sum(spare):
        # If people hardly differ, their estimated contribution is negative as often as positive. A
        # negative contribution is not replaced by 0: with many groups of one person, intervals
        # would become too wide.
        variance = np.maximum(items + weight * (person - answers), weight * person)
        terms = np.stack([items, weight * person, weight * answers])
        people_freedom = [np.full(items.shape, float(n)) for n in (freedom, answers_freedom)]
        all_freedom = _satterthwaite(terms, np.stack([items_freedom, *people_freedom]), variance)
        note = "a participant who is alone in a group is assumed to vary like others" * (1 in sizes)
    elif freedom:
        variance, all_freedom = weight * person, np.array(float(freedom))
        population, note = PEOPLE, "one trial: the interval does not generalise to other items"
    elif sum(spare):
        variance, all_freedom = items, items_freedom
        population = ITEMS
        note = "one participant: the interval does not generalise to other people"
    else:
        variance, all_freedom = nan, nan
        population, note = NEITHER, "one participant and one trial: there is no interval"
    variance = np.where(variance < _TINY, 0.0, variance)
    single = [len(b.items) / b.means * (b.influence**2).sum(axis=-1) for b in blocks]
    residual = np.concatenate(single, axis=-1).mean(axis=-1) + np.maximum(0.0, person - answers)
    if (variance == 0).all() and (residual < _TINY).all():
        note = "no variance: all participants of a group have the same value"
    different = len(np.unique(np.concatenate([block.items for block in blocks])))
    items_per_mean = different / max(block.means for block in blocks)
    of_items = (items, items_freedom) if sum(spare) else (nan, nan)
    of_people = (weight * person, np.array(float(freedom))) if freedom else (nan, nan)
    uncertainties = (variance, np.maximum(1.0, all_freedom), of_items, of_people)
    independent = float(sum(sizes)) if population == PEOPLE else items_per_mean
    numbers = (sum(sizes), items_per_mean, independent)
    return VarianceComponents(*uncertainties, residual, person, answers, *numbers, population, note)


def _over_items(blocks: Sequence[Block]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the variance of the mean that items cause, and the variance's degrees of freedom.

    The third result is the part of the variance that is due to items in several blocks.
    """
    # Weighted influence of each item on the overall mean: (…, n_items) for each block. If several
    # blocks have the same item, the item moves the means of these blocks together. So its
    # influences are summed before squaring.
    by_item = [block.weights @ block.influence for block in blocks]
    within = np.stack([(influence**2).sum(axis=-1) for influence in by_item])
    numbers = np.concatenate([block.items for block in blocks])
    order = np.argsort(numbers, kind="stable")
    starts = np.unique(numbers[order], return_index=True)[1]
    squares = np.add.reduceat(np.concatenate(by_item, axis=-1)[..., order], starts, axis=-1) ** 2
    variance = squares.sum(axis=-1)
    freedom = _satterthwaite(within, np.array([block.spare_items for block in blocks]))
    freedom = np.minimum(freedom, len(starts) - 1.0)
    # If a few items with strong preferences have most of the influence, the variance between items
    # is less certain than the number of items suggests. A variance v has 2 v^2 / (variance of v)
    # degrees of freedom (O'Neill 2014). Here v is a sum of squares, so the variance of v follows
    # from the variance of the squares.
    uncertain = (squares**2).sum(axis=-1)
    uncertain = uncertain - sum(v**2 / len(b.items) for v, b in zip(within, blocks, strict=True))
    fewer = np.divide(2 * variance**2, uncertain, out=np.copy(freedom), where=uncertain > 0)
    freedom = np.maximum(1.0, np.minimum(freedom, fewer))
    # If no two blocks share an item, the difference is a rounding error and is set to 0
    shared = np.maximum(0.0, variance - within.sum(axis=0)) * (len(starts) < len(numbers))
    return variance, freedom, shared


def _over_people(blocks: Sequence[Block]) -> tuple[FloatArray, FloatArray, int]:
    """Return `VarianceComponents.person` and `answers`, and the degrees of freedom of `answers`."""
    freedom = sum(len(block.weights) - 1 for block in blocks)
    person = answers = np.zeros(blocks[0].values.shape[:-1])
    answers_freedom = 0
    for block in blocks:
        if len(block.weights) > 1:
            deviations = block.values - block.values.mean(axis=-1, keepdims=True)
            residuals = block.influence - block.influence.mean(axis=-2, keepdims=True)
            person = person + (deviations**2).sum(axis=-1) / freedom
            answers = answers + (residuals**2).sum(axis=(-2, -1)) / freedom
            answers_freedom += (len(block.weights) - 1) * max(1, block.spare_items)
    return person, answers, answers_freedom


def _between_blocks(blocks: Sequence[Block]) -> FloatArray:
    """Return the variance of the mean if each block is one observation."""
    shares = np.array([block.weights.sum() for block in blocks])
    means = np.stack([block.values @ block.weights for block in blocks], axis=-1) / shares
    deviations = shares * (means - (means @ shares)[..., None])
    return np.asarray((deviations**2).sum(axis=-1) * len(blocks) / (len(blocks) - 1))


def _satterthwaite(
    terms: FloatArray, freedom: FloatArray | IntArray, total: FloatArray | None = None
) -> FloatArray:
    """Return Satterthwaite's degrees of freedom of a sum of variances.

    The variances are on the first axis of `terms`, and their degrees of freedom are on the first
    axis of `freedom`. `total` is the sum of the terms, by default with all terms added. Set `total`
    if a term is subtracted.
    """
    freedom = freedom.reshape(freedom.shape + (1,) * (terms.ndim - freedom.ndim))
    total = terms.sum(axis=0) if total is None else total
    shape = np.zeros(terms.shape)
    denominator = np.divide(terms**2, freedom, out=shape, where=freedom > 0).sum(axis=0)
    max_freedom = np.broadcast_to(freedom.sum(axis=0), denominator.shape).astype(np.float64)
    return np.asarray(
        np.divide(total**2, denominator, out=max_freedom, where=denominator > 0), np.float64
    )
