"""Trials that are none of their condition, and roles that the scores contradict: all planted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from contstim.errors import InputError
from contstim.experiments.analysis.agreement import orientations
from contstim.experiments.analysis.ratings import gather
from contstim.items.stimuli import Condition, Kind, check_trials
from tests.experiments.analysis.simulation import Experiment, simulate

N, S1, S2, SHUFFLED = Kind.NATURAL, Kind.SYNTHETIC_1, Kind.SYNTHETIC_2, Kind.SHUFFLED
TARGETED = (
    Condition.NATURAL_CONTROVERSIAL,
    Condition.NATURAL_SYNTHETIC,
    Condition.SYNTHETIC_SYNTHETIC,
)


@pytest.fixture(scope="module")
def made() -> Experiment:
    return simulate(groups=(2, 2), each=1)


def refused(made: Experiment, condition: Condition, message: str, **change: Any) -> None:
    place = next(n for n, t in enumerate(made.trials) if t.condition is condition)
    trials = list(made.trials)
    trials[place] = replace(trials[place], **change)
    with pytest.raises(InputError, match=f"'{trials[place].trial_id}' is {condition}.*{message}"):
        gather(trials, made.responses, made.scores)


@pytest.mark.parametrize("condition", TARGETED)
@pytest.mark.parametrize("models", [("", ""), ("a", ""), ("", "b"), ("b", "b")])
def test_a_controversial_trial_names_two_models(
    made: Experiment, condition: Condition, models: tuple[str, str]
) -> None:
    message = f"two models.*{models[0]!r} and {models[1]!r}"
    refused(made, condition, message, model_1=models[0], model_2=models[1])


@pytest.mark.parametrize("condition", [Condition.RANDOM_NATURAL, Condition.CATCH])
@pytest.mark.parametrize("models", [("a", "b"), ("a", ""), ("", "b")])
def test_no_other_trial_names_a_model(
    made: Experiment, condition: Condition, models: tuple[str, str]
) -> None:
    refused(
        made, condition, "leave model_1 and model_2 empty", model_1=models[0], model_2=models[1]
    )


@pytest.mark.parametrize("condition", [c for c in Condition if c is not Condition.MINIMAL_PAIR])
def test_kinds_of_sentences_are_those_of_the_condition(
    made: Experiment, condition: Condition
) -> None:
    """Of all pairs of kinds only those pass that the definition of `Trial` names."""
    allowed = {
        Condition.NATURAL_CONTROVERSIAL: [(N, N)],
        Condition.NATURAL_SYNTHETIC: [(N, S1), (N, S2)],
        Condition.SYNTHETIC_SYNTHETIC: [(S1, S2)],
        Condition.RANDOM_NATURAL: [(N, N)],
        Condition.CATCH: [(N, SHUFFLED), (Kind.INSTRUCTION, Kind.INSTRUCTION)],
    }[condition]
    trial = next(t for t in made.trials if t.condition is condition)
    for kinds in ((one, two) for one in Kind for two in Kind):
        if kinds in allowed:
            check_trials([replace(trial, kind_1=kinds[0], kind_2=kinds[1])])
        else:
            message = f"are {kinds[0]} and {kinds[1]}"
            refused(made, condition, message, kind_1=kinds[0], kind_2=kinds[1])


def test_roles_that_the_scores_contradict_are_counted_by_condition(made: Experiment) -> None:
    """Witness: each trial by the words of `Trial`, sentence by sentence."""
    lookup = {
        (text, model): float(made.scores.log_probs[row, column])
        for row, text in enumerate(made.scores.sentences or ())
        for column, model in enumerate(made.scores.models)
    }
    wrong = dict.fromkeys(TARGETED, 0)
    for trial in made.trials:
        first, second = (
            lookup[trial.sentence_2, model] - lookup[trial.sentence_1, model] if model else 0.0
            for model in (trial.model_1, trial.model_2)
        )
        if trial.condition is Condition.NATURAL_SYNTHETIC:
            wrong[trial.condition] += (first if trial.kind_2 is S1 else second) >= 0
        elif trial.condition in TARGETED:
            wrong[trial.condition] += first <= 0 or second >= 0
    found = orientations(gather(made.trials, made.responses, made.scores))
    assert {condition: wrongly for condition, (_, wrongly) in found.items()} == wrong
    assert [trials for trials, _ in found.values()] == [6, 12, 6]
    assert 0 < wrong[Condition.NATURAL_SYNTHETIC] < 12
