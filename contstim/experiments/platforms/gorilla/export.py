"""Gorilla: a spreadsheet for each list, in the columns of the user's own task.

Facts from support.gorilla.sc (*How To: Task Builder 2*, *Walkthrough: Spreadsheets*, *Getting
Started: Formatting*): a row is a trial; `display` names the screens that it goes through; rows with
the same number under `randomise_trials` are shuffled; further columns are metadata and come back
with the data, under `Spreadsheet: ` and their names in Task Builder 2, under their names in Task
Builder 1. Texts may hold HTML and Markdown.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from contstim.errors import InputError
from contstim.experiments.platforms.display import BUTTON_LIST, QUESTION, as_html
from contstim.experiments.platforms.folder import ExportFolder, template
from contstim.experiments.platforms.lists import sides, stimulus_lists
from contstim.options import Help, Seed
from contstim.tables import read_csv

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from contstim.experiments.platforms.platform import Exported
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
    # Rows of the trial's display must be one stretch, whose place the exported trials take.
    places = [n for n, row in enumerate(rows) if row[column].strip() == display]
    if not places:
        displays = ", ".join(dict.fromkeys(row[column] for row in rows))
        raise InputError(f"{path} has no row whose display is {display!r}; they are {displays}.")
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
    # A name that is the same to the letter goes before one that is the same but for case.
    names = {name.strip().lower(): name for name in columns} | {name: name for name in columns}
    column = names.get(wanted) or names.get(wanted.strip().lower())
    if column is None:
        raise InputError(
            f"{path} has no column {wanted!r}; its columns are {', '.join(columns)}. Say which "
            "columns hold the left and the right sentence."
        )
    return column


@dataclass(frozen=True)
class GorillaSettings:
    """The task that the spreadsheets are for: one like ours, or that of a template.

    Raises:
        InputError: parts of a template are named, and there is none.
    """

    template: Annotated[
        Path | None, Help("The spreadsheet of your task, downloaded from Gorilla as CSV.")
    ] = None
    display: Annotated[str, Help("The display that shows a trial.")] = "trial"
    left: Annotated[str, Help("The template's column of the left sentence.")] = "sentence_left"
    right: Annotated[str, Help("The template's column of the right sentence.")] = "sentence_right"
    seed: Seed = 0

    def __post_init__(self) -> None:
        parts = (self.display, self.left, self.right)
        if self.template is None and parts != ("trial", DEFAULT.left, DEFAULT.right):
            raise InputError(
                "--display, --left and --right name parts of --template; give that too."
            )


def export_gorilla(
    trials: Sequence[Trial], out: Path | str, settings: GorillaSettings | None = None
) -> Exported:
    """Write spreadsheets for Gorilla, and a README that says what to do.

    With `--template`, in the columns of your own task: its other rows and cells are kept.

    Example: `contstim export gorilla --trials trials.csv --template task.csv --left text_a --right
    text_b --out gorilla`

    Raises:
        InputError: the template cannot be used (`read_template`), the trials cannot be traced back,
            or the folder holds other files.
    """
    settings = settings or GorillaSettings()
    sheet = DEFAULT
    if settings.template is not None:
        sheet = read_template(
            settings.template,
            display=settings.display,
            left=settings.left,
            right=settings.right,
        )
    folder = ExportFolder(out, "gorilla")
    lists = stimulus_lists(trials, seed=settings.seed)
    # A template that we once exported has our columns already.
    columns = (*sheet.columns, *(name for name in METADATA if name not in sheet.columns))
    for stimulus_list in lists:
        rows = []
        for shown in stimulus_list.shown:
            # Gorilla takes texts for HTML or Markdown.
            left, right = map(as_html, sides(shown))
            about = {
                "trial_id": shown.trial.trial_id,
                "list_name": stimulus_list.name,
                "shown_left": shown.left,
            }
            # What stands later wins: our cells take the place of those that the pattern row holds.
            rows.append({**sheet.pattern, sheet.left: left, sheet.right: right, **about})
        folder.rows(f"{stimulus_list.name}.csv", [*sheet.before, *rows, *sheet.after], columns)
    folder.lists(lists)
    folder.readme(
        template("gorilla.md"),
        lists=len(lists),
        question=QUESTION,
        left=sheet.left,
        right=sheet.right,
        buttons=BUTTON_LIST,
    )
    return folder.finish(seed=settings.seed, columns=list(columns))
