"""Questions to participants beside the trials, such as age, and what they answered."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from contstim.errors import InputError
from contstim.experiments.responses.table import APOSTROPHE, cells_of, unescape_formula
from contstim.files.tables import cells_by_name, needed_columns, read_csv, read_rows, write_table
from contstim.wording import repeated

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from contstim.files.tables import Reader


@dataclass(frozen=True)
class Question:
    """A question to participants, as the page shows it.

    Attributes:
        name: of its answers.
        when: before the instructions, as a check of them, or after the last trial.
        kind: of the answer.
        question: as people read it.
        optional: true if people may go on without an answer.
        choices: of a choice.
        right: the choice that a check asks for; empty elsewhere.
        lowest: number that may be given.
        highest: number that may be given.
        shown: the choices as people read them, where these are other words.
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


def _one_of(*allowed: str) -> Callable[[Any], str]:
    return lambda cell: allowed[allowed.index(cell.strip().lower())]


def _matching(pattern: str) -> Callable[[Any], str]:
    def read(cell: Any) -> str:
        if not re.fullmatch(pattern, cell.strip()):
            raise ValueError(cell)
        return str(cell.strip())

    return read


_READERS: dict[str, Reader] = {
    "name": (_matching(r"[A-Za-z]\w*"), "name in letters, digits and _, beginning with a letter"),
    "when": (_one_of("before", "check", "after"), "time to ask; write before, check or after"),
    "kind": (_one_of("choice", "number", "text"), "kind; write choice, number or text"),
    "question": (_matching(r"(?s).+"), "question; write what people are to read"),
    "options": (str, "text"),
    "optional": (_one_of("", "no", "yes"), "yes or a no"),
}
COLUMNS = tuple(_READERS)
"""Those of a table of questions; two of them also in further languages, as `question_de`."""
FURTHER_COLUMN = re.compile(r"(question|options)_[A-Za-z][A-Za-z0-9-]*")


def _options(when: str, kind: str, options: str) -> dict[str, Any]:
    """Fields of a question that its column options gives.

    Raises:
        ValueError: says in a sentence what the column must be.
    """
    if when == "check" and kind != "choice":
        raise ValueError(f"a check must be a choice, not a {kind}.")
    parts = [part.strip() for part in options.split("|")]
    if kind == "text":
        if options.strip():
            raise ValueError("people write a text themselves: leave options empty.")
        return {}
    if kind == "number":
        limits = [int(part) for part in parts if re.fullmatch(r"[0-9]{1,9}", part)]
        if not len(limits) == len(parts) == 2 or limits[0] >= limits[1]:
            raise ValueError("options of a number are the lowest and the highest, such as 18|99.")
        return {"lowest": limits[0], "highest": limits[1]}
    marked = [part.removeprefix("*").strip() for part in parts if part.startswith("*")]
    choices = tuple(part.removeprefix("*").strip() for part in parts)
    if len(choices) < 2 or not all(choices) or repeated(choices):
        raise ValueError("options of a choice are two different texts or more, such as yes|no.")
    if len(marked) != (when == "check"):
        raise ValueError(
            "options of a check have `*` before the right one, and before no other, such as "
            "yes|*no; elsewhere no option begins with `*`."
        )
    return {"choices": choices, "right": marked[0] if marked else ""}


class _CellError(ValueError):
    """Column of a cell that is no part of a question, and what it must be."""


def _question(cells: Mapping[str, str], language: str) -> Question:
    """The question of a row, in the words of a language, or of that of which it is a variety.

    Raises:
        _CellError: a cell is no part of a question.
    """
    said: dict[str, Any] = {}
    for column, (read, what) in _READERS.items():
        try:
            said[column] = read(cells.get(column, ""))
        except ValueError:
            raise _CellError(column, f"{cells.get(column, '')!r} is not a {what}.") from None
    given = {name: cell.strip() for name, cell in cells.items() if cell.strip()}
    options: dict[str, dict[str, Any]] = {}
    # In every language, so that what is wrong shows whichever is asked for
    for column in ("options", *(name for name in given if name.startswith("options_"))):
        try:
            options[column] = _options(said["when"], said["kind"], given.get(column, ""))
            both = (options[column], options["options"])
            own, first = ([c == o["right"] for c in o.get("choices", ())] for o in both)
            if own != first:
                raise ValueError("say the choices of options, in their order.")
        except ValueError as error:
            raise _CellError(column, f"{given.get(column, '')!r}: {error}") from None
    spoken = (language, language.partition("-")[0])
    worded = (given[name] for each in spoken if (name := f"question_{each}") in given)
    shown = (options[name] for each in spoken if (name := f"options_{each}") in options)
    said["question"] = next(worded, said["question"])
    said["shown"] = next(shown, {}).get("choices", ())
    said["optional"] = said["optional"] == "yes"
    del said["options"]
    return Question(**said, **options["options"])


def questions_of(
    rows: Iterable[Mapping[str, str]], language: str = ""
) -> tuple[tuple[Question, ...], list[tuple[int, str, str]]]:
    """The questions of rows, of a table or a study file, and what is wrong with others.

    Args:
        rows: name; when (before the instructions, after the last trial, or as a check of the
            instructions); kind (choice, number, text); question; options: of a choice with `|`
            between them, in a check the right one with `*` before it, of a number the lowest and
            the highest, such as `18|99`; optional: yes where not all must answer; and in further
            languages `question_de`, and `options_de` of a choice. Answers are the options.
        language: of the wording, where a row has it.

    Returns:
        The questions; and row, from 0, column and problem of each row that is none.
    """
    questions: dict[str, Question] = {}
    wrong = []
    for row, cells in enumerate(rows):
        try:
            question = _question(cells, language)
            if question.name in questions:
                raise _CellError("name", f"{question.name} is the name of two: give each its own.")
            questions[question.name] = question
        except _CellError as error:
            wrong.append((row, *error.args))
    return tuple(questions.values()), wrong


def read_questions(path: Path, language: str = "") -> tuple[Question, ...]:
    """The questions of a table; see `questions_of`.

    Raises:
        InputError: the table cannot be read, or a row is no question; says why.
    """
    table = read_csv(path)
    needed_columns(path, table, [name for name in COLUMNS if name != "optional"])
    questions, wrong = questions_of(cells_by_name(table), language)
    for row, column, problem in wrong:
        raise InputError(f"{path}, row {row}, {column}: {problem}")
    return questions


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
    readers = {"str": (unescape_formula, "text")}
    return [*read_rows(path, QuestionAnswer, readers)]


def described(questions: Iterable[Question], answers: Iterable[QuestionAnswer]) -> list[str]:
    """A phrase for each number (mean and range) and choice (how often each was made).

    What people wrote in words of their own may say who they are, and is not told.
    """
    given: dict[str, list[str]] = defaultdict(list)
    for each in answers:
        given[each.question] += [each.answer] if each.answer else []
    phrases = []
    for question in questions:
        theirs = given[question.name]
        if question.kind == "number" and theirs:
            numbers = [*map(int, theirs)]
            told = f"mean {fmean(numbers):.1f}, {min(numbers)} to {max(numbers)}"
            phrases.append(f"{question.name}: {told}")
        elif question.kind == "choice" and theirs:
            counts = (f"{each} {theirs.count(each)}" for each in question.choices)
            phrases.append(f"{question.name}: {', '.join(counts)}")
    return phrases
