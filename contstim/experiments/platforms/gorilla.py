"""Gorilla: write a spreadsheet for each presentation list, and read Gorilla's data.

A spreadsheet has the columns of the user's task in Gorilla.

Facts on spreadsheets from support.gorilla.sc (*How To: Task Builder 2*, *Walkthrough:
Spreadsheets*, *Getting Started: Formatting*): a row is a trial. Its cell in the column `display`
names the sequence of screens that shows the trial. Rows with the same number under
`randomise_trials` are shuffled. Further columns are metadata, which Gorilla returns with the data.
In the data, a metadata column NAME is called `Spreadsheet: NAME` (Task Builder 2) or `NAME` (Task
Builder 1). Texts may contain HTML and Markdown.

Facts on data (*Data columns*): a row is an event. If a button of the scale was pressed, the `Zone
Name` (Task Builder 1) or the `Object Name` (Task Builder 2) is the name of the button: resp1 …
resp6, from left to right. There are also rows for instructions, fixation screens, `BEGIN TASK`,
`END TASK` and `END OF FILE`. Names of columns of a second spreadsheet end in `-` and four
characters, for example `trial_id-ab12`.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from contstim.errors import InputError
from contstim.experiments.platforms.folder import ExportFolder
from contstim.experiments.platforms.folder import template as default_template
from contstim.experiments.platforms.lists import as_html, button_facts, stimulus_lists
from contstim.experiments.platforms.platform import Exported, Exporter, Platform, Reader
from contstim.experiments.platforms.rows import MISSING, table_rows
from contstim.experiments.platforms.texts import Language
from contstim.experiments.responses import alignment
from contstim.files.tables import cells_by_name, join_names, read_csv
from contstim.options import Help, Seed
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from contstim.experiments.platforms.rows import Row
    from contstim.items.stimuli import Trial

METADATA = ("trial_id", "list_name", "shown_left")
"""Columns that Gorilla returns with the data.

