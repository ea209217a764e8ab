"""Data of Qualtrics: a row for each participant, a column for each question.

Facts from qualtrics.com/support (*Understanding Your Dataset*, *Timing*): a CSV export has three
rows of headers: names of columns, texts of questions, and JSON with import identifiers;
`ResponseId` names a response; `Status` (and `DistributionChannel`) tell previews; a timing question
has columns that end in `_First Click`, `_Last Click`, `_Page Submit` (seconds) and `_Click Count`.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.documents import shortened
from contstim.errors import InputError
from contstim.experiments.responses.alignment import Imported, align
from contstim.experiments.responses.recorded import milliseconds, sided_answer, whole
from contstim.tables import read_csv

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contstim.experiments.responses.recorded import RecordedAnswer
    from contstim.stimuli import Trial

_PREVIEW = {"Status": ("1", "9", "17", "Survey Preview"), "DistributionChannel": ("preview",)}
_KEY = ("tag", "trial_id", "left", "position")


@dataclass(frozen=True)
class _Question:
    tag: str
    trial_id: str
    left: str
    position: int

    @property
    def time(self) -> str:
        """The column with the time at which the page of the question was left."""
        return f"{self.tag.replace('Q', 'T')}_Page Submit"


def import_qualtrics(
    files: Sequence[Path | str],
    trials: Sequence[Trial],
    key: Path | str,
    *,
    participant: str = "ResponseId",
) -> Imported:
    """Responses from Qualtrics' CSV exports, in the canonical order of their trials.

    A question that a participant left empty is no response; `Imported.report` names who did not
    answer every trial of their group. Previews are left aside and named.

    Args:
        files: exported with numeric values.
        trials: what was exported.
        key: the key.csv of the export, which says what each question shows.
        participant: the column that names people.

    Raises:
        InputError: a file cannot be read, lacks a column, or has no question of the key; a rating
            is not a number; and see `align`.
    """
    questions = _questions(Path(key))
    by_id = {trial.trial_id: trial for trial in trials}
    answers: list[RecordedAnswer] = []
    notes: list[str] = []
    for path in map(Path, files):
        rows, previews = _people(path, participant)
        known = [q for q in questions if rows and q.tag in rows[0]]
        if rows and not known:
            raise InputError(
                f"{path} has no column of the questions in {key} ({questions[0].tag}, …); is it of "
                "the same export?"
            )
        missing = len(questions) - len(known)
        if rows and missing:
            notes.append(f"{missing:,} questions of {key} are not columns of {path}.")
        if previews:
            notes.append(
                f"{len(previews):,} previews of {path} were left aside: {', '.join(previews)}."
            )
        idle = []
        for row in rows:
            theirs = [_answer(path, row, q, participant, by_id) for q in known if row[q.tag]]
            answers += theirs
            if not theirs:
                idle.append(row[participant])
        if idle:
            notes.append(f"These participants rated nothing: {', '.join(idle)}.")
    return align(answers, trials, notes)


def _answer(
    path: Path,
    row: Mapping[str, str],
    question: _Question,
    participant: str,
    by_id: Mapping[str, Trial],
) -> RecordedAnswer:
    where = f"{path}, {question.tag} of {row[participant] or 'nobody'}"
    cell = row[question.tag]
    if not cell.replace(".0", "").isdecimal():
        raise InputError(
            f"{where}: {shortened(cell)} is not a number. "
            "Export the data with numeric values, not choice text."
        )
    time = row.get(question.time, "")
    return sided_answer(
        where,
        row[participant],
        question.trial_id,
        question.left,
        by_id,
        rating=whole(where, cell, question.tag),
        position=question.position,
        rt_ms=milliseconds(where, time, question.time, unit=1_000) if time else math.nan,
    )


def _questions(key: Path) -> list[_Question]:
    table = read_csv(key)
    missing = [name for name in _KEY if name not in table]
    if missing:
        raise InputError(f"{key} is not a key of an export to Qualtrics: it lacks {missing[0]}.")
    questions = []
    for row, cells in enumerate(zip(*(table[name] for name in _KEY), strict=True)):
        where, (tag, trial_id, left, position) = f"{key}, row {row}", cells
        if not (tag.strip() and trial_id.strip()) or left.strip() not in ("1", "2"):
            raise InputError(
                f"{where}: a question needs a tag, a trial_id, and 1 or 2 under left, which says "
                f"the sentence shown there."
            )
        questions.append(_Question(tag, trial_id, left, whole(where, position, "position")))
    twice = [tag for tag, n in Counter(one.tag for one in questions).items() if n > 1]
    if twice:
        raise InputError(f"{key} has the tag {shortened(twice[0])} twice; a tag is one question's.")
    return questions


def _people(path: Path, participant: str) -> tuple[list[dict[str, str]], list[str]]:
    """A row for each person, without the further headers; and the names of previews."""
    table = read_csv(path, delimiters=",;\t")
    if participant not in table:
        raise InputError(
            f"{path} has no column {participant!r}, which names people; its first columns are "
            f"{', '.join(list(table)[:12])}."
        )
    cells = zip(*table.values(), strict=True)
    rows = [dict(zip(table, (cell.strip() for cell in row), strict=True)) for row in cells]
    heads = next(
        (n + 1 for n, row in enumerate(rows[:2]) if row[participant].startswith('{"ImportId"')), 0
    )
    people = rows[heads:]
    previews = [row for row in people if _is_preview(row)]
    kept = [row for row in people if not _is_preview(row)]
    return kept, [row[participant] for row in previews]


def _is_preview(row: Mapping[str, str]) -> bool:
    return any(row.get(column, "") in words for column, words in _PREVIEW.items())
