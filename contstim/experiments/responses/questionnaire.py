"""Questions that participants answer in addition to the trials, for example about their age."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from contstim.errors import InputError
from contstim.experiments.responses.table import APOSTROPHE, cells_of, unescape_formula
from contstim.files.tables import cells_by_name, needed_columns, read_csv, read_rows, write_table
from contstim.wording import find_duplicates, grouped

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


@dataclass(frozen=True)
class Question:
    """A question to participants, as displayed on the page.

    Attributes:
        name: identifier in the table of answers.
        when: `before` for a question before the instructions, `check` for a question that checks
            whether participants understood the instructions, `after` for a question after the last
            trial.
        kind: kind of the answer: `choice` (one of several options), `number` or `text` (any text).
        choices: options of a question whose kind is `choice`.
        right: correct option of a check of the instructions; otherwise empty.
        lowest: minimum of a valid answer whose kind is `number`.
        highest: maximum of a valid answer whose kind is `number`.
        shown: displayed options, if these are translations of `choices`; otherwise empty.
    """

    name: str
    when: Literal["before", "check", "after"]
    kind: Literal["choice", "number", "text"]
    question: str
    optional: bool
    choices: tuple[str, ...] = ()
    right: str = ""
    lowest: int = 0
    highest: int = 0
    shown: tuple[str, ...] = ()


# Column → pattern of valid cells, and description for messages
_PATTERNS = {
    "name": (r"[A-Za-z]\w*", "name in letters, digits and _, beginning with a letter"),
    "when": ("before|check|after", "time to ask; write `before`, `check` or `after`"),
    "kind": ("choice|number|text", "kind; write `choice`, `number` or `text`"),
    "question": ("(?s).+", "question; write the text that participants read"),
    "options": ("(?s).*", "text"),
    "optional": ("no|yes|", "yes or a no"),
}
COLUMNS = tuple(_PATTERNS)
"""Columns of a table of questions.

