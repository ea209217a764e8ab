"""Simulated participants and power against SciPy, closed forms and brute-force simulation."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from contstim.errors import InputError
from contstim.experiments.analysis.ceilings import accuracy_lower
from contstim.experiments.analysis.effects import Sampling
from contstim.experiments.analysis.evaluation import ACCURACY
from contstim.experiments.analysis.inference import false_discovery, signed_rank_test
from contstim.experiments.analysis.measures import accuracy
from contstim.experiments.analysis.outputs.folder import write_analysis
from contstim.experiments.analysis.run import analyze
from contstim.experiments.analysis.scopes import Scope, evaluates
from contstim.experiments.design.building import build_design
from contstim.experiments.design.calibration import Ceilings, calibrate, read_ceilings
from contstim.experiments.design.discoveries import (
    agreement,
    discoveries,
    family_reach,
    group_means,
    person_means,
)
from contstim.experiments.design.power import simulate_power, thin
from contstim.experiments.design.power_report import design_power, power_report, power_table
from contstim.experiments.design.simulated import (
    TrialPreferences,
    calibrate_noise,
    choice_probabilities,
    lower_ceiling,
    preferences_by_condition,
    preferences_by_scope,
)
from contstim.scores import ScoreTable
from contstim.stimuli import Condition
from tests.experiments.analysis.simulation import simulate
from tests.experiments.stimuli import MODELS, natural, some_pairs, some_triplets

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


@pytest.mark.parametrize("raters", [2, 3, 4, 5])
def test_lower_ceiling_is_the_mean_over_all_possible_answers(raters: int) -> None:
    """Every pattern of answers, weighted by its probability; a tied majority counts one half."""
    differences, noise = np.array([-3.0, 0.0, 0.5, 7.0]), 4.0
    total = 0.0
    for p in norm.cdf(differences / noise):
        for answers in product((0, 1), repeat=raters):
            weight = np.prod([p if a else 1 - p for a in answers])
            for person in range(raters):
                others = np.delete(answers, person)
                majority = (np.sign(others.mean() - 0.5) + 1) / 2
                agrees = 0.5 if majority == 0.5 else float(majority == answers[person])
                total += weight * agrees / raters / len(differences)
    assert lower_ceiling(differences, noise, raters) == pytest.approx(total, abs=1e-12)


@settings(max_examples=30)
@given(st.floats(0.55, 0.95), st.integers(2, 12), st.integers(0, 99))
def test_calibrated_noise_gives_the_stated_ceiling(ceiling: float, raters: int, seed: int) -> None:
    differences = np.random.default_rng(seed).normal(0, 9, 300)
    noise = calibrate_noise(differences, ceiling, raters=raters)
    assert lower_ceiling(differences, noise, raters) == pytest.approx(ceiling, abs=1e-9)


@pytest.mark.parametrize(("ceiling", "raters"), [(0.5, 10), (1.0, 10), (0.2, 10), (0.7, 1)])
def test_ceilings_that_no_noise_gives_are_refused(ceiling: float, raters: int) -> None:
    with pytest.raises(InputError, match="noise"):
        calibrate_noise(np.array([1.0, -2.0]), ceiling, raters=raters)


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
def test_discoveries_are_those_of_the_analysis_one_test_at_a_time(n_units: int) -> None:
    """Witness: what `analyze` calls, with ties, zeros, missing units and an empty comparison."""
    rng = np.random.default_rng(0)
    values = np.round(rng.normal(0.7, 1, (40, n_units, 7)), 1)
    values[:, 1, 2] = values[:, :, 4] = np.nan
    expected = []
    for experiment in values:
        tests = [signed_rank_test(column, np.zeros(n_units)) for column in experiment.T]
        expected.append(false_discovery(np.array([test.p_value for test in tests])) < 0.05)
    assert discoveries(values, 0.05).tolist() == np.array(expected).tolist()
    assert np.any(expected) == (n_units > 5)
    assert not discoveries(np.zeros((1, 10, 3)), 0.05).any()


def test_five_groups_never_tell_models_apart() -> None:
    """By hand: five differences of one sign have p = 2 / 2^5 = .0625."""
    assert not discoveries(np.ones((1, 5, 1)), 0.05).any()
    assert discoveries(np.ones((1, 5, 1)), 0.07).all()
    assert not discoveries(np.ones((1, 5, 1)), 0.0625).any()


def test_missing_groups_are_left_out_as_in_the_analysis() -> None:
    """Six differences of one sign among ten groups: p = 2 / 2^6; four zeros would make it .1."""
    values = np.full((1, 10, 1), np.nan)
    values[0, :6, 0] = np.arange(1, 7)
    assert discoveries(values, 0.05).all()


def test_participants_of_one_group_are_evaluated_as_in_the_analysis() -> None:
    """Witness: the measures of `analyze`, person by person."""
    study = replace(random_comparisons(12), groups=np.zeros(12, dtype=np.int64))
    study.evaluates[:5, 1] = False
    study.differences[0, 0] = 0
    answers = np.random.default_rng(5).random((2, 5, 12)) < 0.6
    means, ceilings = person_means(study, answers)
    for experiment, mean, ceiling in zip(answers, means, ceilings, strict=True):
        ratings = np.where(experiment, 6.0, 1.0)
        for m in range(3):
            own = study.evaluates[:, m]
            expected = accuracy(study.differences[own, m][None], ratings[:, own])
            np.testing.assert_allclose(mean[:, m], expected[:, 0])
            np.testing.assert_allclose(ceiling[:, m], accuracy_lower(ratings[:, own]))


@pytest.mark.parametrize("participants", [1, 2, 5])
def test_groups_are_the_means_of_their_participants(participants: int) -> None:
    study = random_comparisons(12)
    answers = np.random.default_rng(5).random((3, participants, 12)) < 0.6
    found = group_means(study, answers.sum(axis=1), participants)
    for group in range(4):
        of_group = study.groups == group
        part = replace(
            study,
            differences=study.differences[of_group],
            evaluates=study.evaluates[of_group],
            groups=np.zeros(3, dtype=np.int64),
        )
        for mine, theirs in zip(found, person_means(part, answers[..., of_group]), strict=True):
            np.testing.assert_allclose(mine[:, group], theirs.mean(axis=1))


def test_one_group_is_tested_through_its_participants() -> None:
    study = replace(random_comparisons(60), groups=np.zeros(60, dtype=np.int64))
    power = simulate_power(study, np.full(3, 4.0), participants=30, simulations=10)
    assert power.mean_better > 0.9
    alone = simulate_power(study, np.full(3, 4.0), participants=1, simulations=10)
    assert alone.mean_better == 0


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
    """Brute force: 200,000 participants answer every trial; standard error below .002."""
    comparisons = random_comparisons(24)
    noise = np.array([3.0, 4.0, 5.0])
    power = simulate_power(comparisons, noise, simulations=2)
    rng = np.random.default_rng(0)
    for planted in range(3):
        p = choice_probabilities(comparisons.differences[:, planted], float(noise[planted]))
        prefers_2 = rng.random((200_000, 24)) < p
        agree = prefers_2[..., None] == (comparisons.differences > 0)
        np.testing.assert_allclose(power.accuracy[planted], agree.mean(axis=(0, 1)), atol=0.006)


def test_without_noise_the_planted_model_always_comes_first() -> None:
    power = simulate_power(random_comparisons(200), np.full(3, 1e-6), simulations=20)
    np.testing.assert_array_equal(power.first, 1)
    np.testing.assert_array_equal(np.diag(power.accuracy), 1)
    assert power.trials_needed(0.95) is not None


def test_models_that_agree_share_the_first_place_and_never_differ() -> None:
    same = random_comparisons(40)
    same = replace(same, differences=np.repeat(same.differences[:, :1], 3, axis=1))
    power = simulate_power(same, np.full(3, 4.0), simulations=50)
    np.testing.assert_allclose(power.first, 1 / 3)
    assert not power.better.any()
    assert power.mean_better == 0
    assert power.trials_needed(0.8) is None


def test_more_trials_groups_and_participants_give_more_power() -> None:
    large = random_comparisons(400)
    noise = np.full(3, 60.0)
    small = thin(large, 10, seed=1)
    assert len(small.differences) == 40
    assert np.bincount(small.groups).tolist() == [10] * 4

    def power(comparisons: TrialPreferences, **more: int) -> float:
        return simulate_power(comparisons, noise, simulations=60, **more).mean_better

    assert power(large, groups=12) > power(small, groups=12) + 0.1
    assert power(small, groups=12, participants=40) > power(small, groups=12, participants=2)
    assert power(large, groups=12) > power(large, groups=2)


def test_trials_are_taken_evenly_over_model_pairs() -> None:
    comparisons = replace(random_comparisons(40), strata=np.arange(40) // 4 % 5)
    kept = thin(comparisons, 5, seed=0)
    assert np.bincount(kept.strata, minlength=5).max() <= 6


def test_the_report_of_a_design() -> None:
    power = design_power(DESIGN.trials, scores(), simulations=20, participants=5)
    table = power_table(power)
    assert power.to_frame().to_dict("list") == table
    assert list(dict.fromkeys(table["scope"])) == [str(scope) for scope in Scope]
    assert len(table["model"]) == 6 * len(MODELS) ** 2
    assert set(table["significantly_better"]) == {""}  # no rate where nothing can be tested
    page = power_report(power).markdown()
    assert "4 groups of 5 participants" in page
    assert page.splitlines()[2].startswith("**With 4 groups nothing can be significant, whatever")
    assert page.count("cannot be tested with 4 groups") == sum(map(len, power.smaller.values())) + 6
    assert "| random-natural | 36 |" in page
    again = design_power(DESIGN.trials, scores(), simulations=20, participants=5)
    assert power_table(again) == table
    six = design_power(DESIGN.trials, scores(), simulations=2, participants=5, groups=6)
    assert (
        "**With 6 groups nothing can be significant unless 7 of the 10"
        in power_report(six).markdown()
    )
    assert power_table(six)["significantly_better"].count("") == 6 * len(MODELS)  # themselves
    alone = design_power(DESIGN.trials, scores(), simulations=2, participants=9, groups=1)
    assert "very items" in power_report(alone).markdown().splitlines()[2]


def test_simulated_people_agree_as_often_as_measured_ones_did_by_kind_of_trial() -> None:
    """Witness: ratings drawn with the calibrated noise, evaluated as `analyze` evaluates people."""
    found = preferences_by_scope(DESIGN.trials, scores())
    values = dict(zip(Ceilings().values, (0.7, 0.75, 0.8, 0.65, 0.9), strict=True))
    noise = calibrate(found, Ceilings(values, raters=6))
    assert not noise.unreached
    assert np.isfinite(noise.of_trials).all()
    rng = np.random.default_rng(0)
    for planted in range(len(MODELS)):
        signal = found.every.differences[:, planted]
        p = norm.cdf(signal / noise.of_trials[:, planted])
        for scope, ceiling in values.items():
            own = found.evaluates[scope][:, planted]
            ratings = np.where(rng.random((6, 20_000 // own.sum(), own.sum())) < p[own], 6.0, 1.0)
            assert accuracy_lower(ratings.reshape(6, -1)).mean() == pytest.approx(ceiling, abs=0.02)


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


def test_ceilings_that_ties_forbid_are_named() -> None:
    table = scores()
    table.log_probs[:, 0] = -40.0
    power = design_power(DESIGN.trials, table, simulations=2)
    assert {model for _, model in power.noise.unreached} == {MODELS[0]}
    assert f"{MODELS[0]} in random-natural" in power_report(power).markdown()


@pytest.mark.parametrize(("groups", "people"), [(9, 4), (1, 9), (6, 1), (4, 4)])
def test_what_tests_can_reach_is_what_the_clearest_answers_reach(groups: int, people: int) -> None:
    """Brute force: more and more tests with differences of one sign, those of most units first."""
    trials = random_comparisons(24)
    if groups == 1:
        trials = replace(trials, groups=np.zeros(24, dtype=np.int64))
    else:
        trials.evaluates[trials.groups == 2, 0] = False
    units = groups if groups > 1 else people
    lacking = [g for g in range(units) if groups > 1 and g % 4 == 2]
    without_first = [2, 4, 5]  # of the pairs 01, 02, 12, then the ceilings of 0, 1 and 2
    order = [*without_first, 0, 1, 3]
    tests = [place for place in order if people > 1 or place < 3]
    reached = family_reach(trials, groups, people, 0.05)
    assert reached.tests == len(tests)
    assert (reached.most_units, reached.fewest_units) == (units, units - len(lacking))
    for number in range(len(tests) + 1):
        differences = np.zeros((1, units, 6))
        differences[:, :, tests[:number]] = np.arange(1, units + 1)[:, None]
        differences[:, lacking, :2] = differences[:, lacking, 3] = np.nan
        found = discoveries(differences[:, :, sorted(tests)], 0.05).any()
        assert found == (reached.needed is not None and number >= reached.needed)


def test_the_noise_ceilings_of_a_pilot_are_read(tmp_path: Path) -> None:
    """Witness: the analysis itself."""
    made = simulate(groups=(4, 4), follow=0.9)
    found = analyze(made.trials, made.responses, made.scores, sampling=Sampling(samples=0))
    write_analysis(found, tmp_path, title="t")
    ceilings = read_ceilings(tmp_path)
    assert ceilings.raters == 4
    assert "model that people followed most" in ceilings.source
    for scope, value in ceilings.values.items():
        result = found.result(scope, ACCURACY)
        assert value == pytest.approx(next(x.lower for x in result.models if x.model == "a"))
    (tmp_path / "tables" / "models.csv").write_text("scope,measure\noverall,accuracy\n")
    with pytest.raises(InputError, match=r"models\.csv lacks the columns model, value, lower"):
        read_ceilings(tmp_path)


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
        simulate_power(random_comparisons(8), np.ones(3), groups=0)
    with pytest.raises(InputError, match="keeps 1 to 2 trials"):
        thin(random_comparisons(8), 3)
