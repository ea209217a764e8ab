"""Answers that are choices, 1 and 2: read as such, or refused where nothing says what they are."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.experiments.responses.admission import admit, catch_scores
from contstim.experiments.responses.checks import Problem, check_responses
from contstim.experiments.responses.table import Response, read_responses, write_responses
from contstim.files.records import record_path
from contstim.files.tables import write_table
from contstim.items.scale import Scale
from contstim.items.stimuli import Condition, on_scale, read_trials, trial_columns
from tests.experiments.responses.experiment import make_responses, make_trials

TRIALS = make_trials()
CHOICE_TRIALS = on_scale(TRIALS, Scale.CHOICE)
RATED = make_responses(TRIALS, {"ann": 1, "bob": 1, "cleo": 2})
CHOICES = [replace(r, rating=1 + (r.rating > 3), scale=Scale.CHOICE) for r in RATED]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table of choices that has no record."""
    path = tmp_path / "responses.csv"
    write_responses(path, CHOICES)
    return path


def record(path: Path, **facts: object) -> None:
    record_path(path).write_text(json.dumps(facts))


def test_only_ones_and_twos_are_refused_where_nothing_names_the_scale(path: Path) -> None:
    with pytest.raises(InputError, match=r"responses\.csv are 1 or 2.*`scale`: choice.*confidence"):
        read_responses(path, TRIALS)
    record(path, simulated_participants=0)  # of a table that was imported before scales had names
    with pytest.raises(InputError, match="`scale`: choice"):
        read_responses(path)


def test_the_record_the_user_or_the_trials_name_the_scale(path: Path) -> None:
    assert list(read_responses(path, scale=Scale.CHOICE)) == CHOICES
    assert list(read_responses(path, CHOICE_TRIALS)) == CHOICES
    unsure = [replace(each, scale=Scale.CONFIDENCE) for each in CHOICES]
    assert list(read_responses(path, scale=Scale.CONFIDENCE)) == unsure
    record(path, scale="choice")
    assert list(read_responses(path, TRIALS)) == CHOICES
    record(path, scale="confidence")
    assert list(read_responses(path, TRIALS)) == unsure


@pytest.mark.parametrize("ratings", [[1, 1, 1], [1, 2, 3], [6, 1, 6], [2, 2, 5], [0, 1, 0]])
def test_other_tables_are_confidence_without_being_asked(
    tmp_path: Path, ratings: list[int]
) -> None:
    """Whoever always gave 1 prefers sentence_1 on either scale."""
    path = tmp_path / "old.csv"
    write_responses(path, [Response("p", 1, f"t{n}", r, 1, n, 1.0) for n, r in enumerate(ratings)])
    assert {response.scale for response in read_responses(path)} == {Scale.CONFIDENCE}


def test_what_contradicts_the_record_is_refused(path: Path) -> None:
    record(path, scale="choice")
    with pytest.raises(
        InputError, match=r"on the scale choice.*scale of the command is confidence"
    ):
        read_responses(path, scale=Scale.CONFIDENCE)
    record(path, scale="stars")
    with pytest.raises(InputError, match="no scale of confidence, choice, slider: 'stars'"):
        read_responses(path)
    with pytest.raises(InputError, match="others on the scale confidence"):
        admit(CHOICE_TRIALS, RATED)
    with pytest.raises(InputError, match="others on the scale confidence"):
        admit(TRIALS, [*CHOICES[1:], RATED[0]])


def test_catch_trials_ask_who_chose_the_shuffled_sentence() -> None:
    """On the other scale every choice, 1 or 2, would pass for sentence_1."""
    catch = [t.trial_id for t in TRIALS if t.group == 1 and t.condition is Condition.CATCH]
    guessing = [
        replace(r, rating=2) if r.participant == "bob" and r.trial_id in catch[:6] else r
        for r in CHOICES
    ]
    scores = catch_scores(TRIALS, guessing)
    assert (scores["ann"], scores["bob"]) == ((12, 12), (6, 12))
    assert admit(TRIALS, guessing).participants == ("ann", "cleo")


def test_a_three_is_no_choice() -> None:
    wrong = replace(CHOICES[0], rating=3)
    (finding,) = check_responses(CHOICE_TRIALS, [wrong, *CHOICES[1:]]).of(Problem.OUTSIDE_SCALE)
    assert finding.about == (f"{wrong.trial_id}: 3",)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_trials_that_ask_for_choices_say_so(tmp_path: Path, suffix: str) -> None:
    path, usual = tmp_path / f"trials{suffix}", tmp_path / "usual.csv"
    write_table(path, trial_columns(CHOICE_TRIALS))
    assert read_trials(path) == CHOICE_TRIALS
    write_table(usual, trial_columns(TRIALS))
    assert "scale" not in usual.read_text().splitlines()[0]
    assert {trial.scale for trial in read_trials(usual)} == {Scale.CONFIDENCE}
    write_table(path, trial_columns([*TRIALS[:3], *CHOICE_TRIALS[3:]]))
    with pytest.raises(InputError, match="several scales"):
        read_trials(path)
    with pytest.raises(InputError, match="but `scale` is confidence"):
        on_scale(CHOICE_TRIALS, Scale.CONFIDENCE)