A table may also have columns with translations, such as `question_de` and `options_de`; see
`FURTHER_COLUMN`.
"""
FURTHER_COLUMN = re.compile(r"(question|options)_[A-Za-z][A-Za-z0-9-]*")


def _parse_options(when: str, kind: str, options: str) -> dict[str, Any]:
    if when == "check" and kind != "choice":
        raise ValueError(f"a check must be a choice, got a {kind}.")
    parts = [part.strip() for part in options.split("|")]
    if kind == "text":
        if options.strip():
            raise ValueError("a question with a free text has no options: leave options empty.")
        return {}
    if kind == "number":
        limits = [int(part) for part in parts if re.fullmatch(r"[0-9]{1,9}", part)]
        if not len(limits) == len(parts) == 2 or limits[0] >= limits[1]:
            raise ValueError(
                "options of a number must be the minimum and the maximum, such as 18|99."
            )
        return {"lowest": limits[0], "highest": limits[1]}
    marked = [part.removeprefix("*").strip() for part in parts if part.startswith("*")]
    choices = tuple(part.removeprefix("*").strip() for part in parts)
    if len(choices) < 2 or not all(choices) or find_duplicates(choices):
        raise ValueError(
            "options of a choice must be at least two different texts, such as yes|no."
        )
    if len(marked) != (when == "check"):
        raise ValueError(
            "options of a check must have `*` before the correct option only, such as "
            "yes|*no; in other questions no option begins with `*`."
        )
    return {"choices": choices, "right": marked[0] if marked else ""}


def _parse_question(cells: Mapping[str, str], language: str) -> Question:
    """Parse a question from a row.

    Displayed texts are translations into `language`, such as `de-AT`. A missing translation is
    replaced by the translation into the language without its region (`de`). If that translation is
    missing too, the untranslated text is displayed.

    Raises:
        ValueError: if a cell is invalid; `args` of the error are the column and the problem.
    """
    values: dict[str, Any] = {name: cells.get(name, "").strip() for name in COLUMNS}
    values |= {name: values[name].lower() for name in ("when", "kind", "optional")}
    for column, (pattern, description) in _PATTERNS.items():
        if not re.fullmatch(pattern, values[column]):
            raise ValueError(column, f"{cells.get(column, '')!r} is not a {description}.")
    filled = {name: cell.strip() for name, cell in cells.items() if cell.strip()}
    options: dict[str, dict[str, Any]] = {}
    # Options of every language are parsed, so that errors do not depend on the requested language
    for column in ("options", *(name for name in filled if name.startswith("options_"))):
        try:
            options[column] = _parse_options(values["when"], values["kind"], filled.get(column, ""))
            both = (options[column], options["options"])
            marks, first = ([c == o["right"] for c in o.get("choices", ())] for o in both)
            if marks != first:
                raise ValueError("a translation must have the same options in the same order.")
        except ValueError as error:
            raise ValueError(column, f"{filled.get(column, '')!r}: {error}") from None
    languages = (language, language.partition("-")[0])
    worded = (filled[name] for code in languages if (name := f"question_{code}") in filled)
    labels = (options[name] for code in languages if (name := f"options_{code}") in options)
    values["question"] = next(worded, values["question"])
    values["shown"] = next(labels, {}).get("choices", ())
    values["optional"] = values["optional"] == "yes"
    del values["options"]
    return Question(**values, **options["options"])


def questions_of(
    rows: Iterable[Mapping[str, str]], language: str = ""
) -> tuple[tuple[Question, ...], list[tuple[int, str, str]]]:
    """Parse the questions of a table or a study file, and collect problems of invalid rows.

    Args:
        rows: rows with the columns `COLUMNS`. `when` is "before" (the instructions), "check" (of
            the instructions) or "after" (the last trial). `kind` of the answer is "choice",
            "number" or "text". `options` of a choice are separated by `|`, with `*` before the
            correct option of a check; `options` of a number are the minimum and maximum, such as
            `18|99`. `optional` is "yes" if an answer may be omitted. Columns such as `question_de`
            and `options_de` contain translations; answers are stored as untranslated options.
        language: preferred language of the displayed texts.

    Returns:
        The questions; and (row from 0, column, problem) for each invalid row.
    """
    questions: dict[str, Question] = {}
    wrong = []
    for row, cells in enumerate(rows):
        try:
            question = _parse_question(cells, language)
            if question.name in questions:
                raise ValueError(
                    "name", f"two questions have the name {question.name}. Rename one."
                )
            questions[question.name] = question
        except ValueError as error:
            wrong.append((row, *error.args))
    return tuple(questions.values()), wrong


def read_questions(path: Path, language: str = "") -> tuple[Question, ...]:
    """Read the questions of a table; see `questions_of`.

    Raises:
        InputError: if the table cannot be read, or a row is invalid.
    """
    table = read_csv(path)
    needed_columns(path, table, [name for name in COLUMNS if name != "optional"])
    questions, wrong = questions_of(cells_by_name(table), language)
    for row, column, problem in wrong:
        raise InputError(f"{path}, row {row}, {column}: {problem}")
    return questions


@dataclass(frozen=True)
class QuestionAnswer:
    """A participant's answer; `question` is the name of the question."""

    participant: str
    question: str
    answer: str


QUESTIONS_ENDING = ".questions.csv"


def questions_beside(responses: Path) -> Path:
    """Return the path of the table of answers to questions, next to a table of responses."""
    return Path(f"{responses}{QUESTIONS_ENDING}")


def write_answers(path: Path, answers: Collection[QuestionAnswer]) -> None:
    """Write a row for each answer; there must be at least one answer.

    Raises:
        InputError: if the file cannot be written.
    """
    rows = [cells_of(answer, APOSTROPHE) for answer in answers]
    write_table(path, {name: [row[name] for row in rows] for name in rows[0]})


def read_answers(path: Path) -> list[QuestionAnswer]:
    """Read the table that `write_answers` wrote.

    Raises:
        InputError: if the table cannot be read, or lacks a column.
    """
    return [*read_rows(path, QuestionAnswer, {"str": (unescape_formula, "text")})]


def answer_summaries(questions: Iterable[Question], answers: Iterable[QuestionAnswer]) -> list[str]:
    """Return a phrase for each question: mean and range of numbers, or frequencies of choices.

    Questions without answers are left out, and so are free texts, which may identify participants.
    """
    texts_by_question = grouped((a.question, a.answer) for a in answers if a.answer)
    phrases = []
    for question in questions:
        texts = texts_by_question.get(question.name, [])
        if question.kind == "number" and texts:
            numbers = [*map(int, texts)]
            summary = f"mean {fmean(numbers):.1f}, {min(numbers)} to {max(numbers)}"
            phrases.append(f"{question.name}: {summary}")
        elif question.kind == "choice" and texts:
            counts = (f"{choice} {texts.count(choice)}" for choice in question.choices)
            phrases.append(f"{question.name}: {', '.join(counts)}")
    return phrases
