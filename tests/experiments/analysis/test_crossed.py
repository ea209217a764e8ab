"""The variance of two crossed factors, against exact cases, a bootstrap, and planted truth."""

import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_1samp

from contstim.experiments.analysis.crossed import (
    Block,
    GroupJackknife,
    Side,
    blocks_of,
    jackknife,
    jackknife_of_means,
    variance_components,
)
from contstim.experiments.analysis.intervals import uncertainty_of
from contstim.experiments.analysis.measures import MEASURES, Measure
from contstim.experiments.analysis.ratings import Scope, gather, scope_mask, subset
from contstim.files.arrays import FloatArray
from tests.experiments.analysis.simulation import simulate


def block(answers: FloatArray, first_item: int = 0, share: float = 1.0) -> Block:
    """Means over items of answers, (…, n_people, n_items): influence by the formula of a mean."""
    n, k = answers.shape[-2:]
    influence = (answers - answers.mean(axis=-1, keepdims=True)) / np.sqrt(k * (k - 1))
    items = first_item + np.arange(k)
    return Block(answers.mean(axis=-1), influence, items, np.full(n, share / n), 1)


def limits(blocks: list[Block]) -> FloatArray:
    components = variance_components(blocks)
    mean = sum(one.values @ one.weights for one in blocks)
    reach = student.ppf(0.975, components.freedom) * np.sqrt(components.variance)
    return np.array([mean - reach, mean + reach])


def test_two_people_and_four_items_by_hand() -> None:
    """The example of the module: 1/24 + (1/8 - 1/24) / 2."""
    components = variance_components([block(np.array([[1.0, 1, 1, 0], [1, 0, 0, 0]]))])
    assert components.variance == pytest.approx(1 / 12)
    assert components.of_items == pytest.approx((1 / 24, 3))
    assert components.of_people == pytest.approx((1 / 16, 1))


def test_an_item_that_stands_out_leaves_few_degrees_of_freedom() -> None:
    """By hand: deviations nine times -.1 and once .9; their squares sum to .9, these to .657.

    2 · .9² / (.657 - .9² / 10), as O'Neill (2014) has it, against nine for normal items.
    """
    answers = np.zeros((1, 10))
    answers[0, 0] = 1
    assert variance_components([block(answers)]).of_items == pytest.approx((0.01, 1.62 / 0.576))
    even = np.tile([0.0, 1.0], (1, 5))
    assert variance_components([block(even)]).of_items[1] == pytest.approx(9)


def test_groups_of_one_are_a_t_test_of_groups() -> None:
    """Witness: scipy's interval of a mean; each person is one observation with items of its own."""
    answers = np.random.default_rng(0).random((9, 1, 20))
    blocks = [block(one, 20 * n, 1 / 9) for n, one in enumerate(answers)]
    expected = ttest_1samp(answers.mean(axis=(1, 2)), 0).confidence_interval()
    assert limits(blocks) == pytest.approx(expected)


def test_one_person_is_a_t_test_of_items_and_one_item_of_people() -> None:
    """Witness: scipy, again."""
    answers = np.random.default_rng(1).random(15)
    expected = ttest_1samp(answers, 0).confidence_interval()
    assert limits([block(answers[None])]) == pytest.approx(expected)
    people = Block(answers, np.zeros((15, 1)), np.zeros(1, np.int64), np.full(15, 1 / 15), 1)
    assert limits([people]) == pytest.approx(expected)


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: str(measure.name))
def test_the_variance_is_the_corrected_bootstraps(measure: Measure) -> None:
    """Witness: three bootstraps and the small-sample formula of Schütt et al. (2023, eLife 82566).

    n / (n - 1) a + k / (k - 1) b - n k / ((n - 1) (k - 1)) (c - a - b), for n people and k items.
    """
    made = simulate(groups=(12,), follow=0.7, seed=4)
    ratings = gather(made.trials, made.responses, made.scores)
    group = ratings.groups[0]
    masks = [np.ones((3, len(group.trials)), np.bool_)]
    n, k = 12, len(group.trials)
    # The items, and how much each person counts, in each of 4,000 resamples
    rng = np.random.default_rng(0)
    items_drawn = rng.integers(0, k, (4_000, k))
    people_drawn = rng.multinomial(n, np.full(n, 1 / n), 4_000) / n
    by_item = measure.model(group.ratios[:, items_drawn], group.preferences[:, items_drawn])
    as_it_is = measure.model(group.ratios, group.preferences)
    drawn = np.stack(
        [
            np.einsum("pms,sp->ms", by_item, people_drawn),
            by_item.mean(axis=0),
            (people_drawn @ as_it_is).T,
        ]
    )
    groups = jackknife(ratings, measure, masks)
    for first, second in ((0, None), (0, 1)):
        samples = drawn[:, first] - (0 if second is None else drawn[:, second])
        both, items, people = samples.var(axis=1)
        corrected = n / (n - 1) * people + k / (k - 1) * items
        corrected -= n * k / ((n - 1) * (k - 1)) * (both - items - people)
        components = variance_components(blocks_of(groups, np.ones(1), Side(first, second)))
        assert components.of_items[0] == pytest.approx(k / (k - 1) * items, rel=0.12)
        assert components.of_people[0] == pytest.approx(n / (n - 1) * people, rel=0.12)
        assert components.variance == pytest.approx(max(corrected, 0), rel=0.2)


