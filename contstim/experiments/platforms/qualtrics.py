"""Qualtrics: a survey in the advanced TXT format, the key to its questions, and its data.

Facts from qualtrics.com/support, *Import & Export Surveys: Preparing an Advanced Format TXT File*:
the file begins with `[[AdvancedFormat]]`; `[[Block:name]]` begins a block; a question is its type,
its `[[ID:tag]]` (the name of its column in the data), its text as HTML, and its choices, which
`[[AdvancedChoices]]` lets carry the values that are exported; `[[PageBreak]]` ends a page. What
shows a block to some people only is set in the survey flow, after the import. Qualtrics shuffles
the questions of a block without their page breaks, so that the order of a list is fixed here.

`[[Question:Timing]]` is used by many and not in that documentation: it is written on demand.

Data (*Understanding Your Dataset*, *Timing*): a row for each participant, a column for each
question. A CSV export has three rows of headers: names of columns, texts of questions, and JSON
with import identifiers; `ResponseId` names a response; `Status` (and `DistributionChannel`) tell
previews; a timing question has columns that end in `_First Click`, `_Last Click`, `_Page Submit`
(seconds) and `_Click Count`.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from contstim.documents import shortened
from contstim.errors import InputError
from contstim.experiments.platforms.display import BUTTONS, QUESTION, as_html
from contstim.experiments.platforms.folder import ExportFolder, template
from contstim.experiments.platforms.lists import sides, stimulus_lists
from contstim.experiments.platforms.platform import Exported, Exporter, Platform, Reader
from contstim.experiments.platforms.reading import read_rows
from contstim.experiments.responses.alignment import Imported, align
from contstim.experiments.responses.recorded import milliseconds, sided_answer, whole
from contstim.options import Help, Seed
from contstim.tables import read_csv

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contstim.experiments.design.presentation import Shown
    from contstim.experiments.responses.recorded import RecordedAnswer
    from contstim.stimuli import Trial

KEY = ("tag", "list_name", "group", "trial_id", "left", "position")

# The other columns of the key are for people, and need not be there.
_KEY_READ = ("tag", "trial_id", "left", "position")
# Status comes as a number or in words, by the kind of export.
_PREVIEW = {"Status": ("1", "9", "17", "Survey Preview"), "DistributionChannel": ("preview",)}


@dataclass(frozen=True)
class QualtricsSettings:
    """Settings of a survey."""

    lists_per_group: Annotated[
        int, Help("Orders of each group; more make a larger survey.", at_least=1)
    ] = 2
    timing: Annotated[bool, Help("Add a timing question to each trial.")] = False
    seed: Seed = 0


def export_qualtrics(
    trials: Sequence[Trial], out: Path | str, settings: QualtricsSettings | None = None
) -> Exported:
    """Write a survey for Qualtrics (advanced TXT), its key, and a README that says what to do.

    Example: `contstim export qualtrics --trials trials.csv --lists-per-group 4 --timing
    --out qualtrics`

    Raises:
        InputError: the trials cannot be traced back, or the folder holds other files.
    """
    settings = settings or QualtricsSettings()
    folder = ExportFolder(out, "qualtrics")
    lists = stimulus_lists(trials, per_group=settings.lists_per_group, seed=settings.seed)
    lines = ["[[AdvancedFormat]]", ""]
    key = []
    for stimulus_list in lists:
        lines += [f"[[Block:{stimulus_list.name}]]", ""]
        for shown in stimulus_list.shown:
            # Letters and digits only, which Qualtrics never changes in the name of a column.
            tag = f"{stimulus_list.name}Q{shown.position:03}"
            lines += _question(tag, shown, timing=settings.timing)
            key.append(
                {
                    "tag": tag,
                    "list_name": stimulus_list.name,
                    "group": stimulus_list.group,
                    "trial_id": shown.trial.trial_id,
                    "left": shown.left,
                    "position": shown.position,
                }
            )
    folder.text("survey.txt", "\n".join(lines))
    folder.rows("key.csv", key, KEY)
    folder.lists(lists)
    folder.readme(template("qualtrics.md"), lists=len(lists), questions=f"{len(key):,}")
    return folder.finish(
        seed=settings.seed, lists_per_group=settings.lists_per_group, timing=settings.timing
    )


def timing_tag(tag: str) -> str:
    """The name of the timing question beside a question."""
    return tag.replace("Q", "T")


def _question(tag: str, shown: Shown, *, timing: bool) -> list[str]:
    left, right = map(as_html, sides(shown))
    cell = '<td style="width:50%;padding:1em;text-align:center;vertical-align:middle">'
    lines = [
        "[[Question:MC:SingleAnswer:Horizontal]]",
        f"[[ID:{tag}]]",
        # A table of one row is the only way to two columns that needs no style sheet.
        f'<table style="width:100%"><tr>{cell}{left}</td>{cell}{right}</td></tr></table>'
        f"<p>{as_html(QUESTION)}</p>",
        "[[AdvancedChoices]]",
    ]
    for number, label in enumerate(BUTTONS, start=1):
        lines += [f"[[Choice:{number}]]", as_html(label)]
    # A timing question stands on the page of the question that it times.
    if timing:
        lines += ["", "[[Question:Timing]]", f"[[ID:{timing_tag(tag)}]]"]
    return [*lines, "", "[[PageBreak]]", ""]


@dataclass(frozen=True)
class QualtricsReading:
    """Options of reading data of Qualtrics: `key` says what each question shows."""

    key: Annotated[Path, Help("key.csv of the export.")]
    participant: Annotated[str, Help("The column that names people.")] = "ResponseId"


def import_qualtrics(
    files: Sequence[Path | str], trials: Sequence[Trial], settings: QualtricsReading
) -> Imported:
    """Read data of Qualtrics, collected with an exported survey.

    Example: `contstim import qualtrics data.csv --key qualtrics/key.csv --trials trials.csv
    --out responses.csv`

    Args:
        files: exported with numeric values. A question that a participant left empty is not a
            response; `Imported.report` names who did not answer every trial of their group.
            Previews are left aside and named.
        trials: what was exported.
        settings: the key, and who is who.

    Raises:
        InputError: a file cannot be read, lacks a column, or has no question of the key; a rating
            is not a number; and see `align`.
    """
    key, participant = settings.key, settings.participant
    questions = _read_key(key)
    by_id = {trial.trial_id: trial for trial in trials}
    answers: list[RecordedAnswer] = []
    notes: list[str] = []
    for path in map(Path, files):
        people, previews = _people(path, participant)
        asked = [q for q in questions if people and q.tag in people[0]]
        if people and not asked:
            raise InputError(
                f"{path} has no column of the questions in {key} ({questions[0].tag}, …); is it of "
                "the same export?"
            )
        if people and len(asked) < len(questions):
            notes.append(
                f"{len(questions) - len(asked):,} questions of {key} are not columns of {path}."
            )
        if previews:
            notes.append(
                f"{len(previews):,} previews of {path} were left aside: {', '.join(previews)}."
            )
        idle = []
        for person in people:
            # Most questions are those of other lists, which this person never saw.
            answered = [q for q in asked if person[q.tag]]
            answers += [_answer(path, person, q, participant, by_id) for q in answered]
            if not answered:
                idle.append(person[participant])
        if idle:
            notes.append(f"These participants rated nothing: {', '.join(idle)}.")
    return align(answers, trials, notes)


@dataclass(frozen=True)
class _Question:
    tag: str
    trial_id: str
    left: str
    position: int


def _read_key(key: Path) -> list[_Question]:
    table = read_csv(key)
    missing = [name for name in _KEY_READ if name not in table]
    if missing:
        raise InputError(f"{key} is not a key of an export to Qualtrics: it lacks {missing[0]}.")
    questions = []
    for row, cells in enumerate(zip(*(table[name] for name in _KEY_READ), strict=True)):
        where, (tag, trial_id, left, position) = f"{key}, row {row}", cells
        if not (tag.strip() and trial_id.strip()) or left.strip() not in ("1", "2"):
            raise InputError(
                f"{where}: a question needs a tag, a trial_id, and 1 or 2 under left, which says "
                f"the sentence shown there."
            )
        questions.append(_Question(tag, trial_id, left, whole(where, position, "position")))
    twice = [tag for tag, n in Counter(question.tag for question in questions).items() if n > 1]
    if twice:
        raise InputError(f"{key} has the tag {shortened(twice[0])} twice; a tag is one question's.")
    return questions


def _people(path: Path, participant: str) -> tuple[list[dict[str, str]], list[str]]:
    """A row for each person, without the further headers; and the names of previews."""
    rows = read_rows(path)
    if participant not in rows[0]:
        raise InputError(
            f"{path} has no column {participant!r}, which names people; its first columns are "
            f"{', '.join(list(rows[0])[:12])}."
        )
    # The row of import identifiers is the last header; exports without it have none but the names.
    headers = [row[participant].startswith('{"ImportId"') for row in rows[:2]]
    people = rows[headers.index(True) + 1 if True in headers else 0 :]
    previews = [row[participant] for row in people if _is_preview(row)]
    return [row for row in people if not _is_preview(row)], previews


def _is_preview(row: Mapping[str, str]) -> bool:
    return any(row.get(column, "") in words for column, words in _PREVIEW.items())


def _answer(
    path: Path,
    person: Mapping[str, str],
    question: _Question,
    participant: str,
    by_id: Mapping[str, Trial],
) -> RecordedAnswer:
    where = f"{path}, {question.tag} of {person[participant] or 'nobody'}"
    cell = person[question.tag]
    # Some exports write whole numbers as 4.0; anything else is the text of a choice.
    if not cell.replace(".0", "").isdecimal():
        raise InputError(
            f"{where}: {shortened(cell)} is not a number. "
            "Export the data with numeric values, not choice text."
        )
    # When the page of the question was left, in seconds.
    time_column = f"{timing_tag(question.tag)}_Page Submit"
    time = person.get(time_column, "")
    return sided_answer(
        where,
        person[participant],
        question.trial_id,
        question.left,
        by_id,
        rating=whole(where, cell, question.tag),
        position=question.position,
        rt_ms=milliseconds(where, time, time_column, unit=1_000) if time else math.nan,
    )


PLATFORM = Platform(
    "qualtrics",
    Exporter(export_qualtrics, QualtricsSettings),
    Reader(import_qualtrics, QualtricsReading, files="CSV exports with numeric values."),
)
