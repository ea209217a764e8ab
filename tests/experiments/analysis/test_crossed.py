"""Variance of two crossed factors, against exact cases, a bootstrap, and planted values."""

import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_1samp

from contstim.experiments.analysis.crossed import (
    Block,
    GroupJackknife,
    blocks_of,
    jackknife,
    jackknife_of_means,
    variance_components,
)
from contstim.experiments.analysis.intervals import uncertainty_of
from contstim.experiments.analysis.measures import MEASURES, Measure
from contstim.experiments.analysis.ratings import Scope, scope_mask, subset
from contstim.files.arrays import FloatArray
from tests.experiments.analysis.simulation import simulate


def build_block(answers: FloatArray, first_item: int = 0, share: float = 1.0) -> Block:
    """Build a block of item means from answers, (…, n_people, n_items).

    The influence follows the formula of a mean.
    """
    n, k = answers.shape[-2:]
    influence = (answers - answers.mean(axis=-1, keepdims=True)) / np.sqrt(k * (k - 1))
    items = first_item + np.arange(k)
    return Block(answers.mean(axis=-1), influence, items, np.full(n, share / n), 1)


def compute_limits(blocks: list[Block]) -> FloatArray:
    components = variance_components(blocks)
    mean = sum(block.values @ block.weights for block in blocks)
    margin = student.ppf(0.975, components.freedom) * np.sqrt(components.variance)
    return np.array([mean - margin, mean + margin])


def test_two_people_and_four_items_by_hand() -> None:
    """The example in the module's docstring: 1/24 + (1/8 - 1/24) / 2."""
    components = variance_components([build_block(np.array([[1.0, 1, 1, 0], [1, 0, 0, 0]]))])
    assert components.variance == pytest.approx(1 / 12)
    assert components.of_items == pytest.approx((1 / 24, 3))
    assert components.of_people == pytest.approx((1 / 16, 1))


def test_outlying_item_leaves_few_degrees_of_freedom() -> None:
    """By hand: deviations are nine times -.1 and once .9; squares sum to .9, fourth powers to .657.

    2 · .9² / (.657 - .9² / 10) from O'Neill (2014), compared to nine for normal items.
    """
    answers = np.zeros((1, 10))
    answers[0, 0] = 1
    components = variance_components([build_block(answers)])
    assert components.of_items == pytest.approx((0.01, 1.62 / 0.576))
    even = np.tile([0.0, 1.0], (1, 5))
    assert variance_components([build_block(even)]).of_items[1] == pytest.approx(9)


def test_groups_of_one_are_a_t_test_of_groups() -> None:
    """Witness: scipy's interval of a mean; each participant is one observation."""
    answers = np.random.default_rng(0).random((9, 1, 20))
    blocks = [build_block(group_answers, 20 * n, 1 / 9) for n, group_answers in enumerate(answers)]
    expected = ttest_1samp(answers.mean(axis=(1, 2)), 0).confidence_interval()
    assert compute_limits(blocks) == pytest.approx(expected)


def test_one_participant_or_one_item_is_a_t_test() -> None:
    """Witness: scipy's interval of a mean."""
    answers = np.random.default_rng(1).random(15)
    expected = ttest_1samp(answers, 0).confidence_interval()
    assert compute_limits([build_block(answers[None])]) == pytest.approx(expected)
    people = Block(answers, np.zeros((15, 1)), np.zeros(1, np.int64), np.full(15, 1 / 15), 1)
    assert compute_limits([people]) == pytest.approx(expected)


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: str(measure.name))
def test_variance_matches_the_corrected_bootstrap(measure: Measure) -> None:
    """Witness: three bootstraps and the small-sample formula of Schütt et al. (2023, eLife 82566).

    n / (n - 1) a + k / (k - 1) b - n k / ((n - 1) (k - 1)) (c - a - b), for n people and k items.
    """
    experiment = simulate(groups=(12,), follow=0.7, seed=4)
    ratings = experiment.gather()
    group = ratings.groups[0]
    masks = [np.ones((3, len(group.trials)), np.bool_)]
    n, k = 12, len(group.trials)
    # Items and weights of participants in each of 4,000 resamples
    rng = np.random.default_rng(0)
    items_drawn = rng.integers(0, k, (4_000, k))
    people_drawn = rng.multinomial(n, np.full(n, 1 / n), 4_000) / n
    by_item = measure.model(group.ratios[:, items_drawn], group.preferences[:, items_drawn])
    values = measure.model(group.ratios, group.preferences)
    both = np.einsum("pms,sp->ms", by_item, people_drawn)
    draws = np.stack([both, by_item.mean(axis=0), (people_drawn @ values).T])
    groups = jackknife(ratings, measure, masks)
    for first, second in ((0, None), (0, 1)):
        samples = draws[:, first] - (0 if second is None else draws[:, second])
        both, items, people = samples.var(axis=1)
        corrected = n / (n - 1) * people + k / (k - 1) * items
        corrected -= n * k / ((n - 1) * (k - 1)) * (both - items - people)
        components = variance_components(blocks_of(groups, np.ones(1), first, second))
        assert components.of_items[0] == pytest.approx(k / (k - 1) * items, rel=0.12)
        assert components.of_people[0] == pytest.approx(n / (n - 1) * people, rel=0.12)
        assert components.variance == pytest.approx(max(corrected, 0), rel=0.2)


