"""responses.csv on disk."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import astuple, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import InputError
from contstim.experiments.platforms.jspsych.reading import import_jspsych
from contstim.experiments.responses.admission import admit
from contstim.experiments.responses.table import (
    APOSTROPHE,
    NO_BREAK_SPACE,
    UNRATED,
    Response,
    escape_formula,
    origin_of,
    read_responses,
    response_columns,
    unescape_formula,
    write_responses,
)
from contstim.files.tables import write_table
from tests.experiments.responses.experiment import make_responses, make_trials

FULL = Response("5fa3", 2, "trial-1", 6, 2, 14, 1234.5)
BARE = Response("p002", 1, "trial-9", UNRATED, 0, 0, math.nan)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_responses_come_back_with_what_was_not_recorded(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"responses{suffix}"
    at_once = replace(FULL, rt_ms=0.0)  # of a reaction time, 0 is a number
    write_responses(path, [FULL, at_once, BARE])
    full, instant, bare = read_responses(path)
    assert (full, instant) == (FULL, at_once)
    assert math.isnan(bare.rt_ms)
    assert astuple(replace(bare, rt_ms=0)) == astuple(replace(BARE, rt_ms=0))


def test_columns_are_the_contract_and_unknown_cells_are_empty(tmp_path: Path) -> None:
    path = tmp_path / "responses.csv"
    write_responses(path, [BARE])
    with path.open(encoding="utf-8", newline="") as file:
        header, row = csv.reader(file)
    assert header == ["participant", "group", "trial_id", "rating", "left", "position", "rt_ms"]
    assert row == ["p002", "1", "trial-9", "", "", "", ""]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_further_columns_are_named(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"responses{suffix}"
    people = [replace(FULL, participant=f"p{number}") for number in range(2)]
    write_table(
        path, {"age": ["31", "24"], **response_columns(people), "native language": ["", "x"]}
    )
    with pytest.warns(UserWarning, match=r"columns, which .*: age, native language\.") as told:
        assert list(read_responses(path)) == people
    assert len(told) == 1
    assert str(path) in str(told[0].message)


def test_choice_is_the_side_of_the_scale() -> None:
    choices = [replace(FULL, rating=rating).choice for rating in (UNRATED, *range(1, 7))]
    assert choices == [0, 1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ('"p1",1,"t",2.5,1,1,900', "row 0: '2.5' under rating is not a whole number"),
        ('"p1",1,"t",often,1,1,900', "'often' under rating"),
        ('"p1",,"t",2,1,1,900', "'' under group is not a whole number"),
        ('"",1,"t",2,1,1,900', "'' under participant is not the name of a participant"),
        ('"p1",1,"t",2,1,1,inf', "'inf' under rt_ms is not a number"),
    ],
)
def test_what_is_no_response_is_named(tmp_path: Path, cells: str, message: str) -> None:
    path = tmp_path / "responses.csv"
    path.write_text(f"participant,group,trial_id,rating,left,position,rt_ms\n{cells}\n")
    with pytest.raises(InputError, match=message):
        read_responses(path)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    path = tmp_path / "responses.csv"
    path.write_text("participant,group,trial,rating,left,position,rt_ms\np,1,t,2,1,1,9\n")
    with pytest.raises(InputError, match="not a table of responses: it lacks trial_id"):
        read_responses(path)


TRIALS = make_trials(1)
PEOPLE = tuple(make_responses(TRIALS, {"p1": 1, "p2": 1}))
ROBOTS = tuple(replace(r, simulated=True) for r in make_responses(TRIALS, {"simulated-1": 1}))


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_the_mark_comes_back_and_people_need_none(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"responses{suffix}"
    for responses in (PEOPLE, ROBOTS, (*PEOPLE, *ROBOTS)):
        write_responses(path, responses)
        assert read_responses(path) == responses
    write_responses(path, PEOPLE)
    assert b"simulated" not in path.read_bytes()


def test_what_is_no_truth_value_is_named(tmp_path: Path) -> None:
    path = tmp_path / "responses.csv"
    write_responses(path, ROBOTS)
    path.write_text(path.read_text().replace('"true"', '"perhaps"', 1))
    with pytest.raises(InputError, match="row 0: 'perhaps' under simulated is not a truth value"):
        read_responses(path)


def test_people_and_artificial_participants_are_counted() -> None:
    assert origin_of(PEOPLE).warning == ""
    assert "1 of 1 participants were simulated" in origin_of(ROBOTS).warning
    mixed = admit(TRIALS, (*PEOPLE, *ROBOTS)).origin
    assert "participants: 1 of 3 participants were simulated." in mixed.warning
    half = [*PEOPLE, replace(PEOPLE[0], simulated=True)]
    assert origin_of(half).simulated == 1  # a mark on any answer counts


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_what_a_page_gave_by_itself_is_imported_as_such(tmp_path: Path, kind: str) -> None:
    def row(response: Response) -> dict[str, object]:
        names = ("participant", "trial_id", "rating", "left", "position", "rt_ms")
        marked = "true" if response.simulated else ""
        return {**{name: getattr(response, name) for name in names}, "simulated": marked}

    rows = [row(response) for response in (*PEOPLE, *ROBOTS)]
    path = tmp_path / f"data.{kind}"
    if kind == "json":
        path.write_text(json.dumps(rows))
    else:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, rows[0])
        writer.writeheader()
        writer.writerows(rows)
        path.write_text(text.getvalue())
    found = import_jspsych([path], TRIALS)
    assert {r.participant for r in found.responses if r.simulated} == {"simulated-1"}


texts = st.text(st.sampled_from("'\N{NO-BREAK SPACE}=+-@\t\r\n＝＋－＠a1 (\"")) | st.text()
marks = st.sampled_from((APOSTROPHE, NO_BREAK_SPACE))


@given(texts, marks)
def test_what_is_escaped_begins_like_no_formula_and_is_given_back(text: str, mark: str) -> None:
    assert not escape_formula(text, mark).startswith(
        ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
    )
    assert unescape_formula(escape_formula(text, mark), mark) == text


def test_a_table_holds_no_formula_and_reads_back(tmp_path: Path) -> None:
    names = ("=1+1", "'=1+1", "-5", "@a", "\t=1", "ordinary")
    rows = tuple(Response(name, 1, name, 3, 1, 1, 5.0) for name in names)
    write_responses(tmp_path / "responses.csv", rows)
    with (tmp_path / "responses.csv").open(newline="", encoding="utf-8") as file:
        cells = [row[0] for row in csv.reader(file)][1:]
    assert cells == ["'=1+1", "''=1+1", "'-5", "'@a", "'\t=1", "ordinary"]
    assert read_responses(tmp_path / "responses.csv") == rows