`shown_left` is 1 if sentence_1 is on the left, 2 if sentence_2 is on the left."""

_DISPLAY = "display"


def export_gorilla(
    trials: Sequence[Trial],
    out: Path | str,
    *,
    template: Annotated[
        Path | None, Help("The spreadsheet of your task, downloaded from Gorilla as CSV.")
    ] = None,
    display: Annotated[str, Help("The display that shows a trial.")] = "trial",
    left: Annotated[str, Help("The template's column of the left sentence.")] = "sentence_left",
    right: Annotated[str, Help("The template's column of the right sentence.")] = "sentence_right",
    language: Language = "en",
    seed: Seed = 0,
) -> Exported:
    """Write spreadsheets for Gorilla, and a README that describes the next steps.

    With `--template`, each spreadsheet is a copy of your task's spreadsheet. The copy has the
    exported trials instead of the rows whose display is `--display`.

    Example: `contstim export gorilla --trials trials.csv --template task.csv --left text_a --right
    text_b --out gorilla`

    Raises:
        InputError: if the template cannot be read or lacks a column; if both sentences are in the
            same column; if no row has the display, or its rows are not adjacent; if
            `stimulus_lists` refuses the trials; if there are no texts in the language; or if the
            folder contains other files.
    """
    source = template or "The default spreadsheet"
    # The default spreadsheet is for a task with three displays: "instructions", "trial" and "end"
    default_rows = csv.DictReader(default_template("gorilla.csv").splitlines())
    rows = cells_by_name(read_csv(template)) if template else [*default_rows]
    display_column, left_column, right_column = (
        _column(source, rows[0], name) for name in (_DISPLAY, left, right)
    )
    if left_column == right_column:
        raise InputError(
            f"{source}: the left and the right sentence must be in two columns, got "
            f"{left_column!r} for both."
        )
    # The exported trials replace the template's rows of this display, which must be adjacent
    displays = [row[display_column].strip() for row in rows]
    if display not in displays:
        raise InputError(
            f"{source} has no row with the display {display!r}; the displays are "
            f"{', '.join(dict.fromkeys(displays))}."
        )
    first, number = displays.index(display), displays.count(display)
    if display in displays[first + number :]:
        raise InputError(
            f"{source} has other rows between those of the display {display!r}. "
            "Keep one row of this display."
        )
    folder = ExportFolder(out, "gorilla")
    lists = stimulus_lists(trials, as_html, seed=seed)
    # If the template is a spreadsheet of an earlier export, it already has the columns `METADATA`
    columns = list(dict.fromkeys((*rows[0], *METADATA)))
    for list_rows in lists:
        trial_rows = [
            {
                **rows[first],
                left_column: row["left_sentence"],
                right_column: row["right_sentence"],
                "trial_id": row["trial_id"],
                "list_name": row["list_name"],
                "shown_left": row["left"],
            }
            for row in list_rows
        ]
        sheet = [*rows[:first], *trial_rows, *rows[first + number :]]
        folder.rows(f"{list_rows[0]['list_name']}.csv", sheet, columns)
    folder.lists(lists)
    about = {"left": left_column, "right": right_column}
    folder.readme(lists=len(lists), **about, **button_facts(trials[0].scale, language))
    return folder.finish(seed=seed, columns=columns)


def _column(source: object, columns: Iterable[str], name: str) -> str:
    """Find a column by its name; ignore case and outer spaces if there is no exact match."""
    names = {n.strip().lower(): n for n in columns} | {n: n for n in columns}
    column = names.get(name) or names.get(name.strip().lower())
    if column is None:
        raise InputError(f"{source} has no column {name!r}; its columns are {', '.join(columns)}.")
    return column


_BUTTON = re.compile(r"resp([0-9]{1,3})")
_SECOND_SHEET = re.compile(r"-[a-z0-9]{4}$")


def import_gorilla(files: Sequence[Path | str], trials: Sequence[Trial]) -> alignment.Imported:
    """Read the data of Gorilla experiments that use the exported spreadsheets.

    Example: `contstim import gorilla data_exp_1-v2_task-ab12.csv --trials trials.csv
    --out responses.csv`

    Args:
        files: data files of one experiment, for example one file for each spreadsheet. The ratings
            of a participant are numbered in the order of the files and their rows; these numbers
            are the positions of the trials. If a trial was shown but not rated, its rating is
            missing.
        trials: trials of the exported spreadsheets.

    Raises:
        InputError: if a file cannot be read or lacks a column, or the files have no rating; see
            also `import_files`.
    """
    position: Counter[str] = Counter()
    imported = alignment.import_files(files, trials, lambda path: _read_answers(path, position))
    if not position:
        raise InputError(
            f"No ratings found in {', '.join(map(str, files))}. Name the buttons resp1 … "
            "resp6, from left to right."
        )
    return imported


def _read_answers(
    path: Path, position: Counter[str]
) -> Iterator[alignment.RecordedAnswer | InputError | str]:
    """Yield a file's answers, an error for each unreadable row, and notes about the file.

    `position` (participant → position of the last rating) is updated.
    """
    rows, errors = table_rows(path, footer="END OF FILE")
    yield from errors
    column_names = {
        "participant": ("Participant Private ID", "Participant Public ID"),
        "button": ("Zone Name", "Object Name"),
        "trial_id": ("trial_id",),
        "left": ("shown_left",),
    }
    header = rows[0].cells
    columns = {field: _columns_of(path, header, names) for field, names in column_names.items()}
    participants: dict[str, None] = {}
    rated: set[tuple[str, str]] = set()
    unrated: dict[tuple[str, str], alignment.RecordedAnswer | InputError] = {}
    n_others = 0
    for row in rows:
        try:
            cells = {field: _one_value(row, names) for field, names in columns.items()}
        except InputError as error:
            yield error
            continue
        participant, trial_id = key = (cells["participant"], cells["trial_id"])
        participants[participant] = None
        if not trial_id:
            n_others += 1
            continue
        event: dict[str, Any] = {"where": row.where, "row": row.cells, **cells}
        if pressed := _BUTTON.fullmatch(cells["button"]):
            rated.add(key)
            position[participant] += 1
            rt_ms = row.cells.get("Reaction Time", "")
            event |= {"position": position[participant], "rt_ms": "" if rt_ms in MISSING else rt_ms}
            yield alignment.recorded_or_unreadable(**event, rating=pressed[1])
        elif key not in unrated:
            # This row is about another event of the trial. The rating is missing if no row of the
            # trial has a rating
            unrated[key] = alignment.recorded_or_unreadable(**event, rating="")
    yield from (answer for key, answer in unrated.items() if key not in rated)
    yield f"{path}: skipped {quantity(n_others, 'row')} without a trial_id."
    active = {participant for participant, _ in rated | unrated.keys()}
    if idle := participants.keys() - active - {""}:
        yield f"These participants gave no ratings: {', '.join(sorted(idle))}."


def _columns_of(path: Path, header: Iterable[str], names: Sequence[str]) -> list[str]:
    """Find the first of `names` that occurs in a file, and return all columns with this name.

    There are several such columns if the experiment had several spreadsheets.
    """
    plain = {
        column: _SECOND_SHEET.sub("", column.removeprefix("Spreadsheet: ")) for column in header
    }
    for name in names:
        if columns := [column for column in plain if name in (column, plain[column])]:
            return columns
    raise InputError(
        f"{path} has no column {' or '.join(names)}; its columns are {join_names(plain)}."
    )


def _one_value(row: Row, columns: Sequence[str]) -> str:
    """Return a row's only value in these columns; empty if all these cells are empty.

    Raises:
        InputError: if the cells have different values.
    """
    values = {row.cells.get(column, "") for column in columns} - {""}
    if len(values) > 1:
        raise InputError(
            f"{row.where}: {', '.join(columns)} must have the same value, got "
            f"{' and '.join(map(repr, sorted(values)))}."
        )
    return "".join(values)


PLATFORM = Platform(
    "gorilla",
    Exporter(export_gorilla),
    Reader(import_gorilla, files="CSV exports of one experiment."),
)
