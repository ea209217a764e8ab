"""Gorilla: a spreadsheet for each list, in the columns of the user's own task.

Facts from support.gorilla.sc (*How To: Task Builder 2*, *Walkthrough: Spreadsheets*, *Getting
Started: Formatting*): a row is a trial; `display` names the screens that it goes through; rows with
the same number under `randomise_trials` are shuffled; further columns are metadata and come back
with the data, under `Spreadsheet: ` and their names in Task Builder 2, under their names in Task
Builder 1. Texts may hold HTML and Markdown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.experiments.platforms.display import BUTTON_LIST, QUESTION, as_html
from contstim.experiments.platforms.folder import ExportFolder
from contstim.experiments.platforms.lists import sides, stimulus_lists
from contstim.tables import read_csv

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from contstim.experiments.design.presentation import Shown
    from contstim.experiments.platforms.lists import StimulusList
    from contstim.stimuli import Trial

METADATA = ("trial_id", "list_name", "shown_left")
"""Columns that come back and tell what was shown; `shown_left` is 1 or 2."""

_DISPLAY, _SHUFFLE = "display", "randomise_trials"


@dataclass(frozen=True)
class Spreadsheet:
    """The columns of a task's spreadsheet, and the rows that are the same for everybody.

    Attributes:
        columns: in the order of the template.
        before: rows above the trials, such as instructions.
        pattern: a row whose display is the trial's; its other cells are kept.
        after: rows below the trials.
        left: the column of the left sentence.
        right: the column of the right sentence.
    """

    columns: tuple[str, ...]
    before: tuple[Mapping[str, str], ...]
    pattern: Mapping[str, str]
    after: tuple[Mapping[str, str], ...]
    left: str = "sentence_left"
    right: str = "sentence_right"


DEFAULT = Spreadsheet(
    ("display", "randomise_blocks", "randomise_trials", "sentence_left", "sentence_right"),
    ({_DISPLAY: "instructions"},),
    {_DISPLAY: "trial", _SHUFFLE: "1"},
    ({_DISPLAY: "end"},),
)
"""For a task whose displays are called instructions, trial and end."""


def read_template(
    path: Path | str,
    *,
    display: str = "trial",
    left: str = "sentence_left",
    right: str = "sentence_right",
) -> Spreadsheet:
    """A spreadsheet as it was downloaded from the user's task (CSV).

    Rows of the display become the exported trials; what stands above the first and below the last
    of them is kept.

    Raises:
        InputError: the file cannot be read, lacks a column, has no row of this display, or has
            other rows between rows of this display.
    """
    table = read_csv(path, delimiters=",;\t")
    column, *sentences = (_column(path, table, wanted) for wanted in (_DISPLAY, left, right))
    if sentences[0] == sentences[1]:
        raise InputError(f"{path}: left and right sentence need two columns, not {left!r} alone.")
    rows = [dict(zip(table, cells, strict=True)) for cells in zip(*table.values(), strict=True)]
    places = [n for n, row in enumerate(rows) if row[column].strip() == display]
    if not places:
        found = ", ".join(dict.fromkeys(row[column] for row in rows))
        raise InputError(f"{path} has no row whose display is {display!r}; they are {found}.")
    if places != list(range(places[0], places[-1] + 1)):
        raise InputError(
            f"{path} has other rows between those of the display {display!r}; keep one such row, "
            "where the trials belong."
        )
    return Spreadsheet(
        tuple(table),
        tuple(rows[: places[0]]),
        rows[places[0]],
        tuple(rows[places[-1] + 1 :]),
        *sentences,
    )


def _column(path: Path | str, columns: Collection[str], wanted: str) -> str:
    """The column of a name, exactly so or but for case and spaces around it."""
    names = {name.strip().lower(): name for name in columns} | {name: name for name in columns}
    found = names.get(wanted) or names.get(wanted.strip().lower())
    if found is None:
        raise InputError(
            f"{path} has no column {wanted!r}; its columns are {', '.join(columns)}. Say which "
            "columns hold the left and the right sentence."
        )
    return found


def export_gorilla(
    trials: Sequence[Trial],
    out: Path | str,
    *,
    spreadsheet: Spreadsheet = DEFAULT,
    seed: int = 0,
) -> Path:
    """Write a spreadsheet for each list (L01.csv, …), lists.csv and a README.

    Each group of the trials has two lists, mirrored in their sides. Rows stand in an order drawn
    for the list, and Gorilla shuffles them again where the pattern says so. Sentences are escaped
    (`as_html`).

    Args:
        trials: a design's.
        out: the folder, new or of an earlier export.
        spreadsheet: the columns of the task (`read_template`).
        seed: decides sides and orders.

    Raises:
        InputError: the trials cannot be traced back, or the folder holds other files.
    """
    folder = ExportFolder(out)
    lists = stimulus_lists(trials, seed=seed)
    columns = (*spreadsheet.columns, *(n for n in METADATA if n not in spreadsheet.columns))
    for one in lists:
        rows = [_row(spreadsheet, one, shown) for shown in one.shown]
        folder.rows(
            f"{one.name}.csv",
            [*spreadsheet.before, *rows, *spreadsheet.after],
            columns,
        )
    folder.lists(lists)
    folder.readme(
        "gorilla.md",
        lists=len(lists),
        question=QUESTION,
        left=spreadsheet.left,
        right=spreadsheet.right,
        buttons=BUTTON_LIST,
    )
    return folder.finish("gorilla", seed=seed, columns=list(columns))


def _row(spreadsheet: Spreadsheet, one: StimulusList, shown: Shown) -> dict[str, object]:
    left, right = map(as_html, sides(shown))
    return {
        **spreadsheet.pattern,
        spreadsheet.left: left,
        spreadsheet.right: right,
        "trial_id": shown.trial.trial_id,
        "list_name": one.name,
        "shown_left": shown.left,
    }