def test_influences_are_a_jackknife_of_what_is_measured() -> None:
    """Brute force: each trial taken out of the experiment, and everything evaluated again."""
    made = simulate(groups=(4,), each=2, seed=5)
    ratings = gather(made.trials, made.responses, made.scores)
    (group,) = ratings.groups
    for measure in MEASURES:
        mask = scope_mask(group.trials, Scope.NATURAL, ratings.models)
        (found,) = jackknife(ratings, measure, [mask])
        for model in range(3):
            own = np.flatnonzero(mask[model])
            kept = [np.arange(len(group.trials)) != trial for trial in own]
            without = np.array(
                [
                    jackknife(subset(ratings, [one]), measure, [mask[:, one]])[0].values[:, model]
                    for one in kept
                ]
            )
            expected = (len(own) - 1) / len(own) * ((without - without.mean(axis=0)) ** 2).sum(0)
            assert (found.influence[:, model] ** 2).sum(axis=1) == pytest.approx(expected)
            assert not found.influence[:, model][:, ~mask[model]].any()


@pytest.mark.parametrize(
    ("sizes", "items"), [((15,), 60), ((6,) * 4, 20), ((8, 5, 2, 1, 1), 25), ((1,) * 12, 15)]
)
def test_intervals_cover_and_tests_keep_their_level(sizes: tuple[int, ...], items: int) -> None:
    """Planted: choices with items' SD 1.50 and people's .15 log odds; the mean is one half.

    Of 600 intervals, .925 to .975 have to cover: three binomial errors.
    """
    chance = np.random.default_rng(len(sizes))
    blocks = []
    for number, n in enumerate(sizes):
        odds = chance.normal(0, 1.5, (600, 1, items)) + chance.normal(0, 0.15, (600, n, 1))
        answers = (chance.logistic(size=(600, n, items)) < odds).astype(float)
        blocks.append(block(answers, number * items, 1 / len(sizes)))
    low, high = limits(blocks)
    assert ((low <= 0.5) & (high >= 0.5)).mean() == pytest.approx(0.95, abs=0.025)


@pytest.mark.parametrize(
    ("sizes", "people"),
    [((9, 9, 9), 4), ((12,), 6), ((5, 8, 2, 9), 1), ((7,), 1), ((1,), 5), ((2, 2, 2, 2), 3)],
)
def test_experiments_at_once_are_those_one_by_one(sizes: tuple[int, ...], people: int) -> None:
    """Witness: each experiment alone, left-out trials by hand; models lack trials and groups."""
    rng = np.random.default_rng(7)
    at_once, one_by_one = [], []
    for number, size in enumerate(sizes):
        own = np.ones((3, size), dtype=np.bool_)
        own[1, : size // 2] = False
        own[2] = number != 1
        agreements = (rng.random((5, people, 3, size)) < 0.6).astype(np.float64)
        ceilings = rng.random((5, people, 1, size))
        items = 100 * number + np.arange(size)
        at_once.append(jackknife_of_means(agreements, ceilings, own, items))
        one_by_one.append(
            [_left_out(a, c, own, items) for a, c in zip(agreements, ceilings, strict=True)]
        )
    for side in (Side(0, 1), Side(0, 2), Side(1, 2), Side(1, ceiling=True), Side(0)):
        shares = np.ones(len(sizes))
        found = uncertainty_of(at_once, shares, 0.0, side)
        for e in range(5):
            groups = [of_group[e] for of_group in one_by_one]
            alone = uncertainty_of(groups, shares, 0.0, side)
            for name in ("variance", "freedom", "residual", "person", "answers"):
                expected = getattr(alone.components, name)
                values = np.broadcast_to(getattr(found.components, name), 5)
                assert values[e] == pytest.approx(float(expected), rel=1e-9, abs=1e-15)
            assert found.estimate[e] == pytest.approx(float(alone.estimate))
            if side.second is not None:
                assert found.p_values()[e] == pytest.approx(float(alone.p_values()), nan_ok=True)


def _left_out(
    agreements: FloatArray, ceilings: FloatArray, own: np.ndarray, items: np.ndarray
) -> GroupJackknife:
    """A jackknife by leaving out each trial: (n_people, n_models or 1, n_trials)."""
    models, results = len(own), []
    for given in (agreements, np.repeat(ceilings, models, axis=1)):
        values, influence = np.full(given.shape[:2], np.nan), np.zeros(given.shape)
        for m in range(models):
            k = int(own[m].sum())
            mine = given[:, m, own[m]]
            values[:, m] = mine.mean(axis=1) if k else np.nan
            if k > 1:
                without = np.stack(
                    [np.delete(mine, t, axis=1).mean(axis=1) for t in range(k)], axis=1
                )
                apart = without.mean(axis=1, keepdims=True) - without
                influence[:, m, own[m]] = np.sqrt((k - 1) / k) * apart
        results.append((values, influence))
    (values, influence), (lower, of_lower) = results
    return GroupJackknife(values, lower, influence, of_lower, own, items)
