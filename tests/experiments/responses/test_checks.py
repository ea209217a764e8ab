"""Checks of responses against trials: each planted problem is reported."""

from dataclasses import replace
from typing import Any

import pytest

from contstim.errors import InputError
from contstim.experiments.responses.checks import Problem, ResponseFinding, check_responses
from contstim.experiments.responses.table import UNRATED
from contstim.items.scale import Scale
from contstim.items.stimuli import on_scale
from tests.experiments.responses.experiment import make_responses, make_trials

TRIALS = make_trials()
PEOPLE = {"ann": 1, "bob": 1, "cleo": 2}
RESPONSES = make_responses(TRIALS, PEOPLE)


def test_complete_experiment_has_no_findings() -> None:
    report = check_responses(TRIALS, RESPONSES)
    assert report.findings == ()
    assert report.participants == ("ann", "bob", "cleo")
    assert "every participant rated every trial" in str(report)
    report.raise_errors()


def test_duplicate_responses_and_trial_ids_raise_errors() -> None:
    duplicate = replace(RESPONSES[3], rating=1)
    report = check_responses(TRIALS, [*RESPONSES, duplicate])
    assert report.findings == (ResponseFinding(Problem.DUPLICATE, "ann", (duplicate.trial_id,)),)
    with pytest.raises(InputError, match=f"ann rated the same trial.*{duplicate.trial_id}"):
        report.raise_errors()
    with pytest.raises(InputError, match="'trial-1-0' is in the table of trials twice"):
        check_responses([*TRIALS, TRIALS[0]], RESPONSES)


@pytest.mark.parametrize(
    ("scale", "rating"),
    [(Scale.CONFIDENCE, 7), (Scale.CONFIDENCE, -2), (Scale.CONFIDENCE, 12), (Scale.CHOICE, 3)],
)
def test_rating_outside_the_scale_raises_error(scale: Scale, rating: int) -> None:
    responses = [replace(r, rating=1 + n % 2, scale=scale) for n, r in enumerate(RESPONSES)]
    wrong = replace(responses[0], rating=rating)
    report = check_responses(on_scale(TRIALS, scale), [wrong, *responses[1:]])
    (finding,) = report.of(Problem.OUTSIDE_SCALE)
    assert finding.about == (f"{wrong.trial_id}: {rating}",)
    with pytest.raises(InputError, match=r"(?s)\(1 problem\).*outside the scale"):
        report.raise_errors()


def test_missing_rating_is_reported_without_error() -> None:
    missing = replace(RESPONSES[0], rating=UNRATED)
    report = check_responses(TRIALS, [missing, *RESPONSES[1:]])
    expected = {(Problem.NO_RATING, "ann"), (Problem.UNFINISHED, "ann")}
    assert {(f.problem, f.participant) for f in report.findings} == expected
    report.raise_errors()


@pytest.mark.parametrize("rating", [1, 6])
def test_constant_ratings_are_reported_without_error(rating: int) -> None:
    responses = [replace(r, rating=rating) if r.participant == "bob" else r for r in RESPONSES]
    report = check_responses(TRIALS, responses)
    assert report.findings == (ResponseFinding(Problem.ONE_RATING, "bob", (str(rating),)),)
    assert "bob gave the same rating on every trial" in str(report)
    report.raise_errors()


def test_unrated_trials_are_listed() -> None:
    responses = [r for n, r in enumerate(RESPONSES) if r.participant != "bob" or n % 2]
    (finding,) = check_responses(TRIALS, responses).findings
    rated_ids = {r.trial_id for r in responses if r.participant == "bob"}
    assert (finding.problem, finding.participant) == (Problem.UNFINISHED, "bob")
    assigned_ids = {t.trial_id for t in TRIALS if t.group == 1}
    assert set(finding.about) == assigned_ids - rated_ids
    assert len(assigned_ids) - len(rated_ids) == len(assigned_ids) // 2


@pytest.mark.parametrize(
    ("change", "kept", "expected"),
    [
        ({"trial_id": "trial-of-another-study"}, 0, {Problem.UNKNOWN_TRIAL}),
        ({"group": 2}, 1, {Problem.TWO_GROUPS, Problem.OTHER_GROUP, Problem.UNFINISHED}),
        ({"left": 3}, 1, {Problem.IMPOSSIBLE_SIDE}),
    ],
)
def test_contradictions(change: dict[str, Any], kept: int, expected: set[Problem]) -> None:
    """The wrong response replaces the first one, or is added."""
    wrong = replace(RESPONSES[0], **change)
    report = check_responses(TRIALS, [wrong, *RESPONSES[kept:]]).findings
    assert {(f.problem, f.participant) for f in report} == {(p, "ann") for p in expected}
