"""Power analysis, against the analysis of experiments, closed forms and simulation."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from contstim import plot
from contstim.errors import InputError
from contstim.experiments.analysis.effects import Sampling, Units, compare
from contstim.experiments.analysis.families import adjust, every_contrast
from contstim.experiments.analysis.measures import ACCURACY, accuracy, accuracy_lower
from contstim.experiments.analysis.ratings import GroupRatings, Ratings, Scope, evaluates
from contstim.experiments.analysis.signed_ranks import signed_rank_p_values
from contstim.experiments.design import power as module
from contstim.experiments.design import simulated_tests
from contstim.experiments.design.population import (
    CLOSE,
    DISTANT,
    Population,
    TrialPreferences,
    preferences_by_scope,
)
from contstim.experiments.design.power import DesignPower, design_power, simulate_power
from contstim.experiments.design.power_report import (
    power_figure,
    power_report,
    power_table,
    size_table,
)
from contstim.files.arrays import BoolArray, FloatArray
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Condition
from contstim.reporting.canvas import write_figure
from tests.experiments.design.scored_design import DESIGN, MODELS, evaluate_all, scores
from tests.experiments.stimuli import new_trial


def random_comparisons(n: int, n_models: int = 3, seed: int = 1) -> TrialPreferences:
    rng = np.random.default_rng(seed)
    return evaluate_all(rng.normal(0, 5, (n, n_models)), np.arange(n) % 4)


def build_group(number: int, ratios: FloatArray, prefers_2: BoolArray) -> GroupRatings:
    """Build a group that rated random pairs.

    Ratios are (n_trials, n_models), in nats; choices are (n_people, n_trials).
    """
    trials = tuple(
        new_trial(f"{number}-{t}", number, f"First {number} {t}.", f"Second {number} {t}.")
        for t in range(len(ratios))
    )
    people = tuple(f"g{number}p{p}" for p in range(len(prefers_2)))
    log_probs = np.stack([np.zeros(ratios.T.shape), ratios.T], axis=-1)
    ratings = np.where(prefers_2, 6.0, 1.0)
    return GroupRatings(number, trials, people, ratings, np.zeros(ratings.shape), log_probs)


def build_populations(
    comparisons: TrialPreferences, strength: float = 1.0, item_sd: float = 0.5
) -> list[Population]:
    """Build participants who follow each model; strengths are in SDs of responses."""
    return [
        Population(
            name,
            strength * comparisons.differences[:, m] / 5,
            np.full(len(comparisons.groups), item_sd),
            0.2,
        )
        for m, name in enumerate(comparisons.models)
    ]


@pytest.mark.parametrize("participants", [1, 2, 5])
def test_accuracies_and_ceilings_match_the_analysis(participants: int) -> None:
    """Witness: the measures of `analyze`, one experiment at a time."""
    study = random_comparisons(12)
    study.differences[0, 0] = 0
    study.evaluates[:5, 1] = False
    answers = np.random.default_rng(5).random((3, participants, 12)) < 0.6
    sides = np.broadcast_to(study.sides, (3, 12, 3))
    means = simulated_tests.group_means(answers, sides, study.evaluates)
    (group,) = simulated_tests.group_jackknives([answers], [sides], [study.evaluates])
    for e, choices in enumerate(answers):
        ratings = np.where(choices, 1.0, -1.0)
        for m, is_evaluated in enumerate(study.evaluates.T):
            ratings_of_model = ratings[:, is_evaluated]
            expected = [
                accuracy(study.differences.T[m : m + 1, is_evaluated], ratings_of_model)[:, 0]
            ]
            missing = np.full(participants, np.nan)
            expected.append(accuracy_lower(ratings_of_model) if participants > 1 else missing)
            actual = [group.values[e, :, m], group.values[e, :, 3 + m]]
            np.testing.assert_allclose(actual, expected)
            np.testing.assert_allclose(means[e, [m, 3 + m]], np.mean(expected, axis=1))


@pytest.mark.parametrize(
    ("sizes", "people", "units"),
    [
        ((9, 9, 9, 9), 4, "crossed"),
        ((14,), 6, "crossed"),
        ((9, 9, 9), 1, "crossed"),  # the small number of items decides
        ((6,) * 9, 3, "groups"),
    ],
)
def test_significance_matches_analysis(sizes: tuple[int, ...], people: int, units: Units) -> None:
    """Witness: `compare`, one experiment at a time."""
    rng = np.random.default_rng(len(sizes))
    models, expected = ("a", "b", "c"), np.zeros((3, 3))
    ratios = [rng.normal(size=(size, 3)) for size in sizes]
    votes = [rng.normal(size=(6, people, len(r))) + 1.2 * r[:, 0] > 0 for r in ratios]
    for e in range(6):
        groups = [
            build_group(number, ratio, choices[e])
            for number, (ratio, choices) in enumerate(zip(ratios, votes, strict=True), start=1)
        ]
        ratings, family = Ratings(models, tuple(groups)), every_contrast(models)
        result = compare(ratings, Scope.RANDOM, ACCURACY, family, Sampling(units=units))
        for contrast in result.comparisons[:3]:
            i, j = models.index(contrast.first), models.index(contrast.second)
            if contrast.significant:
                expected[(i, j) if contrast.difference > 0 else (j, i)] += 1
    sides = [np.broadcast_to(np.sign(r), (6, *r.shape)) for r in ratios]
    is_evaluated = [np.ones(r.shape, dtype=np.bool_) for r in ratios]
    n_better = simulated_tests.significantly_better(votes, sides, is_evaluated, units)
    np.testing.assert_array_equal(n_better, expected)
    assert expected.sum() > 0


def test_expected_accuracy_matches_many_participants() -> None:
    """Brute force: 20,000 participants rate different items; the standard error is below .004."""
    comparisons = random_comparisons(24)
    models = build_populations(comparisons)
    power = simulate_power(comparisons, models, simulations=2)
    rng = np.random.default_rng(0)
    rows = np.tile(np.arange(24), (20_000, 1))
    for p, population in enumerate(models):
        prefers_2 = population.answers(rows, 1, rng)[:, 0]
        agree = prefers_2[..., None] == (comparisons.differences > 0)
        assert power.populations[p].accuracy == pytest.approx(agree.mean(axis=(0, 1)), abs=0.012)


def test_planted_model_is_first_without_noise() -> None:
    comparisons = random_comparisons(200)
    noiseless = [
        replace(population, signal=1e6 * population.signal, following=0.0)
        for population in build_populations(comparisons)
    ]
    power = simulate_power(comparisons, noiseless, simulations=20)
    for index, people in enumerate(power.populations):
        assert (people.first, people.favourite, people.accuracy[index]) == (1, index, 1)
    assert power.trials_needed(0.95) is not None


def test_identical_models_share_the_first_rank_and_never_differ() -> None:
    identical = random_comparisons(40)
    identical = replace(identical, differences=np.repeat(identical.differences[:, :1], 3, axis=1))
    power = simulate_power(identical, build_populations(identical), simulations=50)
    for people in power.populations:
        assert people.first == pytest.approx(1 / 3)
        assert not people.better.any()
    assert power.mean_better == 0
    assert power.trials_needed(0.8) is None


def test_false_positive_rate_without_a_followed_model() -> None:
    """Level: tests have a false-discovery rate of .05 without any true difference."""
    comparisons = random_comparisons(90)
    random_people = [replace(p, signal=0 * p.signal) for p in build_populations(comparisons)[:1]]
    for groups in (4, 12):
        power = simulate_power(comparisons, random_people, groups=groups, simulations=400)
        assert power.units == ("crossed" if groups == 4 else "groups")
        assert power.populations[0].better.sum() / 3 < 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5


def test_tables_of_a_power_analysis(power: DesignPower) -> None:
    table = power_table(power)
    assert power.to_frame().to_dict("list") == table
    assert list(dict.fromkeys(table["scope"])) == [str(s) for s in Scope if s is not Scope.MINIMAL]
    assert len(table["model"]) == 6 * 2 * len(MODELS) * (len(MODELS) - 1)
    assert set(table["rivals"]) == {CLOSE, DISTANT}
    assert table["people"] == table["model"]  # only comparisons of the planted model
    sizes = size_table(power)
    assert sizes["groups"][:5] == [4, 4, 4, 2, 8]
    assert sizes["participants_per_group"][:5] == [5, 2, 10, 5, 5]
    assert sizes["test"][:5] == ["crossed"] * 4 + ["groups"]


def test_page_of_a_power_analysis(power: DesignPower) -> None:
    page = power_report(power).markdown()
    for scope, scope_power in power.scopes.items():
        distant, close = scope_power.planned.parts
        rates = [np.mean([p.first for p in part.populations]) for part in (distant, close)]
        assert list(scope_power.planned.range_first) == sorted(rates)
        for part, rivals in ((distant, DISTANT), (close, CLOSE)):
            assert {people.rivals for people in part.populations} == {rivals}
        # The page states both rates and their assumptions
        low, high = (f"{rate:.3f}" for rate in scope_power.planned.range_first)
        span = low if low == high else f"{low} to {high}"
        assert f"| {scope} | {len(scope_power.planned.mean_first_by_trials)} | {span} |" in page
    assert "4 groups of 5 participants" in page
    assert "Close rivals are as far behind the planted model as other models" in page
    assert page.splitlines()[2].startswith("**With 4 groups no signed-rank test over groups")
    assert "| random-natural | 36 |" in page
    assert "significant, 4 × 10" in page


def test_figure_of_a_power_analysis(power: DesignPower) -> None:
    axes_with_data = [axes for axes in plot.power(power) if axes.has_data()]
    assert len(axes_with_data) == len(power.scopes)


@pytest.mark.parametrize(
    ("groups", "units", "line"),
    [
        (6, "groups", "**With 6 groups, no result can be significant unless 4 of the 6"),
        (1, "crossed", "**With 1 group "),
    ],
)
def test_limits_of_few_groups_come_first(
    groups: int, units: Units, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_DIVISORS", ())  # no smaller experiments
    trials = [t for t in DESIGN.trials if t.condition == Condition.RANDOM_NATURAL]
    power = design_power(trials, scores(), simulations=1, participants=5, groups=groups)
    assert power.units == units
    assert power_report(power).markdown().splitlines()[2].startswith(line)
    if groups == 1:
        repeated = design_power(trials, scores(), simulations=1, participants=5, groups=groups)
        assert power_table(repeated) == power_table(power)


def test_difference_of_identical_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_DIVISORS", ())
    table = scores()
    table.log_probs[:] = table.log_probs[:, :1]
    trials = [t for t in DESIGN.trials if t.condition == Condition.RANDOM_NATURAL]
    power = design_power(trials, table, groups=1, participants=4, simulations=2)
    assert np.isnan(power.scopes[Scope.RANDOM].precision.detectable(1, 4))
    assert "| random-natural | 0.0000 | – | – | – | – | – |" in power_report(power).markdown()
    write_figure(partial(power_figure, power), tmp_path / "power.png")
    assert (tmp_path / "power.png").stat().st_size > 10_000
    assert set(size_table(power)["detectable_difference"]) == {""}


def test_scopes_match_the_trials_they_evaluate() -> None:
    """Witness: `evaluates`, trial by trial."""
    preferences = preferences_by_scope(DESIGN.trials, scores())
    trials = [t for t in DESIGN.trials if t.condition != Condition.CATCH]
    assert set(preferences.scopes) == {*Scope} - {Scope.MINIMAL}
    for scope, is_evaluated in preferences.scopes.items():
        expected = [[evaluates(trial, scope, model) for model in MODELS] for trial in trials]
        assert is_evaluated.tolist() == expected
        scope_preferences = preferences.of_scope(scope)
        assert scope_preferences.evaluates.sum() == is_evaluated.sum()
        np.testing.assert_array_equal(
            scope_preferences.differences,
            preferences.differences[preferences.rows(scope)],
        )
    has_role = preferences.scopes[Scope.ACCEPT] | preferences.scopes[Scope.REJECT]
    targeted = [t.condition == Condition.NATURAL_SYNTHETIC for t in trials]
    np.testing.assert_array_equal(has_role.sum(axis=1), 2 * np.array(targeted))


@pytest.mark.parametrize(("groups", "people"), [(9, 4), (6, 1), (4, 4), (1, 9)])
def test_family_limits_match_the_clearest_responses(groups: int, people: int) -> None:
    """Brute force: increasing numbers of tests with differences of one sign, most units first."""
    trials = random_comparisons(24)
    trials.evaluates[trials.groups == 2, 0] = False
    groups_without_model = [g for g in range(groups) if g % 4 == 2]
    without_first = [2, 4, 5]  # order: pairs 01, 02, 12, then ceilings of 0, 1 and 2
    order = [*without_first, 0, 1, 3]
    tests = [test for test in order if people > 1 or test < 3]
    limits = simulated_tests.family_limits(trials, groups, people)
    assert limits.tests == len(tests)
    assert (limits.most_units, limits.fewest_units) == (groups, groups - len(groups_without_model))
    assert simulated_tests.units_for([limits]) == ("crossed" if limits.needed is None else "groups")
    for number in range(len(tests) + 1):
        differences = np.zeros((6, groups))
        differences[tests[:number]] = np.arange(1, groups + 1)
        for test in (0, 1, 3):
            differences[test, groups_without_model] = np.nan
        is_significant = (adjust(signed_rank_p_values(differences[sorted(tests)])) < 0.05).any()
        assert is_significant == (limits.needed is not None and number >= limits.needed)


def test_invalid_power_analyses_are_rejected() -> None:
    table = scores()
    assert table.sentences is not None
    fewer_scores = ScoreTable(table.sentences[1:], table.models, table.log_probs[1:])
    other_models = ScoreTable(table.sentences, ("x", *MODELS[1:]), table.log_probs)
    one_model = ScoreTable(table.sentences, MODELS[:1], table.log_probs[:, :1])
    catch = [t for t in DESIGN.trials if t.condition == Condition.CATCH]
    study = random_comparisons(8)
    cases: list[tuple[str, Callable[[], object]]] = [
        (
            "1 sentence of the trials has no score",
            lambda: preferences_by_scope(DESIGN.trials, fewer_scores),
        ),
        ("got 'ngram'", lambda: preferences_by_scope(DESIGN.trials, other_models)),
        ("at least 2 models, got scores of ngram", lambda: design_power(DESIGN.trials, one_model)),
        ("nothing to simulate", lambda: preferences_by_scope(catch, table)),
        ("`groups` must be", lambda: simulate_power(study, build_populations(study), groups=0)),
        ("`groups` must be", lambda: design_power(DESIGN.trials, table, groups=0)),
        ("`smallest_effect`", lambda: design_power(DESIGN.trials, table, smallest_effect=0.0)),
    ]
    for message, call in cases:
        with pytest.raises(InputError, match=message):
            call()
