"""Questions to participants beside the trials, such as age, and what they answered."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.experiments.responses.table import APOSTROPHE, cells_of, unescape_formula
from contstim.tables import read_csv, write_table
from contstim.wording import repeated

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

# By kind, the form of the column options: choices, lowest and highest, nothing
_OPTIONS = {"choice": r"[^|]+(\|[^|]+)+", "number": r"\d+\|\d+", "text": ""}
_WHEN = {"before": ("choice", "number", "text"), "check": ("choice",)}
_WHEN["after"] = _WHEN["before"]


def read_questions(path: Path) -> list[dict[str, str]]:
    """The rows of a table of questions.

    Its columns are name; when (before the instructions, after the last trial, or as a check of the
    instructions); kind (choice, number, text); question; options: of a choice with `|` between
    them, in a check the right one with `*` before it, of a number the lowest and the highest, such
    as `18|99`; and, where not all must be answered, optional.

    Raises:
        InputError: the table cannot be read, or a row is no question; says why.
    """
    table = read_csv(path)
    if lacking := {"name", "when", "kind", "question", "options"} - table.keys():
        raise InputError(f"{path} lacks the columns {', '.join(sorted(lacking))}.")
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    for n, row in enumerate(rows):
        needs = {
            "when": row["when"] in _WHEN,
            "kind": row["kind"] in _WHEN.get(row["when"], _OPTIONS),
            "options": re.fullmatch(_OPTIONS.get(row["kind"], ""), row["options"])
            and (row["when"] != "check" or row["options"].count("*") == 1),
            "question": row["question"].strip(),
            "name": re.fullmatch(r"[A-Za-z]\w*", row["name"]),
        }
        for column in (column for column, fits in needs.items() if not fits):
            raise InputError(
                f"{path}, row {n}: {row[column]!r} is no {column} here. `when` is before, after or "
                "check; `kind` choice, number or text; `options` a|b of a choice, a|*b of a check, "
                "whose right answer is b, 18|99 of a number; a `name` is one word."
            )
    if twice := repeated(table["name"]):
        raise InputError(f"{path} has the name {twice[0]} twice; a question has one of its own.")
    return rows


@dataclass(frozen=True)
class QuestionAnswer:
    """A participant's answer to a question, by its name."""

    participant: str
    question: str
    answer: str


def questions_beside(responses: Path) -> Path:
    """Path of the answers to questions beside a table of responses."""
    return Path(f"{responses}.questions.csv")


def write_answers(path: Path, answers: Collection[QuestionAnswer]) -> None:
    """Write a row for each answer, of which there is one at least.

    Raises:
        InputError: the file cannot be written.
    """
    rows = [cells_of(answer, APOSTROPHE) for answer in answers]
    write_table(path, {name: [row[name] for row in rows] for name in rows[0]})


def read_answers(path: Path) -> list[QuestionAnswer]:
    """What `write_answers` wrote.

    Raises:
        InputError: the table cannot be read, or lacks a column.
    """
    table = read_csv(path)
    if lacking := QuestionAnswer.__dataclass_fields__.keys() - table.keys():
        raise InputError(f"{path} is no table of answers to questions: it lacks {min(lacking)}.")
    columns = (table[name] for name in QuestionAnswer.__dataclass_fields__)
    return [QuestionAnswer(*map(unescape_formula, row)) for row in zip(*columns, strict=True)]


def described(answers: Sequence[QuestionAnswer]) -> list[str]:
    """A phrase for each question: mean and range of numbers, else how often each answer came."""
    phrases = []
    for name in dict.fromkeys(each.question for each in answers):
        given = sorted(each.answer for each in answers if each.question == name and each.answer)
        if given and all(answer.isdecimal() for answer in given):
            numbers = [*map(int, given)]
            told = f"mean {fmean(numbers):.1f}, {min(numbers)} to {max(numbers)}"
        else:
            told = ", ".join(f"{each} {given.count(each)}" for each in dict.fromkeys(given))
        phrases.append(f"{name}: {told}")
    return phrases
