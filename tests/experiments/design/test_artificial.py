"""Artificial participants against what follows from their definition in closed form."""

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from contstim.errors import InputError
from contstim.experiments.analysis.measures import accuracy_lower
from contstim.experiments.design import artificial
from contstim.experiments.responses.admission import admit
from contstim.experiments.responses.checks import check_responses
from contstim.experiments.responses.questionnaire import Question
from contstim.items.stimuli import Condition, Trial
from tests.examples import examples
from tests.experiments.analysis.simulation import simulate
from tests.experiments.stimuli import new_trial


def design(n: int, groups: int = 1) -> tuple[Trial, ...]:
    return tuple(
        new_trial(f"t{g}-{i:04}", g, f"One {g} {i}.", f"Two {g} {i}.")
        for g in range(1, groups + 1)
        for i in range(n)
    )


def test_people_answer_questions_of_every_kind_but_in_words() -> None:
    """Of nine in ten the first choice is theirs; any number within the limits is as likely."""
    asked = [
        Question("age", "before", "number", "Age?", False, lowest=18, highest=21),
        Question("home", "after", "choice", "Where?", False, ("here", "there", "nowhere")),
        Question("task", "check", "choice", "What?", False, ("a", "b"), "b"),
        Question("remarks", "after", "text", "Else?", True),
    ]
    n = 2000
    told = [artificial.artificial_answers(asked, "x", number=k, seed=3) for k in range(1, n + 1)]
    assert {tuple(each.question for each in one) for one in told} == {("age", "home", "remarks")}
    ages, homes, remarks = (
        Counter(each.answer for each in column) for column in zip(*told, strict=True)
    )
    assert remarks == {"": n}
    shares = [homes[each] / n for each in asked[1].choices]
    assert shares == pytest.approx([0.9, 0.05, 0.05], abs=4 * np.sqrt(0.09 / n))
    assert [*map(int, sorted(ages))] == [18, 19, 20, 21]
    assert min(ages.values()) / n == pytest.approx(0.25, abs=4 * np.sqrt(0.1875 / n))


def test_choices_follow_the_model_as_often_as_noise_and_lapses_let_them() -> None:
    """P(choose as the model) = (1 - lapses) Φ(|difference| / noise) + lapses / 2."""
    trials, noise, lapses = design(400), 7.0, 0.2
    differences = np.random.default_rng(0).normal(0, 8, len(trials))
    people = artificial.ArtificialParticipants(trials, differences, noise, lapses, 3)
    rated = np.array([list(people.ratings(k).values()) for k in range(1, 201)])
    agreed = ((rated > 3) == (differences > 0)).mean(axis=0)
    expected = (1 - lapses) * norm.cdf(np.abs(differences) / noise) + lapses / 2
    assert agreed.mean() == pytest.approx(expected.mean(), abs=4 * 0.5 / np.sqrt(rated.size))
    assert np.corrcoef(agreed, expected)[0, 1] > 0.9


def test_only_lapses_spread_evenly_over_all_ratings_and_no_noise_means_no_mistake() -> None:
    trials = design(600)
    differences = np.linspace(-20, 20, len(trials))
    lapsing = artificial.ArtificialParticipants(trials, differences, 4.0, 1.0, 0)
    counts = Counter(r for k in range(1, 21) for r in lapsing.ratings(k).values())
    assert [counts[r] / 12_000 for r in range(1, 7)] == pytest.approx([1 / 6] * 6, abs=0.02)
    exact = artificial.ArtificialParticipants(trials, differences, 0.0, 0.0, 0)
    assert all(
        (r > 3) == (d > 0) for r, d in zip(exact.ratings(1).values(), differences, strict=True)
    )


