"""Artificial participants, against closed forms of their definition."""

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


def build_trials(n: int, groups: int = 1) -> tuple[Trial, ...]:
    return tuple(
        new_trial(f"t{g}-{i:04}", g, f"One {g} {i}.", f"Two {g} {i}.")
        for g in range(1, groups + 1)
        for i in range(n)
    )


def test_participants_answer_all_questions_except_texts() -> None:
    """The first choice has probability .9; numbers within the limits are equally likely."""
    questions = [
        Question("age", "before", "number", "Age?", False, lowest=18, highest=21),
        Question("home", "after", "choice", "Where?", False, ("here", "there", "nowhere")),
        Question("task", "check", "choice", "What?", False, ("a", "b"), "b"),
        Question("remarks", "after", "text", "Else?", True),
    ]
    n = 2000
    answers_by_person = [
        artificial.artificial_answers(questions, "x", number=k, seed=3) for k in range(1, n + 1)
    ]
    assert {tuple(answer.question for answer in answers) for answers in answers_by_person} == {
        ("age", "home", "remarks")
    }
    ages, homes, remarks = (
        Counter(answer.answer for answer in column)
        for column in zip(*answers_by_person, strict=True)
    )
    assert remarks == {"": n}
    shares = [homes[choice] / n for choice in questions[1].choices]
    assert shares == pytest.approx([0.9, 0.05, 0.05], abs=4 * np.sqrt(0.09 / n))
    assert [*map(int, sorted(ages))] == [18, 19, 20, 21]
    assert min(ages.values()) / n == pytest.approx(0.25, abs=4 * np.sqrt(0.1875 / n))


def test_choices_follow_the_model_given_noise_and_lapses() -> None:
    """P(choose as the model) = (1 - lapses) Φ(|difference| / noise) + lapses / 2."""
    trials, noise, lapses = build_trials(400), 7.0, 0.2
    differences = np.random.default_rng(0).normal(0, 8, len(trials))
    people = artificial.ArtificialParticipants(trials, differences, noise, lapses, 3)
    ratings = np.array([list(people.ratings(k).values()) for k in range(1, 201)])
    agreement = ((ratings > 3) == (differences > 0)).mean(axis=0)
    expected = (1 - lapses) * norm.cdf(np.abs(differences) / noise) + lapses / 2
    assert agreement.mean() == pytest.approx(expected.mean(), abs=4 * 0.5 / np.sqrt(ratings.size))
    assert np.corrcoef(agreement, expected)[0, 1] > 0.9


def test_lapses_are_uniform_and_zero_noise_makes_no_errors() -> None:
    trials = build_trials(600)
    differences = np.linspace(-20, 20, len(trials))
    lapsing = artificial.ArtificialParticipants(trials, differences, 4.0, 1.0, 0)
    counts = Counter(r for k in range(1, 21) for r in lapsing.ratings(k).values())
    assert [counts[r] / 12_000 for r in range(1, 7)] == pytest.approx([1 / 6] * 6, abs=0.02)
    exact = artificial.ArtificialParticipants(trials, differences, 0.0, 0.0, 0)
    ratings = exact.ratings(1).values()
    assert all((r > 3) == (d > 0) for r, d in zip(ratings, differences, strict=True))


def test_calibrated_noise_gives_the_stated_ceiling() -> None:
    """Ten raters for each trial; the ceiling is computed by `accuracy_lower`."""
    experiment = simulate(groups=(1, 1, 1, 1), each=40, conditions=[Condition.RANDOM_NATURAL])
    stimuli = (experiment.trials, experiment.scores)
    people = artificial.artificial_participants(*stimuli, "a", ceiling=0.8, seed=2)
    lower = []
    for group in people.groups:
        trial_ids = {trial.trial_id for trial in experiment.trials if trial.group == group}
        for first in range(1, 101, 10):
            ratings_by_person = [people.ratings(k) for k in range(first, first + 10)]
            answers = np.array([[r[t] for t in trial_ids] for r in ratings_by_person])
            lower.append(accuracy_lower(answers - people.scale.middle))
    assert float(np.mean(lower)) == pytest.approx(0.8, abs=0.02)


