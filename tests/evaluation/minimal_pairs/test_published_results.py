"""People's answers and published accuracies, by hand."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.evaluation.minimal_pairs.published_results import (
    HumanAgreement,
    read_human_agreement,
    read_published_accuracies,
)
from tests.evaluation.minimal_pairs.blimp_files import write_rows

if TYPE_CHECKING:
    from pathlib import Path

CONDITIONS = ("x_1ans1", "x_1ans2", "attnchkans1", "y_1ans1", "y_1ans2")


def _assignment(
    answers: str, status: str = "Approved", english: str = "1", native: str = "1"
) -> dict[str, str]:
    """One worker's five choices, `1`, `2`, or a space for none."""
    row = {"AssignmentStatus": status, "Answer.english": english, "Answer.navtive": native}
    for i, (condition, answer) in enumerate(zip(CONDITIONS, answers, strict=True), start=1):
        row[f"Input.item_{i}_condition"] = condition
        row |= {f"Input.field_{i}_{side}": f"sentence {i} {side}" for side in (1, 2)}
        row[f"Answer.Choice{i}"] = f"{answer}. sentence" if answer.strip() else ""
    return row


def _write(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_agreement_counts_who_may_answer_and_what_was_answered(tmp_path: Path) -> None:
    rows = [
        _assignment("12212"),  # all right
        _assignment("12 1 ", english="0"),  # a native speaker; the last item without an answer
        _assignment("12121", native="NA"),  # fluent; both last ones wrong
        _assignment("22121", status="Rejected"),
        _assignment("22121", english="0", native="NA"),
    ]
    found = read_human_agreement(_write(tmp_path / "answers.csv", rows))
    assert found == {
        "x_1": HumanAgreement(individual=1.0, majorities=2, items=2, answers=6),
        "y_1": HumanAgreement(float(np.mean([2 / 3, 1 / 2])), majorities=1, items=2, answers=5),
    }


def test_what_is_no_table_of_answers_is_refused(tmp_path: Path) -> None:
    row = _assignment("11111")
    path = _write(tmp_path / "answers.csv", [row | {"Input.item_2_condition": "x_1"}])
    with pytest.raises(InputError, match="'x_1' names no paradigm and right answer"):
        read_human_agreement(path)
    del row["Answer.Choice3"]
    with pytest.raises(InputError, match=r"no column 'Answer\.Choice3'"):
        read_human_agreement(_write(path, [row]))


def test_published_averages_are_left_out(tmp_path: Path) -> None:
    rows = [
        {"UID": "x_1", "linguistics_term": "x", "a": 0.5, "b": 1},
        {"UID": "y_1", "linguistics_term": "y", "a": 0.25, "b": 0},
        {"UID": "overall", "linguistics_term": "x", "a": 0.99, "b": 0.99},
    ]
    path = write_rows(tmp_path / "summary.jsonl", rows)
    assert read_published_accuracies(path) == {
        "a": {"x_1": 0.5, "y_1": 0.25},
        "b": {"x_1": 1, "y_1": 0},
    }
    with pytest.raises(InputError, match="is not a number"):
        read_published_accuracies(write_rows(path, [rows[0] | {"a": "high"}]))
    with pytest.raises(InputError, match="no field 'UID'"):
        read_published_accuracies(write_rows(path, [{"a": 1}]))