def test_calibrated_noise_gives_the_stated_ceiling() -> None:
    """Ten raters of each trial, and the ceiling computed by `accuracy_lower`."""
    made = simulate(groups=(1, 1, 1, 1), each=40, conditions=[Condition.RANDOM_NATURAL])
    people = artificial.artificial_participants(made.trials, made.scores, "a", ceiling=0.8, seed=2)
    lower = []
    for group in people.groups:
        own = {trial.trial_id for trial in made.trials if trial.group == group}
        for first in range(1, 101, 10):
            rated = [people.ratings(k) for k in range(first, first + 10)]
            answers = np.array([[r[t] for t in own] for r in rated])
            lower.append(accuracy_lower(answers - people.scale.middle))
    assert float(np.mean(lower)) == pytest.approx(0.8, abs=0.02)


def test_a_simulated_experiment_is_complete_balanced_and_reproducible() -> None:
    made = simulate(groups=(1, 1, 1), each=1)
    people = artificial.artificial_participants(made.trials, made.scores, "c", lapses=0.05, seed=9)
    responses = artificial.simulate_responses(people, 7)
    report = check_responses(made.trials, responses)
    assert not report.errors
    names = {one.participant: one.group for one in responses}
    assert Counter(names.values()) == {1: 3, 2: 2, 3: 2}
    assert artificial.simulate_responses(people, 7) == responses
    assert artificial.simulate_responses(replace(people, seed=10), 7) != responses
    fewer = artificial.simulate_responses(people, 3)
    assert fewer == responses[: len(fewer)]
    sides = [one.left for one in responses]
    assert abs(sides.count(1) - sides.count(2)) <= 7 * len(Condition)


def test_attentive_participants_pass_catch_trials_that_have_no_scores() -> None:
    made = simulate(groups=(1,), each=1)
    others = [trial for trial in made.trials if trial.condition != Condition.CATCH]
    shown = {text for trial in others for text in (trial.sentence_1, trial.sentence_2)}
    sentences = made.scores.sentences or ()
    kept = {text: row for row, text in enumerate(sentences) if text in shown}
    log_probs = made.scores.log_probs[[*kept.values()]]
    scores = replace(made.scores, sentences=(*kept,), log_probs=log_probs)
    people = artificial.artificial_participants(made.trials, scores, "a")
    assert len(admit(made.trials, artificial.simulate_responses(people, 5)).participants) == 5


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"model": "nobody"}, "got 'nobody'"),
        ({"noise": -1.0}, "noise at least 0 nats"),
        ({"noise": np.nan}, "noise at least 0 nats"),
        ({"lapses": 1.5}, "from 0 to 1"),
        ({"ceiling": 0.3}, "No noise gives"),
        ({}, "Set the noise"),  # where nothing calibrates it
    ],
)
def test_impossible_people_are_refused(wrong: dict[str, object], message: str) -> None:
    conditions = Condition if wrong else [Condition.NATURAL_SYNTHETIC]
    made = simulate(groups=(1,), each=1, conditions=[*conditions])
    asked = {"model": "a", **wrong}
    with pytest.raises(InputError, match=message):
        artificial.artificial_participants(made.trials, made.scores, **asked)  # type: ignore[arg-type]


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
    assert artificial.lower_ceiling(differences, noise, raters) == pytest.approx(total, abs=1e-12)


@settings(max_examples=examples(15))
@given(st.floats(0.55, 0.95), st.integers(2, 12), st.integers(0, 99))
def test_calibrated_noise_has_the_stated_ceiling(ceiling: float, raters: int, seed: int) -> None:
    differences = np.random.default_rng(seed).normal(0, 9, 300)
    noise = artificial.calibrate_noise(differences, ceiling, raters=raters)
    assert artificial.lower_ceiling(differences, noise, raters) == pytest.approx(ceiling, abs=1e-9)


@pytest.mark.parametrize(("ceiling", "raters"), [(0.5, 10), (1.0, 10), (0.2, 10), (0.7, 1)])
def test_ceilings_that_no_noise_gives_are_refused(ceiling: float, raters: int) -> None:
    with pytest.raises(InputError, match="noise"):
        artificial.calibrate_noise(np.array([1.0, -2.0]), ceiling, raters=raters)