def test_simulated_experiment_is_complete_and_reproducible() -> None:
    experiment = simulate(groups=(1, 1, 1), each=1)
    stimuli = (experiment.trials, experiment.scores)
    people = artificial.artificial_participants(*stimuli, "c", lapses=0.05, seed=9)
    responses = artificial.simulate_responses(people, 7)
    report = check_responses(experiment.trials, responses)
    assert not report.errors
    group_by_participant = {response.participant: response.group for response in responses}
    assert Counter(group_by_participant.values()) == {1: 3, 2: 2, 3: 2}
    assert artificial.simulate_responses(people, 7) == responses
    assert artificial.simulate_responses(replace(people, seed=10), 7) != responses
    fewer = artificial.simulate_responses(people, 3)
    assert fewer == responses[: len(fewer)]
    sides = [response.left for response in responses]
    assert abs(sides.count(1) - sides.count(2)) <= 7 * len(Condition)


def test_participants_pass_catch_trials_without_scores() -> None:
    experiment = simulate(groups=(1,), each=1)
    other_trials = [trial for trial in experiment.trials if trial.condition != Condition.CATCH]
    scored_texts = {text for trial in other_trials for text in (trial.sentence_1, trial.sentence_2)}
    sentences = experiment.scores.sentences or ()
    row_by_text = {text: row for row, text in enumerate(sentences) if text in scored_texts}
    log_probs = experiment.scores.log_probs[[*row_by_text.values()]]
    scores = replace(experiment.scores, sentences=(*row_by_text,), log_probs=log_probs)
    people = artificial.artificial_participants(experiment.trials, scores, "a")
    assert len(admit(experiment.trials, artificial.simulate_responses(people, 5)).participants) == 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "nobody"}, "got 'nobody'"),
        ({"noise": -1.0}, "noise at least 0 nats"),
        ({"noise": np.nan}, "noise at least 0 nats"),
        ({"lapses": 1.5}, "from 0 to 1"),
        ({"ceiling": 0.3}, "No noise gives"),
        ({}, "Set the noise"),  # no trials to calibrate it
    ],
)
def test_invalid_participants_are_rejected(changes: dict[str, object], message: str) -> None:
    conditions = Condition if changes else [Condition.NATURAL_SYNTHETIC]
    experiment = simulate(groups=(1,), each=1, conditions=[*conditions])
    arguments = {"model": "a", **changes}
    with pytest.raises(InputError, match=message):
        artificial.artificial_participants(experiment.trials, experiment.scores, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("raters", [2, 3, 4, 5])
def test_lower_ceiling_is_the_mean_over_all_answers(raters: int) -> None:
    """Witness: all patterns of answers, weighted by probability; a tied majority counts half."""
    differences, noise = np.array([-3.0, 0.0, 0.5, 7.0]), 4.0
    total = 0.0
    for p in norm.cdf(differences / noise):
        for answers in product((0, 1), repeat=raters):
            weight = np.prod([p if a else 1 - p for a in answers])
            for person in range(raters):
                other_answers = np.delete(answers, person)
                majority = (np.sign(other_answers.mean() - 0.5) + 1) / 2
                agrees = 0.5 if majority == 0.5 else float(majority == answers[person])
                total += weight * agrees / raters / len(differences)
    assert artificial.lower_ceiling(differences, noise, raters) == pytest.approx(total, abs=1e-12)


@settings(max_examples=examples(15))
@given(st.floats(0.55, 0.95), st.integers(0, 99))
def test_lower_ceiling_inverts_calibrated_noise(ceiling: float, seed: int) -> None:
    differences = np.random.default_rng(seed).normal(0, 9, 300)
    noise = artificial.calibrate_noise(differences, ceiling)
    assert artificial.lower_ceiling(differences, noise, 10) == pytest.approx(ceiling, abs=1e-9)


@pytest.mark.parametrize("ceiling", [0.5, 1.0, 0.2])
def test_unreachable_ceilings_are_rejected(ceiling: float) -> None:
    with pytest.raises(InputError, match="noise"):
        artificial.calibrate_noise(np.array([1.0, -2.0]), ceiling)
