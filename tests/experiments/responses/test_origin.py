"""Answers of artificial participants stay marked, whatever file they go through."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from contstim.errors import InputError
from contstim.experiments.platforms.jspsych.reading import import_jspsych
from contstim.experiments.responses import (
    Response,
    admit,
    origin_of,
    read_responses,
    write_responses,
)
from contstim.tables import read_table, write_table
from tests.experiments.responses.experiment import make_responses, make_trials

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


def test_files_that_pandas_joins_keep_the_mark(tmp_path: Path) -> None:
    """Pandas writes True for a truth value, and an empty cell where one file lacked the column."""
    tables = []
    for name, responses in (("people", PEOPLE), ("robots", ROBOTS)):
        write_responses(tmp_path / f"{name}.csv", responses)
        tables.append(pd.read_csv(tmp_path / f"{name}.csv"))
    for order in (tables, tables[::-1]):
        pd.concat(order).to_csv(tmp_path / "both.csv", index=False)
        found = read_responses(tmp_path / "both.csv")
        assert {r.participant for r in found if r.simulated} == {"simulated-1"}
        assert origin_of(found).share == "1 of 3"


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_the_name_tells_where_somebody_has_deleted_the_column(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"responses{suffix}"
    write_responses(path, (*PEOPLE, *ROBOTS))
    columns = read_table(path)
    del columns["simulated"]
    write_table(path, columns)
    found = read_responses(path)
    assert origin_of(found).share == "1 of 3"
    assert found == (*PEOPLE, *ROBOTS)


def test_what_is_no_truth_value_is_named(tmp_path: Path) -> None:
    path = tmp_path / "responses.csv"
    write_responses(path, ROBOTS)
    path.write_text(path.read_text().replace('"true"', '"perhaps"', 1))
    with pytest.raises(InputError, match="row 0: 'perhaps' under simulated is not a truth value"):
        read_responses(path)


def test_people_and_artificial_participants_are_counted() -> None:
    assert origin_of(PEOPLE).warning == ""
    assert "no person answered. The only participant was" in origin_of(ROBOTS).warning
    assert origin_of([*PEOPLE, *ROBOTS]).warning.endswith("the other 2 are people.")
    assert origin_of([PEOPLE[0], *ROBOTS]).warning.endswith("the other one is a person.")
    mixed = admit(TRIALS, (*PEOPLE, *ROBOTS)).origin
    assert "1 of 3 participants were simulated; the other 2 are people" in mixed.warning
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
