"""responses.csv on disk."""

from __future__ import annotations

import csv
import math
from dataclasses import astuple, replace
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.experiments.responses import Response, read_responses, write_responses
from contstim.experiments.responses.table import FurtherColumns, response_columns
from contstim.tables import write_table

FULL = Response("5fa3", 2, "trial-1", 6, 2, 14, 1234.5)
BARE = Response("p002", 1, "trial-9", 0, 0, 0, math.nan)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_responses_come_back_with_what_was_not_recorded(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"responses{suffix}"
    write_responses(path, [FULL, BARE])
    full, bare = read_responses(path)
    assert full == FULL
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
    with pytest.warns(FurtherColumns, match=r"columns, which .*: age, native language\. ") as told:
        assert list(read_responses(path)) == people
    assert len(told) == 1
    assert str(path) in str(told[0].message)


def test_choice_is_the_side_of_the_scale() -> None:
    choices = [replace(FULL, rating=rating).choice for rating in range(7)]
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
