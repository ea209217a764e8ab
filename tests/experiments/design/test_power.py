"""Power against the analysis itself, closed forms and brute-force simulation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from contstim import plot
from contstim.errors import InputError
from contstim.experiments.analysis.ceilings import accuracy_lower
from contstim.experiments.analysis.effects import Sampling, compare
from contstim.experiments.analysis.evaluation import ACCURACY
from contstim.experiments.analysis.inference import (
    every_contrast,
    false_discovery,
    signed_rank_p_values,
)
from contstim.experiments.analysis.measures import accuracy
from contstim.experiments.analysis.ratings import GroupRatings, Ratings
from contstim.experiments.analysis.scopes import Scope, evaluates
from contstim.experiments.design.building import build_design
from contstim.experiments.design.design_power import design_power, power_table, size_table
from contstim.experiments.design.discoveries import (
    agreement,
    discoveries,
    family,
    family_reach,
    group_means,
    person_agreements,
    significantly_better,
    suited_units,
)
from contstim.experiments.design.population import CLOSE, DISTANT, Population
from contstim.experiments.design.power import simulate_power, thin
from contstim.experiments.design.power_figure import draw_power
from contstim.experiments.design.power_report import power_report
from contstim.experiments.design.simulated import (
    TrialPreferences,
    preferences_by_condition,
    preferences_by_scope,
)
from contstim.scores import ScoreTable
from contstim.sentence import Sentence
from contstim.stimuli import Condition, Kind, Trial
from tests.experiments.stimuli import MODELS, natural, some_pairs, some_triplets

if TYPE_CHECKING:
    from contstim.arrays import BoolArray, FloatArray
    from contstim.experiments.analysis.effects import Units

DESIGN = build_design(
    some_pairs(4), some_triplets(4), natural(99), groups=4, random_per_group=9, catch_per_group=2
)


def scores(seed: int = 0) -> ScoreTable:
    sentences = dict.fromkeys(s for t in DESIGN.trials for s in (t.sentence_1, t.sentence_2))
    values = np.random.default_rng(seed).normal(-40, 8, (len(sentences), len(MODELS)))
    return ScoreTable(tuple(sentences), MODELS, values)


def random_comparisons(n: int, n_models: int = 3, seed: int = 1) -> TrialPreferences:
    rng = np.random.default_rng(seed)
    return TrialPreferences(
        tuple("abcdef"[:n_models]),
        rng.normal(0, 5, (n, n_models)),
        np.ones((n, n_models), dtype=np.bool_),
        np.arange(n) % 4,
        np.zeros(n, dtype=np.int64),
    )


def random_group(number: int, ratios: FloatArray, prefers_2: BoolArray) -> GroupRatings:
    """A group that rated random pairs.

    Args:
        number: of the group.
        ratios: (n_trials, n_models), nats.
        prefers_2: (n_participants, n_trials).
    """
    trials = tuple(
        Trial(
            f"{number}-{t}",
            number,
            Condition.RANDOM_NATURAL,
            "",
            "",
            Sentence.parse(f"First {number} {t}."),
            Sentence.parse(f"Second {number} {t}."),
            Kind.NATURAL,
            Kind.NATURAL,
            "",
        )
        for t in range(len(ratios))
    )
    people = tuple(f"g{number}p{p}" for p in range(len(prefers_2)))
    log_probs = np.stack([np.zeros(ratios.T.shape), ratios.T], axis=-1)
    rated = np.where(prefers_2, 6.0, 1.0)
    return GroupRatings(number, trials, people, rated, np.zeros(rated.shape), log_probs)


def planted(
    comparisons: TrialPreferences, strength: float = 1.0, item_sd: float = 0.5
) -> list[Population]:
    """People who follow each model in turn; strengths are in standard deviations of answers."""
    return [
        Population(
            name,
            strength * comparisons.differences[:, m] / 5,
            np.full(len(comparisons.groups), item_sd),
            0.2,
        )
        for m, name in enumerate(comparisons.models)
    ]


@pytest.mark.parametrize("participants", [2, 5, 6])
def test_agreement_by_votes_is_counted_person_by_person(participants: int) -> None:
    for votes, mine in enumerate(agreement(participants)):
        answers = np.array([1] * votes + [0] * (participants - votes))
        agrees = []
        for person in range(participants):
            others = np.delete(answers, person).mean()
            agrees.append(0.5 if others == 0.5 else float((others > 0.5) == answers[person]))
        assert mine == pytest.approx(np.mean(agrees))


@pytest.mark.parametrize("n_units", [5, 10, 16])
def test_discoveries_are_those_of_the_analysis_one_experiment_at_a_time(n_units: int) -> None:
    """Witness: what `analyze` calls, with ties, zeros, missing units and an empty comparison."""
    rng = np.random.default_rng(0)
    values = np.round(rng.normal(0.7, 1, (40, 7, n_units)), 1)
    values[:, 2, 1] = values[:, 4] = np.nan
    p_values = signed_rank_p_values(values.reshape(-1, n_units)).reshape(40, 7)
    p_values[3, 1] = np.nan  # a test that this experiment alone lacks
    expected = [false_discovery(row) < 0.05 for row in p_values]
    assert discoveries(p_values, 0.05).tolist() == np.array(expected).tolist()
    assert np.any(expected) == (n_units > 5)
    assert not discoveries(np.full((1, 3), np.nan), 0.05).any()


def test_agreements_of_people_are_those_of_the_analysis() -> None:
    """Witness: the measures of `analyze`, person by person."""
    study = random_comparisons(12)
    study.differences[0, 0] = 0
    answers = np.random.default_rng(5).random((2, 5, 12)) < 0.6
    sides = np.broadcast_to(np.sign(study.differences), (2, 12, 3))
    found = person_agreements(answers, sides).mean(axis=2)
    for experiment, means in zip(answers, found, strict=True):
        ratings = np.where(experiment, 1.0, -1.0)
        np.testing.assert_allclose(means[:, :3], accuracy(study.differences.T, ratings))
        np.testing.assert_allclose(means[:, 3:], accuracy_lower(ratings)[:, None].repeat(3, axis=1))
    assert np.isnan(person_agreements(answers[:, :1], sides)[..., 3:]).all()


@pytest.mark.parametrize("participants", [1, 2, 5])
def test_groups_are_the_means_of_their_participants(participants: int) -> None:
    study = random_comparisons(12)
    study.evaluates[:5, 1] = False
    answers = np.random.default_rng(5).random((3, participants, 12)) < 0.6
    sides = np.broadcast_to(np.sign(study.differences), (3, 12, 3))
    found = group_means(answers.sum(axis=1), participants, sides, study.evaluates)
    own = np.tile(study.evaluates, (1, 2))
    people = (person_agreements(answers, sides) * own).sum(axis=2) / own.sum(axis=0)
    np.testing.assert_allclose(found, people.mean(axis=1))


@pytest.mark.parametrize(
    ("sizes", "participants", "units"),
    [((9, 9, 9, 9), 4, "crossed"), ((14,), 6, "crossed"), ((6,) * 9, 3, "groups")],
)
def test_what_is_significant_is_what_the_analysis_says(
    sizes: tuple[int, ...], participants: int, units: Units
) -> None:
    """Witness: `compare`, one experiment at a time."""
    rng = np.random.default_rng(len(sizes))
    models, expected = ("a", "b", "c"), np.zeros((3, 3))
    ratios = [rng.normal(size=(size, 3)) for size in sizes]
    answers = [rng.normal(size=(8, participants, len(r))) + 1.2 * r[:, 0] > 0 for r in ratios]
    for e in range(8):
        groups = [
            random_group(number, of_group, chosen[e])
            for number, (of_group, chosen) in enumerate(zip(ratios, answers, strict=True), start=1)
        ]
        result = compare(
            Ratings(models, tuple(groups)),
            Scope.RANDOM,
            ACCURACY,
            every_contrast(models),
            Sampling(units=units),
        )
        for contrast in result.comparisons[:3]:
            i, j = models.index(contrast.first), models.index(contrast.second)
            if contrast.significant:
                expected[(i, j) if contrast.difference > 0 else (j, i)] += 1
    sides = [np.broadcast_to(np.sign(r), (8, *r.shape)) for r in ratios]
    own = [np.ones(r.shape, dtype=np.bool_) for r in ratios]
    found = significantly_better(answers, sides, own, units, 0.05)
    np.testing.assert_array_equal(found, expected)
    assert expected.sum() > 0


def test_preferences_are_joined_by_sentence() -> None:
    table = scores()
    found = preferences_by_condition(DESIGN.trials, table)
    assert set(found) == set(Condition) - {Condition.CATCH}
    trials = [t for t in DESIGN.trials if t.condition == Condition.NATURAL_SYNTHETIC]
    rows = {s: row for row, s in enumerate(table.sentences or ())}
    own = found[Condition.NATURAL_SYNTHETIC]
    for place in (0, 7):
        trial = trials[place]
        expected = table.log_probs[rows[trial.sentence_2]] - table.log_probs[rows[trial.sentence_1]]
        np.testing.assert_allclose(own.differences[place], expected)
        targeted = [m in (trial.model_1, trial.model_2) for m in MODELS]
        assert own.evaluates[place].tolist() == targeted
        assert own.groups[place] == trial.group - 1
    assert found[Condition.RANDOM_NATURAL].evaluates.all()


def test_impossible_sentences_are_preferred_by_nobody() -> None:
    table = scores()
    table.log_probs[:] = -np.inf
    found = preferences_by_condition(DESIGN.trials, table)[Condition.RANDOM_NATURAL]
    assert not found.differences.any()


def test_expected_accuracy_is_what_many_participants_give() -> None:
    """Brute force: 20,000 people rate items of their own; standard error below .004."""
    comparisons = random_comparisons(24)
    populations = planted(comparisons)
    power = simulate_power(comparisons, populations, simulations=2)
    rng = np.random.default_rng(0)
    rows = np.tile(np.arange(24), (20_000, 1))
    for p, population in enumerate(populations):
        prefers_2 = population.answers(rows, 1, rng)[:, 0]
        agree = prefers_2[..., None] == (comparisons.differences > 0)
        np.testing.assert_allclose(power.accuracy[p], agree.mean(axis=(0, 1)), atol=0.012)


def test_without_noise_the_planted_model_always_comes_first() -> None:
    comparisons = random_comparisons(200)
    sure = [
        replace(people, signal=1e6 * people.signal, following=0.0)
        for people in planted(comparisons)
    ]
    power = simulate_power(comparisons, sure, simulations=20)
    np.testing.assert_array_equal(power.first, 1)
    np.testing.assert_array_equal(np.diag(power.accuracy), 1)
    assert power.trials_needed(0.95) is not None


def test_models_that_agree_share_the_first_place_and_never_differ() -> None:
    same = random_comparisons(40)
    same = replace(same, differences=np.repeat(same.differences[:, :1], 3, axis=1))
    power = simulate_power(same, planted(same), simulations=50)
    np.testing.assert_allclose(power.first, 1 / 3)
    assert not power.better.any()
    assert power.mean_better == 0
    assert power.trials_needed(0.8) is None


def test_people_who_follow_nobody_make_no_model_better_more_often_than_chance() -> None:
    """The level: tests at a false-discovery rate of .05, without any true difference."""
    comparisons = random_comparisons(90)
    nobody = [replace(people, signal=0 * people.signal) for people in planted(comparisons)[:1]]
    for groups in (4, 12):
        power = simulate_power(comparisons, nobody, groups=groups, simulations=400)
        assert power.units == ("crossed" if groups == 4 else "groups")
        assert power.better.sum() / 3 < 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5


def test_more_trials_groups_and_participants_give_more_power() -> None:
    large = random_comparisons(400)
    small = thin(large, 10, seed=1)
    assert len(small.differences) == 40
    assert np.bincount(small.groups).tolist() == [10] * 4

    def power(comparisons: TrialPreferences, groups: int, participants: int = 10) -> float:
        populations = planted(comparisons, 0.1, 0.3)
        return simulate_power(
            comparisons, populations, groups=groups, participants=participants, simulations=60
        ).mean_better

    assert power(large, groups=12) > power(small, groups=12) + 0.1
    assert power(small, groups=12, participants=40) > power(small, groups=12, participants=2)
    assert power(large, groups=12) > power(large, groups=2)


def test_trials_are_taken_evenly_over_model_pairs() -> None:
    comparisons = replace(random_comparisons(40), strata=np.arange(40) // 4 % 5)
    kept = thin(comparisons, 5, seed=0)
    assert np.bincount(kept.strata, minlength=5).max() <= 6


def test_the_report_of_a_design(tmp_path: Path) -> None:
    power = design_power(DESIGN.trials, scores(), simulations=20, participants=5)
    table = power_table(power)
    assert power.to_frame().to_dict("list") == table
    assert list(dict.fromkeys(table["scope"])) == [str(scope) for scope in Scope]
    assert len(table["model"]) == 6 * 2 * len(MODELS) * (len(MODELS) - 1)
    assert set(table["rivals"]) == {CLOSE, DISTANT}
    for scope, result in power.scopes.items():
        distant, close = result.parts
        assert (distant.rivals, close.rivals) == ((DISTANT,) * 4, (CLOSE,) * 4)
        assert result.range_first == tuple(sorted([distant.first.mean(), close.first.mean()]))
        assert result.first.mean() == pytest.approx(np.mean(result.range_first))
        # The page states both, and what they assume
        low, high = (f"{rate:.3f}" for rate in result.range_first)
        assert f"| {scope} | {result.first_by_trials.shape[1]} | {low} to {high} |" in (
            power_report(power).markdown()
        )
    assert table["people"] == table["model"]  # a planted model's own comparisons
    sizes = size_table(power)
    assert sizes["groups"][:5] == [4, 4, 4, 2, 8]
    assert sizes["participants_per_group"][:5] == [5, 2, 10, 5, 5]
    assert sizes["test"][:5] == ["crossed"] * 4 + ["groups"]
    page = power_report(power).markdown()
    assert "4 groups of 5 participants" in page
    assert "Close rivals lie as far behind the planted model as other models lay" in page
    assert page.splitlines()[2].startswith("**With 4 groups signed-rank tests over groups could")
    assert "| random-natural | 36 |" in page
    assert "significant, 4 × 10" in page
    draw_power(power, tmp_path / "power.png")
    assert (tmp_path / "power.png").stat().st_size > 10_000
    drawn = [axes for axes in plot.power(power) if axes.has_data()]
    assert len(drawn) == len(power.scopes)
    again = design_power(DESIGN.trials, scores(), simulations=20, participants=5)
    assert power_table(again) == table
    six = design_power(DESIGN.trials, scores(), simulations=2, participants=5, groups=6)
    assert (
        "**With 6 groups nothing can be significant unless 7 of the 10"
        in power_report(six).markdown()
    )
    alone = design_power(DESIGN.trials, scores(), simulations=2, participants=9, groups=1)
    assert alone.units == "crossed"
    assert "With 1 group " in power_report(alone).markdown().splitlines()[2]


def test_models_that_never_disagree_are_drawn_without_a_difference(tmp_path: Path) -> None:
    table = scores()
    table.log_probs[:] = table.log_probs[:, :1]
    power = design_power(DESIGN.trials, table, groups=1, participants=4, simulations=2)
    assert np.isnan(power.precision[Scope.RANDOM].detectable(1, 4))
    page = power_report(power).markdown()
    assert "| random-natural | 0.0000 | – | – | – | – | – |" in page
    draw_power(power, tmp_path / "power.png")
    sizes = size_table(power)
    found = zip(sizes["scope"], sizes["detectable_difference"], strict=True)
    assert {difference for scope, difference in found if scope == "random-natural"} == {""}


def test_roles_are_two_kinds_and_overall_is_all_trials() -> None:
    """Witness: `evaluates`, trial by trial."""
    found = preferences_by_scope(DESIGN.trials, scores())
    trials = [t for t in DESIGN.trials if t.condition != Condition.CATCH]
    assert set(found.evaluates) == set(Scope)
    for scope, own in found.evaluates.items():
        expected = [[evaluates(trial, scope, model) for model in MODELS] for trial in trials]
        assert own.tolist() == expected
        kept = found.of_scope(scope)
        assert kept.evaluates.sum() == own.sum()
        np.testing.assert_array_equal(kept.differences, found.every.differences[found.rows(scope)])
    both = found.evaluates[Scope.ACCEPT] | found.evaluates[Scope.REJECT]
    targeted = [t.condition == Condition.NATURAL_SYNTHETIC for t in trials]
    np.testing.assert_array_equal(both.sum(axis=1), 2 * np.array(targeted))


def test_without_random_pairs_the_other_kinds_are_simulated() -> None:
    trials = [t for t in DESIGN.trials if t.condition != Condition.RANDOM_NATURAL]
    power = design_power(trials, scores(), simulations=2)
    assert set(power.scopes) == set(Scope) - {Scope.RANDOM}


@pytest.mark.parametrize(("groups", "people"), [(9, 4), (6, 1), (4, 4)])
def test_what_tests_can_reach_is_what_the_clearest_answers_reach(groups: int, people: int) -> None:
    """Brute force: more and more tests with differences of one sign, those of most units first."""
    trials = random_comparisons(24)
    trials.evaluates[trials.groups == 2, 0] = False
    lacking = [g for g in range(groups) if g % 4 == 2]
    without_first = [2, 4, 5]  # of the pairs 01, 02, 12, then the ceilings of 0, 1 and 2
    order = [*without_first, 0, 1, 3]
    tests = [place for place in order if people > 1 or place < 3]
    reached = family_reach(trials, groups, people, 0.05)
    assert reached.tests == len(tests)
    assert (reached.most_units, reached.fewest_units) == (groups, groups - len(lacking))
    assert suited_units([reached]) == ("crossed" if reached.needed is None else "groups")
    for number in range(len(tests) + 1):
        differences = np.zeros((6, groups))
        differences[tests[:number]] = np.arange(1, groups + 1)
        for place in (0, 1, 3):
            differences[place, lacking] = np.nan
        p_values = signed_rank_p_values(differences[sorted(tests)])[None]
        found = discoveries(p_values, 0.05).any()
        assert found == (reached.needed is not None and number >= reached.needed)


def test_one_group_is_compared_by_crossed_tests() -> None:
    alone = replace(random_comparisons(8), groups=np.zeros(8, dtype=np.int64))
    assert suited_units([family_reach(alone, 1, 9, 0.05)]) == "crossed"
    first, second = family(3)
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == [
        *((0, 1), (0, 2), (1, 2), (0, 3), (1, 4), (2, 5))
    ]


def test_unusable_questions_are_refused() -> None:
    table = scores()
    assert table.sentences is not None
    few = ScoreTable(table.sentences[1:], table.models, table.log_probs[1:])
    with pytest.raises(
        InputError, match=r"1 sentence of the trials has no scores: .*Score the trials first"
    ):
        preferences_by_condition(DESIGN.trials, few)
    other = ScoreTable(table.sentences, ("x", *MODELS[1:]), table.log_probs)
    with pytest.raises(InputError, match="No scores for 'ngram'"):
        preferences_by_condition(DESIGN.trials, other)
    with pytest.raises(InputError, match="two or more models; there are scores of ngram"):
        design_power(DESIGN.trials, ScoreTable(table.sentences, MODELS[:1], table.log_probs[:, :1]))
    with pytest.raises(InputError, match="nothing to simulate"):
        preferences_by_scope([t for t in DESIGN.trials if t.condition == Condition.CATCH], table)
    with pytest.raises(InputError, match="1 or more groups"):
        simulate_power(random_comparisons(8), planted(random_comparisons(8)), groups=0)
    with pytest.raises(InputError, match="smallest effect of interest"):
        design_power(DESIGN.trials, table, smallest_effect=0.0)
    with pytest.raises(InputError, match="1 or more groups, not 0"):
        design_power(DESIGN.trials, table, groups=0)
    with pytest.raises(InputError, match="keeps 1 to 2 trials"):
        thin(random_comparisons(8), 3)
