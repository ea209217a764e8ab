"""Tables of responses on disk, and their scales."""

import csv
import json
import math
from dataclasses import astuple, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import InputError
from contstim.experiments.responses import table
from contstim.experiments.responses.admission import admit
from contstim.files.records import record_path
from contstim.files.tables import write_table
from contstim.items.scale import Scale
from contstim.items.stimuli import Condition, on_scale, read_trials, trial_columns
from tests.experiments.responses.experiment import make_responses, make_trials

FULL = table.Response("5fa3", 2, "trial-1", 6, 2, 14, 1234.5)
UNRATED_RESPONSE = table.Response("p002", 1, "trial-9", table.UNRATED, 0, 0, math.nan)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_responses_are_read_with_missing_values(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"responses{suffix}"
    at_once = replace(FULL, rt_ms=0.0)  # 0 is a valid reaction time
    table.write_responses(path, [FULL, at_once, UNRATED_RESPONSE])
    full, instant, unrated = table.read_responses(path)
    assert (full, instant) == (FULL, at_once)
    assert math.isnan(unrated.rt_ms)
    assert astuple(replace(unrated, rt_ms=0)) == astuple(replace(UNRATED_RESPONSE, rt_ms=0))


def test_columns_are_fixed_and_unknown_cells_empty(tmp_path: Path) -> None:
    path = tmp_path / "responses.csv"
    table.write_responses(path, [UNRATED_RESPONSE])
    with path.open(encoding="utf-8", newline="") as file:
        header, row = csv.reader(file)
    assert header == ["participant", "group", "trial_id", "rating", "left", "position", "rt_ms"]
    assert row == ["p002", "1", "trial-9", "", "", "", ""]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_additional_columns_give_a_warning(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"responses{suffix}"
    rows = [replace(FULL, participant=f"p{number}") for number in range(2)]
    write_table(
        path, {"age": ["31", "24"], **table.response_columns(rows), "native language": ["", "x"]}
    )
    with pytest.warns(UserWarning, match=r"columns that .*: age, native language\.") as warnings:
        assert list(table.read_responses(path)) == rows
    assert len(warnings) == 1
    assert str(path) in str(warnings[0].message)


def test_choice_is_the_preferred_sentence() -> None:
    choices = [replace(FULL, rating=rating).choice for rating in (table.UNRATED, *range(1, 7))]
    assert choices == [0, 1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ('"p1",1,"t",2.5,1,1,900', "row 0: '2.5' under rating is not a whole number"),
        ('"p1",1,"t",often,1,1,900', "'often' under rating"),
        ('"p1",,"t",2,1,1,900', "'' under group is not a whole number"),
        ('"",1,"t",2,1,1,900', "'' under participant is not the name of a participant"),
        ('"p1",1,"t",2,1,1,inf', "'inf' under rt_ms is not a number"),
        ('"p1",1,"t",2,1,1,9,"perhaps"', "row 0: 'perhaps' under simulated is not a truth value"),
    ],
)
def test_invalid_cells_and_columns_raise_errors(tmp_path: Path, cells: str, message: str) -> None:
    path = tmp_path / "responses.csv"
    header = "participant,group,trial_id,rating,left,position,rt_ms"
    header += ",simulated" if "perhaps" in cells else ""
    path.write_text(f"{header}\n{cells}\n")
    with pytest.raises(InputError, match=message):
        table.read_responses(path)
    path.write_text(f"{header.replace('trial_id', 'trial')}\n{cells}\n")
    with pytest.raises(InputError, match="not a table of responses: it lacks trial_id"):
        table.read_responses(path)


MIXED_TRIALS = make_trials(1)
PEOPLE = tuple(make_responses(MIXED_TRIALS, {"p1": 1, "p2": 1}))
ROBOTS = tuple(replace(r, simulated=True) for r in make_responses(MIXED_TRIALS, {"simulated-1": 1}))


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_simulated_column_is_written_only_if_needed(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"responses{suffix}"
    for responses in (PEOPLE, ROBOTS, (*PEOPLE, *ROBOTS)):
        table.write_responses(path, responses)
        assert table.read_responses(path) == responses
    table.write_responses(path, PEOPLE)
    assert b"simulated" not in path.read_bytes()


def test_origin_counts_simulated_participants() -> None:
    assert table.origin_of(PEOPLE).warning == ""
    assert "1 of 1 participants were simulated" in table.origin_of(ROBOTS).warning
    mixed = admit(MIXED_TRIALS, (*PEOPLE, *ROBOTS)).origin
    assert "participants: 1 of 3 participants were simulated." in mixed.warning
    responses = [*PEOPLE, replace(PEOPLE[0], simulated=True)]
    assert table.origin_of(responses).simulated == 1  # one marked response suffices


texts = st.text(st.sampled_from("'\N{NO-BREAK SPACE}=+-@\t\r\n＝＋－＠a1 (\"")) | st.text()
marks = st.sampled_from((table.APOSTROPHE, table.NO_BREAK_SPACE))


@given(texts, marks)
def test_escaped_text_is_no_formula_and_can_be_unescaped(text: str, mark: str) -> None:
    assert not table.escape_formula(text, mark).startswith(
        ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
    )
    assert table.unescape_formula(table.escape_formula(text, mark), mark) == text


def test_names_like_formulas_are_escaped_in_tables(tmp_path: Path) -> None:
    names = ("=1+1", "'=1+1", "-5", "@a", "\t=1", "ordinary")
    rows = tuple(table.Response(name, 1, name, 3, 1, 1, 5.0) for name in names)
    table.write_responses(tmp_path / "responses.csv", rows)
    with (tmp_path / "responses.csv").open(newline="", encoding="utf-8") as file:
        cells = [row[0] for row in csv.reader(file)][1:]
    assert cells == ["'=1+1", "''=1+1", "'-5", "'@a", "'\t=1", "ordinary"]
    assert table.read_responses(tmp_path / "responses.csv") == rows


TRIALS = make_trials()
CHOICE_TRIALS = on_scale(TRIALS, Scale.CHOICE)
RATED = make_responses(TRIALS, {"ann": 1, "bob": 1, "cleo": 2})
CHOSEN = [replace(r, rating=1 + (r.rating > 3), scale=Scale.CHOICE) for r in RATED]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table of choices without a record."""
    path = tmp_path / "responses.csv"
    table.write_responses(path, CHOSEN)
    return path


def write_record(path: Path, **facts: object) -> None:
    record_path(path).write_text(json.dumps(facts))


def test_ratings_of_1_and_2_without_a_scale_raise_an_error(path: Path) -> None:
    with pytest.raises(InputError, match=r"responses\.csv are 1 or 2.*`scale`: choice.*confidence"):
        table.read_responses(path, TRIALS)
    write_record(path, simulated_participants=0)  # as in older imported tables
    with pytest.raises(InputError, match="`scale`: choice"):
        table.read_responses(path)


def test_record_option_or_trials_give_the_scale(path: Path) -> None:
    assert list(table.read_responses(path, scale=Scale.CHOICE)) == CHOSEN
    assert list(table.read_responses(path, CHOICE_TRIALS)) == CHOSEN
    confidence_responses = [replace(response, scale=Scale.CONFIDENCE) for response in CHOSEN]
    assert list(table.read_responses(path, scale=Scale.CONFIDENCE)) == confidence_responses
    write_record(path, scale="choice")
    assert list(table.read_responses(path, TRIALS)) == CHOSEN
    write_record(path, scale="confidence")
    assert list(table.read_responses(path, TRIALS)) == confidence_responses


@pytest.mark.parametrize("ratings", [[1, 1, 1], [1, 2, 3], [6, 1, 6], [2, 2, 5], [0, 1, 0]])
def test_other_ratings_are_confidence_by_default(tmp_path: Path, ratings: list[int]) -> None:
    """A rating of 1 prefers sentence_1 on either scale."""
    original = [table.Response("p", 1, f"t{n}", r, 1, n, 1.0) for n, r in enumerate(ratings)]
    table.write_responses(tmp_path / "old.csv", original)
    responses = table.read_responses(tmp_path / "old.csv")
    assert {response.scale for response in responses} == {Scale.CONFIDENCE}


def test_contradictory_scales_raise_errors(path: Path) -> None:
    write_record(path, scale="choice")
    with pytest.raises(InputError, match=r"on the scale choice.*of the command is confidence"):
        table.read_responses(path, scale=Scale.CONFIDENCE)
    write_record(path, scale="stars")
    with pytest.raises(InputError, match="must be one of confidence, choice, slider, got 'stars'"):
        table.read_responses(path)
    with pytest.raises(InputError, match=r"must have one scale, got .*\bconfidence\b"):
        admit(CHOICE_TRIALS, RATED)
    with pytest.raises(InputError, match=r"must have one scale, got .*\bconfidence\b"):
        admit(TRIALS, [*CHOSEN[1:], RATED[0]])


def test_catch_trials_use_the_scale_of_choices() -> None:
    """On the confidence scale, choices 1 and 2 would both prefer sentence_1."""
    catch = [t.trial_id for t in TRIALS if t.group == 1 and t.condition is Condition.CATCH]
    responses = [
        replace(r, rating=2) if r.participant == "bob" and r.trial_id in catch[:6] else r
        for r in CHOSEN
    ]
    admitted = admit(TRIALS, responses)
    assert admitted.excluded == {"bob": "6 of 12 catch trials right, 11 are required"}
    assert admitted.participants == ("ann", "cleo")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_tables_of_trials_store_the_scale(tmp_path: Path, suffix: str) -> None:
    path, confidence_path = tmp_path / f"trials{suffix}", tmp_path / "usual.csv"
    write_table(path, trial_columns(CHOICE_TRIALS))
    assert read_trials(path) == CHOICE_TRIALS
    write_table(confidence_path, trial_columns(TRIALS))
    assert "scale" not in confidence_path.read_text().splitlines()[0]
    assert {trial.scale for trial in read_trials(confidence_path)} == {Scale.CONFIDENCE}
    write_table(path, trial_columns([*TRIALS[:3], *CHOICE_TRIALS[3:]]))
    with pytest.raises(InputError, match="several scales"):
        read_trials(path)
    with pytest.raises(InputError, match="but `scale` is confidence"):
        on_scale(CHOICE_TRIALS, Scale.CONFIDENCE)
