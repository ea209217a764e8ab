"""Pairs, triplets and trials on disk."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.optimization.selection import select_natural
from contstim.stimuli import (
    Condition,
    Kind,
    Trial,
    read_pairs,
    read_trials,
    write_pairs,
    write_trials,
)
from contstim.tables import write_table
from tests.optimization.tables import random_table


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_pairs_come_back_bit_for_bit(tmp_path: Path, suffix: str) -> None:
    pairs = select_natural(random_table(), per_pair=4).pairs
    write_pairs(tmp_path / f"pairs{suffix}", pairs)
    assert [asdict(p) for p in read_pairs(tmp_path / f"pairs{suffix}")] == list(map(asdict, pairs))


def test_columns_of_pairs_csv_are_the_contract(tmp_path: Path) -> None:
    write_pairs(tmp_path / "pairs.csv", [])
    assert (tmp_path / "pairs.csv").read_text() == (
        '"trial_id","model_1","model_2","sentence_1","sentence_2","row_1","row_2",'
        '"rank_1_model_1","rank_1_model_2","rank_2_model_1","rank_2_model_2"\n'
    )
    assert read_pairs(tmp_path / "pairs.csv") == ()


def test_malformed_pairs_are_named(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    write_pairs(path, select_natural(random_table(), per_pair=1).pairs)
    header, first, *rest = path.read_text().splitlines()
    path.write_text("\n".join([header.replace("row_2", "line_2"), first, *rest]))
    with pytest.raises(InputError, match="no table of pairs: it lacks row_2"):
        read_pairs(path)
    cells = first.split(",")
    path.write_text("\n".join([header, ",".join([*cells[:5], "second", *cells[6:]])]))
    with pytest.raises(InputError, match="row 0: 'second' under row_1 is no whole number"):
        read_pairs(path)


TRIAL = Trial(
    "trial-1",
    3,
    Condition.NATURAL_SYNTHETIC,
    "bigram",
    "gpt2",
    "She said “no”.",
    "She said 'never'.",
    Kind.NATURAL,
    Kind.SYNTHETIC_1,
    "triplet-1",
)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_trials_come_back_with_conditions_and_kinds(tmp_path: Path, suffix: str) -> None:
    write_trials(tmp_path / f"trials{suffix}", [TRIAL])
    (back,) = read_trials(tmp_path / f"trials{suffix}")
    assert back == TRIAL
    assert isinstance(back.condition, Condition)
    assert isinstance(back.kind_2, Kind)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_what_other_programs_write_is_read(tmp_path: Path, suffix: str) -> None:
    """Whole numbers as 3.0, and null (in CSV an empty cell) where there is no text."""
    cells = {name: [value] for name, value in asdict(TRIAL).items()}
    cells |= {"group": [3.0], "source_id": [None]}
    write_table(tmp_path / f"trials{suffix}", cells)
    assert read_trials(tmp_path / f"trials{suffix}") == (replace(TRIAL, source_id=""),)
    write_table(tmp_path / f"trials{suffix}", cells | {"group": [3.5]})
    with pytest.raises(InputError, match="under group is no whole number"):
        read_trials(tmp_path / f"trials{suffix}")


def test_columns_of_trials_csv_are_the_contract(tmp_path: Path) -> None:
    write_trials(tmp_path / "trials.csv", [])
    assert (tmp_path / "trials.csv").read_text() == (
        '"trial_id","group","condition","model_1","model_2","sentence_1","sentence_2",'
        '"kind_1","kind_2","source_id"\n'
    )


def test_an_unknown_condition_is_named_with_those_allowed(tmp_path: Path) -> None:
    path = tmp_path / "trials.csv"
    write_trials(path, [TRIAL])
    path.write_text(path.read_text().replace("natural-synthetic", "natural"))
    with pytest.raises(InputError, match=r"'natural' under condition is no condition \(natural-c"):
        read_trials(path)
