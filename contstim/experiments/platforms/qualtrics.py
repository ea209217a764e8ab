"""Qualtrics: write a survey in the advanced TXT format and its key; read the survey's data.

The key is a table that states which trial each question shows.

Facts from qualtrics.com/support, *Import & Export Surveys: Preparing an Advanced Format TXT File*:
the file begins with `[[AdvancedFormat]]`; `[[Block:name]]` begins a block. A question consists of
its type, its `[[ID:tag]]` (the name of its data column), its text as HTML, and its choices;
`[[AdvancedChoices]]` sets their exported values. `[[PageBreak]]` ends a page. After the import, the
researcher sets in the survey flow which participants see a block. If Qualtrics shuffles a block,
page breaks do not move with the questions. Therefore, this module writes each presentation list as
a block with a fixed order.

`[[Question:Timing]]` is widely used, but is not in that documentation. So it is written only on
request. Qualtrics does not document its own file format (QSF), so no such file is written.

Facts on data (*Understanding Your Dataset*, *Timing*): a table has a row for each participant and a
column for each question. A CSV export has three header rows: names of columns, texts of questions,
and JSON with import identifiers. Programs that save the file again may omit the third row, or the
second and the third. Depending on an option of the export, the value -99 marks questions that were
seen but not answered. `ResponseId` identifies a response; `Status` and `DistributionChannel` mark
previews. A timing question has columns that end in `_First Click`, `_Last Click`, `_Page Submit`
(seconds) and `_Click Count`.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from contstim.errors import InputError
from contstim.experiments.platforms.folder import ExportFolder
from contstim.experiments.platforms.lists import as_html, stimulus_lists
from contstim.experiments.platforms.platform import Exported, Exporter, Platform, Reader
from contstim.experiments.platforms.rows import MISSING, table_rows
from contstim.experiments.platforms.texts import Language, button_labels, labels
from contstim.experiments.responses import alignment
from contstim.files.tables import cells_by_name, needed_columns, read_csv
from contstim.options import Help, Seed
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contstim.experiments.platforms.rows import Row
    from contstim.items.stimuli import Trial

# Columns of the key that the reader uses; the other columns are for the researcher
_SHOWN = ("trial_id", "left", "position")
_UNANSWERED = (*MISSING, "-99")  # -99: seen but not answered, in some exports
# Columns with dates or numbers in participants' rows
_NUMBERED = ("StartDate", "EndDate", "RecordedDate", "Progress", "Duration (in seconds)")
# Values that mark previews; Status is a number or a text, depending on the kind of export
_PREVIEW = {"Status": ("1", "9", "17", "Survey Preview"), "DistributionChannel": ("preview",)}


def export_qualtrics(
    trials: Sequence[Trial],
    out: Path | str,
    *,
    lists_per_group: Annotated[
        int, Help("Number of trial orders per group; more orders make a larger survey.", at_least=1)
    ] = 2,
    timing: Annotated[bool, Help("Add a timing question to each trial.")] = False,
    language: Language = "en",
    seed: Seed = 0,
) -> Exported:
    """Write a survey for Qualtrics (advanced TXT) and a README that describes the next steps.

    The file key.csv states which trial each question shows; the import needs this file.

    Example: `contstim export qualtrics --trials trials.csv --lists-per-group 4 --timing
    --out qualtrics`

    Raises:
        InputError: if `stimulus_lists` refuses the trials, there are no texts in the language, or
            the folder contains other files.
    """
    folder = ExportFolder(out, "qualtrics")
    lists = stimulus_lists(trials, as_html, per_group=lists_per_group, seed=seed)
    buttons = button_labels(trials[0].scale, language)
    question = labels(language)["question"]
    lines = ["[[AdvancedFormat]]", ""]
    questions = []
    for list_rows in lists:
        lines += [f"[[Block:{list_rows[0]['list_name']}]]", ""]
        for row in list_rows:
            # Qualtrics leaves letters and digits unchanged in column names
            tag = f"{row['list_name']}Q{row['position']:03}"
            lines += _format_question(tag, row, question, buttons, timing=timing)
            questions.append({"tag": tag, **row})
    folder.text("survey.txt", "\n".join(lines))
    folder.rows("key.csv", questions, ("tag", "list_name", "group", *_SHOWN))
    folder.lists(lists)
    folder.readme(lists=len(lists), questions=f"{len(questions):,}")
    return folder.finish(seed=seed, lists_per_group=lists_per_group, timing=timing)


def _format_question(
    tag: str, row: Mapping[str, object], question: str, buttons: Sequence[str], *, timing: bool
) -> list[str]:
    left_text, right_text = row["left_sentence"], row["right_sentence"]
    cell = '<td style="width:50%;padding:1em;text-align:center;vertical-align:middle">'
    lines = [
        "[[Question:MC:SingleAnswer:Horizontal]]",
        f"[[ID:{tag}]]",
        f'<table style="width:100%"><tr>{cell}{left_text}</td>{cell}{right_text}</td></tr></table>'
        f"<p>{as_html(question)}</p>",
        "[[AdvancedChoices]]",
    ]
    for number, label in enumerate(buttons, start=1):
        lines += [f"[[Choice:{number}]]", as_html(label)]
    # The timing question must be on the same page as the question whose time it measures
    if timing:
        lines += ["", "[[Question:Timing]]", f"[[ID:{tag.replace('Q', 'T')}]]"]
    return [*lines, "", "[[PageBreak]]", ""]


def import_qualtrics(
    files: Sequence[Path | str],
    trials: Sequence[Trial],
    *,
    key: Annotated[Path, Help("The file key.csv of the export.")],
    participant: Annotated[str, Help("Column with the names of participants.")] = "ResponseId",
) -> alignment.Imported:
    """Read the data of an exported survey from Qualtrics.

    Example: `contstim import qualtrics data.csv --key qualtrics/key.csv --trials trials.csv
    --out responses.csv`

    Args:
        files: exports with numeric values. An empty cell is no response, because most questions
            belong to lists that the participant did not see. The value -99 is a missing rating. In
            some exports, this value marks a question that was seen but not answered. Previews are
            skipped, and a note names them. `Imported.report` names participants who did not answer
            every trial of their group.
        trials: exported trials.
        key: table that maps questions to trials.
        participant: column with the names of participants.

    Raises:
        InputError: if a file cannot be read, lacks the column of participants, or lacks the columns
            of all questions in the key; see also `import_files`.
    """
    questions = _read_key(key)
    return alignment.import_files(
        files, trials, lambda path: _read_answers(path, questions, key, participant)
    )


def _read_answers(
    path: Path, questions: Mapping[str, Mapping[str, str]], key: Path, name: str
) -> Iterator[alignment.RecordedAnswer | InputError | str]:
    rows, errors = table_rows(path)
    yield from errors
    columns = rows[0].cells
    needed_columns(path, columns, [name])
    tags = [tag for tag in questions if tag in columns]
    if not tags:
        raise InputError(
            f"{path} has no column of the questions in {key} "
            f"({next(iter(questions))}, …). Name the key of the same export."
        )
    if len(tags) < len(questions):
        missing = quantity(len(questions) - len(tags), "question")
        yield f"{path} has no columns for {missing} of {key}."
    previews, idle = [], []
    for row in _participant_rows(rows, tags):
        person, participant = row.cells, row.cells[name]
        if any(person.get(column, "") in words for column, words in _PREVIEW.items()):
            previews.append(participant)
            continue
        answered_tags = [tag for tag in tags if person[tag]]
        for tag in answered_tags:
            # Seconds until the page was submitted
            seconds = person.get(f"{tag.replace('Q', 'T')}_Page Submit", "")
            yield alignment.recorded_or_unreadable(
                f"{row.where}, {tag} of {participant or 'nobody'}",
                participant=participant,
                rating="" if person[tag] in _UNANSWERED else person[tag],
                rt_s="" if seconds in _UNANSWERED else seconds,
                **questions[tag],
                row=person,
            )
        if all(person[tag] in _UNANSWERED for tag in answered_tags):
            idle.append(participant)
    if previews:
        yield f"{path}: skipped {quantity(len(previews), 'preview')}: {', '.join(previews)}."
    if idle:
        yield f"These participants gave no ratings: {', '.join(idle)}."


def _participant_rows(rows: Sequence[Row], tags: Sequence[str]) -> Iterator[Row]:
    """Yield participants' rows; a file may consist of several exports, each with header rows."""
    for _, run in groupby(rows, key=lambda row: row.run):
        export = list(run)
        yield from export[_count_headers(export, tags) :]