def test_influences_match_a_literal_jackknife() -> None:
    """Brute force: remove each trial from the experiment and evaluate again."""
    experiment = simulate(groups=(4,), each=2, seed=5)
    ratings = experiment.gather()
    (group,) = ratings.groups
    for measure in MEASURES:
        mask = scope_mask(group.trials, Scope.NATURAL, ratings.models)
        (group_jackknife,) = jackknife(ratings, measure, [mask])
        for model in range(3):
            trial_indices = np.flatnonzero(mask[model])
            masks_without_trial = [np.arange(len(group.trials)) != trial for trial in trial_indices]
            values_without_trial = np.array(
                [
                    jackknife(subset(ratings, [remaining]), measure, [mask[:, remaining]])[
                        0
                    ].values[:, model]
                    for remaining in masks_without_trial
                ]
            )
            expected = (
                (len(trial_indices) - 1)
                / len(trial_indices)
                * ((values_without_trial - values_without_trial.mean(axis=0)) ** 2).sum(0)
            )
            assert (group_jackknife.influence[:, model] ** 2).sum(axis=1) == pytest.approx(expected)
            assert not group_jackknife.influence[:, model][:, ~mask[model]].any()


@pytest.mark.parametrize(
    ("sizes", "items"), [((15,), 60), ((6,) * 4, 20), ((8, 5, 2, 1, 1), 25), ((1,) * 12, 15)]
)
def test_intervals_have_nominal_coverage(sizes: tuple[int, ...], items: int) -> None:
    """Planted: SD 1.50 of items and .15 of participants (log odds), with a mean of one half.

    Of 600 intervals, .925 to .975 must contain it: three binomial errors.
    """
    rng = np.random.default_rng(len(sizes))
    blocks = []
    for number, n in enumerate(sizes):
        odds = rng.normal(0, 1.5, (600, 1, items)) + rng.normal(0, 0.15, (600, n, 1))
        answers = (rng.logistic(size=(600, n, items)) < odds).astype(float)
        blocks.append(build_block(answers, number * items, 1 / len(sizes)))
    low, high = compute_limits(blocks)
    assert ((low <= 0.5) & (high >= 0.5)).mean() == pytest.approx(0.95, abs=0.025)


@pytest.mark.parametrize(
    ("sizes", "people"),
    [((9, 9, 9), 4), ((12,), 6), ((5, 8, 2, 9), 1), ((7,), 1), ((1,), 5), ((2, 2, 2, 2), 3)],
)
def test_experiments_at_once_match_single_experiments(sizes: tuple[int, ...], people: int) -> None:
    """Witness: single experiments, jackknifed by hand. Models lack trials and groups.

    The result 4 is the ceiling of model 1.
    """
    rng = np.random.default_rng(7)
    joint_jackknives, single_jackknives = [], []
    for number, size in enumerate(sizes):
        is_rated = np.ones((3, size), dtype=np.bool_)
        is_rated[1, : size // 2] = False
        is_rated[2] = number != 1
        agreements = (rng.random((5, people, 3, size)) < 0.6).astype(np.float64)
        ceilings = rng.random((5, people, 1, size))
        items = 100 * number + np.arange(size)
        joint_jackknives.append(jackknife_of_means(agreements, ceilings, is_rated, items))
        single_jackknives.append(
            [
                _jackknife_by_hand(a, c, is_rated, items)
                for a, c in zip(agreements, ceilings, strict=True)
            ]
        )
    for first, second in ((0, 1), (0, 2), (1, 2), (1, 4), (0, None)):
        shares = np.ones(len(sizes))
        joint = uncertainty_of(joint_jackknives, shares, 0.0, first, second)
        for e in range(5):
            groups = [jackknives[e] for jackknives in single_jackknives]
            single = uncertainty_of(groups, shares, 0.0, first, second)
            for name in ("variance", "freedom", "residual", "person", "answers"):
                expected = getattr(single.components, name)
                values = np.broadcast_to(getattr(joint.components, name), 5)
                assert values[e] == pytest.approx(float(expected), rel=1e-9, abs=1e-15)
            assert joint.estimate[e] == pytest.approx(float(single.estimate))
            if second in (1, 2):
                assert joint.p_values()[e] == pytest.approx(float(single.p_values()), nan_ok=True)


def _jackknife_by_hand(
    agreements: FloatArray, ceilings: FloatArray, has_trial: np.ndarray, items: np.ndarray
) -> GroupJackknife:
    """Leave out one trial after another; arrays are (n_people, n_models or 1, n_trials)."""
    models, results = len(has_trial), []
    for shares in (agreements, np.repeat(ceilings, models, axis=1)):
        values, influence = np.full(shares.shape[:2], np.nan), np.zeros(shares.shape)
        for m in range(models):
            k = int(has_trial[m].sum())
            shares_of_model = shares[:, m, has_trial[m]]
            values[:, m] = shares_of_model.mean(axis=1) if k else np.nan
            if k > 1:
                means_without_trial = np.stack(
                    [np.delete(shares_of_model, t, axis=1).mean(axis=1) for t in range(k)], axis=1
                )
                deviations = means_without_trial.mean(axis=1, keepdims=True) - means_without_trial
                influence[:, m, has_trial[m]] = np.sqrt((k - 1) / k) * deviations
        results.append((values, influence))
    values, influence = map(np.hstack, zip(*results, strict=True))
    return GroupJackknife(values, influence, np.tile(has_trial, (2, 1)), items)
