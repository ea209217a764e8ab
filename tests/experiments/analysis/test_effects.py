"""Comparisons and their bootstrap, on experiments whose truth is planted."""

from __future__ import annotations

import numpy as np
import pytest

from contstim.experiments.analysis.bootstrap import bootstrap
from contstim.experiments.analysis.effects import Sampling, Units, compare
from contstim.experiments.analysis.evaluation import ACCURACY, COSINE, MEASURES, evaluate
from contstim.experiments.analysis.inference import CEILING, ModelContrast, every_contrast
from contstim.experiments.analysis.ratings import Ratings, gather
from contstim.experiments.analysis.scopes import Scope, scope_mask
from contstim.scores import ScoreTable
from contstim.stimuli import Condition
from tests.experiments.analysis.simulation import Experiment, simulate

UNITS: tuple[Units, ...] = ("groups", "participants")


def ratings_of(made: Experiment) -> Ratings:
    return gather(made.trials, made.responses, made.scores)


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return ratings_of(simulate(groups=(5,) * 10, each=6, follow=0.85))


@pytest.mark.parametrize("scope", [s for s in Scope if s is not Scope.OVERALL])
def test_the_model_that_people_follow_is_recovered(ratings: Ratings, scope: Scope) -> None:
    """Planted: .85 of choices; the others know nothing, so half."""
    family = every_contrast(ratings.models)
    result = compare(ratings, scope, ACCURACY, family, Sampling("groups", samples=0))
    values = {one.model: one.value for one in result.models}
    assert values["a"] == pytest.approx(0.85, abs=0.04)
    assert values["b"] == pytest.approx(0.5, abs=0.12)
    assert result.beaten_by("a") == {"b", "c"}
    assert result.below_ceiling() == {"b", "c"}


def test_results_are_means_over_groups_of_means_over_people() -> None:
    """Unequal groups: by hand from the evaluation of every participant."""
    ratings = ratings_of(simulate(groups=(2, 5, 3)))
    family = [ModelContrast("a", CEILING)]
    groups, people = (
        compare(ratings, Scope.NATURAL, COSINE, family, Sampling(units, samples=0))
        for units in UNITS
    )
    found = groups.evaluation
    for side, values in (("value_first", found.values[:, 0]), ("value_second", found.lower[:, 0])):
        means = [values[found.groups == n].mean() for n in (1, 2, 3)]
        assert getattr(groups.comparisons[0], side) == pytest.approx(np.mean(means))
        assert getattr(people.comparisons[0], side) == pytest.approx(values.mean())
    assert (groups.comparisons[0].n_units, people.comparisons[0].n_units) == (3, 10)


def test_intervals_hold_the_truth(ratings: Ratings) -> None:
    sampling = Sampling("groups", samples=400, seed=1)
    result = compare(ratings, Scope.RANDOM, ACCURACY, [ModelContrast("a", "b")], sampling)
    one = result.models[0]
    assert one.interval.low < 0.85 < one.interval.high
    assert one.interval.low < one.value < one.interval.high
    (contrast,) = result.comparisons
    assert contrast.interval.low > 0


def test_resampled_people_scatter_as_the_standard_error_says() -> None:
    """Witness: the formula of the standard error of a mean, sd / sqrt(n), for people and items."""
    ratings = ratings_of(simulate(groups=(40,), follow=0.7))
    masks = [scope_mask(g.trials, Scope.OVERALL, ratings.models) for g in ratings.groups]
    drawn = bootstrap(ratings, ACCURACY, masks, np.ones(1), samples=3_000, seed=0)
    values = evaluate(ratings, ACCURACY, masks).values[:, 0]
    by_item = ((ratings.groups[0].ratios[0] > 0) == (ratings.groups[0].ratings > 3.5)).mean(axis=0)
    both, items, people = drawn.values[:, 0, 0].std(axis=1)
    assert people == pytest.approx(values.std() / np.sqrt(40), rel=0.1)
    assert items == pytest.approx(by_item.std() / np.sqrt(len(by_item)), rel=0.1)
    assert both > max(people, items)


def test_resamples_depend_on_the_seed_alone(ratings: Ratings) -> None:
    masks = [scope_mask(g.trials, Scope.NATURAL, ratings.models) for g in ratings.groups]
    runs = [
        bootstrap(ratings, COSINE, masks, np.ones(10), samples=20, seed=seed).values
        for seed in (0, 0, 1)
    ]
    assert np.array_equal(runs[0], runs[1], equal_nan=True)
    assert not np.array_equal(runs[0], runs[2], equal_nan=True)


def test_a_group_of_one_has_values_but_no_ceiling() -> None:
    ratings = ratings_of(simulate(groups=(1, 3)))
    for measure in MEASURES:
        family = [ModelContrast("a", CEILING)]
        result = compare(ratings, Scope.RANDOM, measure, family, Sampling("groups", samples=10))
        alone = result.evaluation.groups == 1
        assert np.isfinite(result.evaluation.values).all()
        assert np.isnan(result.evaluation.lower[alone]).all()
        (against,) = result.comparisons
        assert against.n_units == 1
        assert against.difference == pytest.approx(against.value_first - against.value_second)
        assert against.value_first == pytest.approx(result.evaluation.values[~alone, 0].mean())


def test_a_model_without_trials_is_left_out_of_the_family() -> None:
    """Scored, but no trial targets it: random pairs evaluate it, controversial ones do not."""
    made = simulate(models=("a", "b"), groups=(3, 3))
    scores = ScoreTable(
        made.scores.sentences,
        ("a", "b", "c"),
        np.column_stack([made.scores.log_probs, made.scores.log_probs[:, 0] * 2]),
    )
    ratings = gather(made.trials, made.responses, scores)
    family = every_contrast(scores.models)
    sampling = Sampling("participants", samples=5)
    natural = compare(ratings, Scope.NATURAL, ACCURACY, family, sampling)
    assert [one.model for one in natural.models] == ["a", "b"]
    assert {c.first for c in natural.comparisons} | {c.second for c in natural.comparisons} == {
        "a",
        "b",
        CEILING,
    }
    random = compare(ratings, Scope.RANDOM, ACCURACY, family, sampling)
    assert random.models[0].value == random.models[2].value


def test_without_resamples_intervals_are_empty() -> None:
    ratings = ratings_of(simulate(conditions=(Condition.RANDOM_NATURAL,)))
    result = compare(ratings, Scope.RANDOM, COSINE, [], Sampling("groups", samples=0))
    assert np.isnan(result.models[0].interval.low)