def _count_headers(rows: Sequence[Row], tags: Sequence[str]) -> int:
    """Count the header rows below the column names: question texts and import identifiers."""
    names = [name for name in (*_NUMBERED, *tags) if name in rows[0].cells]
    for number, row in enumerate(rows[:2]):
        # Every participant's row has a date, number or rating; header rows have only texts
        cells = [cell for name in names if (cell := row.cells[name])]
        is_text = bool(cells) and not any(cell.lstrip("-")[:1].isdigit() for cell in cells)
        if not is_text and not any("ImportId" in cell for cell in row.cells.values()):
            return number
    return min(len(rows), 2)


def _read_key(key: Path) -> dict[str, dict[str, str]]:
    """Return the tag of each question → its trial_id, left and position."""
    rows = cells_by_name({n: [*map(str.strip, cells)] for n, cells in read_csv(key).items()})
    needed_columns(key, rows[0], ("tag", *_SHOWN))
    questions = {row["tag"]: {name: row[name] for name in _SHOWN} for row in rows}
    if len(questions) < len(rows):
        raise InputError(f"{key} has a tag twice. Give each question its own tag.")
    for number, (tag, trial_cells) in enumerate(questions.items()):
        where = f"{key}, row {number}"
        if not tag or not trial_cells["trial_id"]:
            raise InputError(f"{where}: a question needs a tag and a trial_id.")
        answer = alignment.recorded_or_unreadable(where, participant=tag, **trial_cells)
        if isinstance(answer, InputError):
            raise answer
    return questions


PLATFORM = Platform(
    "qualtrics",
    Exporter(export_qualtrics),
    Reader(import_qualtrics, files="CSV exports with numeric values."),
)
