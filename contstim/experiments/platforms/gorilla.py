"""Gorilla: a spreadsheet for each list, in the columns of the user's own task, and its exports.

Facts from support.gorilla.sc (*How To: Task Builder 2*, *Walkthrough: Spreadsheets*, *Getting
Started: Formatting*): a row is a trial; `display` names the screens that it goes through; rows with
the same number under `randomise_trials` are shuffled; further columns are metadata and come back
with the data, under `Spreadsheet: ` and their names in Task Builder 2, under their names in Task
Builder 1. Texts may hold HTML and Markdown.

Exports (*Data columns*) have a row for each event. A rating is a row in which a button of the scale
was pressed (`Zone Name` resp1 … resp6, from left to right) while two sentences were shown.
Instructions, fixation screens, `BEGIN TASK`, `END TASK` and `END OF FILE` stand between them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from contstim.documents import read_json_object, read_toml, shortened
from contstim.errors import InputError
from contstim.experiments.platforms.folder import ExportFolder, template
from contstim.experiments.platforms.lists import BUTTON_LIST, QUESTION, as_html, stimulus_lists
from contstim.experiments.platforms.platform import Exported, Exporter, Platform, Reader
from contstim.experiments.responses.alignment import Imported, align, recorded
from contstim.experiments.responses.checks import Problem, ResponseFinding
from contstim.experiments.responses.table import UNKNOWN
from contstim.options import Help, Seed
from contstim.scale import Scale
from contstim.tables import listed, read_csv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from contstim.experiments.responses.alignment import RecordedAnswer
    from contstim.stimuli import Trial

    Row: TypeAlias = tuple[str, dict[str, str]]  # where it stands, and its cells by our names

METADATA = ("trial_id", "list_name", "shown_left")
"""Columns that come back and tell what was shown; `shown_left` is 1 or 2."""

_DISPLAY = "display"
_COLUMNS = (_DISPLAY, "randomise_blocks", "randomise_trials", "sentence_left", "sentence_right")
# For a task whose displays are called instructions, trial and end.
_DEFAULT = [
    dict.fromkeys(_COLUMNS, "") | cells
    for cells in (
        {_DISPLAY: "instructions"},
        {_DISPLAY: "trial", "randomise_trials": "1"},
        {_DISPLAY: "end"},
    )
]


@dataclass(frozen=True)
class GorillaSettings:
    """The task that the spreadsheets are for: one like ours, or that of a template."""

    template: Annotated[
        Path | None, Help("The spreadsheet of your task, downloaded from Gorilla as CSV.")
    ] = None
    display: Annotated[str, Help("The display that shows a trial.")] = "trial"
    left: Annotated[str, Help("The template's column of the left sentence.")] = "sentence_left"
    right: Annotated[str, Help("The template's column of the right sentence.")] = "sentence_right"
    seed: Seed = 0


def export_gorilla(
    trials: Sequence[Trial], out: Path | str, settings: GorillaSettings | None = None
) -> Exported:
    """Write spreadsheets for Gorilla, and a README that says what to do.

    With `--template`, in the columns of your own task: its other rows and cells are kept.

    Example: `contstim export gorilla --trials trials.csv --template task.csv --left text_a --right
    text_b --out gorilla`

    Raises:
        InputError: the template cannot be read, lacks a column, has no row of the display, or has
            other rows between rows of it; the trials cannot be traced back, or the folder holds
            other files.
    """
    settings = settings or GorillaSettings()
    source, rows = "The spreadsheet without a template", _DEFAULT
    if settings.template is not None:
        source = str(settings.template)
        table = read_csv(settings.template, delimiters=",;\t")
        rows = [dict(zip(table, cells, strict=True)) for cells in zip(*table.values(), strict=True)]
    display, left, right = (
        _column(source, rows[0], wanted) for wanted in (_DISPLAY, settings.left, settings.right)
    )
    if left == right:
        raise InputError(f"{source}: left and right sentence need two columns, not {left!r} alone.")
    # Rows of the trial's display must be one stretch, whose place the exported trials take.
    displays = [row[display].strip() for row in rows]
    if settings.display not in displays:
        raise InputError(
            f"{source} has no row whose display is {settings.display!r}; they are "
            f"{', '.join(dict.fromkeys(displays))}."
        )
    first, number = displays.index(settings.display), displays.count(settings.display)
    if settings.display in displays[first + number :]:
        raise InputError(
            f"{source} has other rows between those of the display {settings.display!r}: keep one "
            f"of these."
        )
    folder = ExportFolder(out, "gorilla")
    lists = stimulus_lists(trials, seed=settings.seed)
    # A template that we once exported has our columns already.
    columns = list(dict.fromkeys((*rows[0], *METADATA)))
    for stimulus_list in lists:
        # Our cells take the place of those that the row holds; Gorilla takes texts for HTML.
        shown = [
            {
                **rows[first],
                left: row["left_sentence"],
                right: row["right_sentence"],
                "trial_id": row["trial_id"],
                "list_name": row["list_name"],
                "shown_left": row["left"],
            }
            for row in stimulus_list.rows(as_html)
        ]
        sheet: list[Mapping[str, object]] = [*rows[:first], *shown, *rows[first + number :]]
        folder.rows(f"{stimulus_list.name}.csv", sheet, columns)
    folder.lists(lists)
    about = {"question": QUESTION, "left": left, "right": right, "buttons": BUTTON_LIST}
    folder.readme(template("gorilla.md"), lists=len(lists), **about)
    return folder.finish(seed=settings.seed, columns=columns)


def _column(source: str, columns: Iterable[str], wanted: str) -> str:
    """The column of a name, exactly so or but for case and spaces around it."""
    # A name that is the same to the letter goes before one that is the same but for case.
    names = {name.strip().lower(): name for name in columns} | {name: name for name in columns}
    column = names.get(wanted) or names.get(wanted.strip().lower())
    if column is None:
        raise InputError(
            f"{source} has no column {wanted!r}; its columns are {', '.join(columns)}."
        )
    return column


SIDES = ("left", "right")
RECOGNISED: Mapping[str, tuple[str, ...]] = {
    "participant": ("Participant Private ID", "Participant Public ID"),
    "left": ("sentence1", "sentence_left", "left_sentence", "left", "sentenceA", "s1"),
    "right": ("sentence2", "sentence_right", "right_sentence", "right", "sentenceB", "s2"),
    "zone": ("Zone Name", "Object Name"),
    "response": ("Response",),
    "rt_ms": ("Reaction Time",),
    "position": ("Trial Number",),
    "group": (),
    "trial_id": ("trial_id",),
    "side": ("shown_left",),
}
"""Names that are recognised, compared without case, spaces, hyphens and underscores."""

# Columns of several spreadsheets end in "-ab12"; of those that a file repeats, later ones in ".1".
_SUFFIX = re.compile(r"-[a-z0-9]{4}$|\.\d+$")
# resp1 … resp6 are those of our own task; other tasks call their buttons otherwise.
_BUTTON = re.compile(
    r"(?:resp|response|rating|button|option|choice|likert)?[\s_-]*([0-9]{1,3})", re.I
)
_Name: TypeAlias = Annotated[str, Field(pattern=f"^({'|'.join(RECOGNISED)})$")]
_Texts: TypeAlias = Annotated[
    tuple[str, ...], BeforeValidator(lambda given: (given,) if isinstance(given, str) else given)
]
_BUTTONS = Scale.CONFIDENCE.answers  # those of choices are among them
_Rating: TypeAlias = Annotated[int, Field(strict=True, ge=_BUTTONS[0], le=_BUTTONS[-1])]


class GorillaOptions(BaseModel):
    """Options of reading an export; whatever is not stated is recognised, or left out.

    Attributes:
        columns: our names (keys of `RECOGNISED`) → the export's column, with those that differ
            from it only in a suffix such as `-ab12`; or several columns, exactly these; or none.
        ratings: names of zones, or else responses, → rating from left (1) to right (6). By default
            resp1 … resp6 and the like.
        only: column → the values of the rows to read, such as display → trial.
        flipped: column → the values with which the sentences stood the other way round than left
            and right say.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: dict[_Name, _Texts] = {}
    ratings: dict[str, _Rating] = {}
    only: dict[str, _Texts] = {}
    flipped: dict[str, _Texts] = {}

    @classmethod
    def read(cls, path: Path | str) -> GorillaOptions:
        """Read options from TOML or JSON: a table for each attribute.

        Raises:
            InputError: the file cannot be read, or has a table or a value that has no meaning.
        """
        is_json = Path(path).suffix.lower() == ".json"
        tables = read_json_object(path) if is_json else read_toml(path)
        try:
            return cls.model_validate(tables)
        except ValidationError as error:
            wrong = error.errors()[0]
            place = ".".join(str(part) for part in wrong["loc"] if part != "[key]")
            raise InputError(
                f"{path}: {place} = {shortened(wrong['input'])} has no meaning. There are the "
                f"tables columns (of {', '.join(RECOGNISED)}: names), ratings (names: numbers from "
                "1 to 6), only and flipped (columns: texts)."
            ) from None


@dataclass(frozen=True)
class GorillaReading:
    """The file that says how exports of Gorilla are read."""

    options: Annotated[
        Path | None, Help("Which columns hold what: TOML or JSON, see the docs.")
    ] = None


def read_gorilla(
    files: Sequence[Path], trials: Sequence[Trial], settings: GorillaReading
) -> Imported:
    """Read exports of Gorilla's task builders: a row for each event, ratings by button.

    Ratings are matched with the trials and brought into their canonical order. What does not fit is
    listed by name; nothing is dropped in silence.

    Example: `contstim import gorilla data_exp_1-v2_task-ab12.csv --trials trials.csv
    --out responses.csv`

    Raises:
        InputError: a file cannot be read, and see `import_gorilla`.
    """
    options = None if settings.options is None else GorillaOptions.read(settings.options)
    return import_gorilla(files, trials, options)


def import_gorilla(
    files: Sequence[Path | str], trials: Sequence[Trial], options: GorillaOptions | None = None
) -> Imported:
    """Responses from one or more exports, in the canonical order of their trials.

    Args:
        files: of the same experiment, such as one for each spreadsheet or version.
        trials: what was shown.
        options: which columns hold what, where their names do not tell.

    Raises:
        InputError: a file cannot be read; a column is missing; columns that should be one
            contradict each other; no rating is found; and see `align`.
    """
    options = options or GorillaOptions()
    rows = [row for file in files for row in _rows(Path(file), options)]
    column, scale = _scale(rows, options, ", ".join(map(str, files)))
    answers: list[RecordedAnswer] = []
    unrated: dict[tuple[str, object], Row] = {}
    rated: set[tuple[str, object]] = set()
    stray: dict[str, list[str]] = defaultdict(list)
    aside: Counter[str] = Counter()
    for where, cells in rows:
        rating = scale.get(cells[column])
        pair = frozenset(cells[side] for side in SIDES)
        shown = (cells["participant"], cells["trial_id"] if cells["side"] else pair)
        if not cells["side"] and "" in pair:
            aside["show no pair of sentences"] += 1
            if rating is not None:
                stray[cells["participant"]].append(where)
        elif not cells["participant"]:
            raise InputError(f"{where} shows a pair of sentences to no participant.")
        elif rating is None:
            # A trial has rows of other events too, such as clicks; they matter if none is a rating.
            aside["are other events of a trial"] += 1
            unrated.setdefault(shown, (where, cells))
        else:
            rated.add(shown)
            answers.append(_answer(where, cells, rating))
    answers = _positioned(answers)
    # When a trial without a rating was shown is not known: it has no place in the order.
    answers += [_answer(*row, UNKNOWN) for shown, row in unrated.items() if shown not in rated]
    notes = [f"{count:,} rows {what}." for what, count in aside.items()]
    idle = {cells["participant"] for _, cells in rows} - {a.participant for a in answers} - {""}
    if idle:
        notes.append(f"These participants rated nothing: {', '.join(sorted(idle))}.")
    findings = [ResponseFinding(Problem.NO_PAIR, who, tuple(where)) for who, where in stray.items()]
    return align(answers, trials, notes, findings)


def _rows(path: Path, options: GorillaOptions) -> Iterator[Row]:
    """The rows of a file in its order, columns that belong together folded into one."""
    if path.suffix.lower() in (".xlsx", ".xls", ".ods"):
        raise InputError(f"{path} is a spreadsheet: download or save it as CSV (UTF-8).")
    table = read_csv(path, delimiters=",;\t", footer="END OF FILE")
    named = {name: _columns_of(name, options, table) for name in RECOGNISED}
    # Where the export tells the trial and what stood left, the table of trials has the sentences.
    stated = named["trial_id"] and named["side"]
    missing = [n for n in ("participant", *(() if stated else SIDES)) if not named[n]]
    if not (named["zone"] or named["response"]):
        missing.append("zone or response")
    if missing:
        raise InputError(
            f"{path}: which column holds {', '.join(missing)}? Name it under [columns] in the "
            f"options. The columns are {listed(table)}."
        )
    folded = [_folded(path, table, columns) for columns in named.values()]
    wanted = _meeting(path, table, options.only)
    flipped = _meeting(path, table, options.flipped) if options.flipped else set()
    for row, values in enumerate(zip(*folded, strict=True)):
        if row not in wanted:
            continue
        cells = dict(zip(named, values, strict=True))
        # Spreadsheet programs add decimals
        cells["participant"] = re.sub(r"^([0-9]+)\.0$", r"\1", cells["participant"])
        if not (cells["trial_id"] and cells["side"]):
            cells["side"] = ""
        # What a flipped row says of the left it means of the right
        if row in flipped:
            cells["left"], cells["right"] = cells["right"], cells["left"]
            cells["side"] = {"1": "2", "2": "1"}.get(cells["side"], cells["side"])
        yield f"{path}, row {row}", cells


def _columns_of(name: str, options: GorillaOptions, columns: Iterable[str]) -> list[str]:
    """The columns of an export that hold what we call so; none where it has none.

    Raises:
        InputError: a stated column is not there.
    """
    stated = options.columns.get(name)
    if stated is None:
        return next(filter(None, (_family(each, columns) for each in RECOGNISED[name])), [])
    # One name stands for all its suffixed copies; of several, each stands for itself; stated as
    # nothing, it is not looked for, though a column may be called so.
    if len(stated) == 1:
        named = _family(stated[0], columns, plain=str.strip)
    else:
        named = [column for column in columns if column.strip() in stated]
    if stated and not named:
        raise InputError(
            f"There is no column {' or '.join(map(repr, stated))} for {name}; the columns are "
            f"{listed(columns)}."
        )
    return named


def _normalised(name: str) -> str:
    """A name in lower case without what people write in different ways."""
    # Exports write `Spreadsheet: name` for columns that come from the spreadsheet.
    return re.sub(r"[\s_-]", "", name.lower().removeprefix("spreadsheet:"))


def _family(
    name: str, columns: Iterable[str], *, plain: Callable[[str], str] = _normalised
) -> list[str]:
    """The column of a name and those that differ from it by a suffix of several spreadsheets."""
    wanted = plain(name)
    return [
        column
        for column in columns
        if wanted in (plain(column), plain(_SUFFIX.sub("", column.strip())))
    ]


def _folded(path: Path, table: Mapping[str, list[str]], columns: list[str]) -> list[str]:
    """For each row the one value that these columns hold; empty where there are none."""
    folded = []
    for row in range(len(next(iter(table.values())))):
        values = {table[column][row].strip() for column in columns} - {""}
        if len(values) > 1:
            raise InputError(
                f"{path}, row {row}: {', '.join(columns)} should hold one value, but hold "
                f"{' and '.join(map(repr, sorted(values)))}. Name the right one under [columns]."
            )
        folded.append(values.pop() if values else "")
    return folded


def _meeting(
    path: Path, table: Mapping[str, list[str]], conditions: Mapping[str, tuple[str, ...]]
) -> set[int]:
    """Numbers of the rows with one of the stated values in every stated column."""
    rows = set(range(len(next(iter(table.values())))))
    for name, values in conditions.items():
        columns = _family(name, table, plain=str.strip)
        if not columns:
            raise InputError(f"{path} has no column {name!r}; its columns are {listed(table)}.")
        folded = _folded(path, table, columns)
        rows &= {row for row, value in enumerate(folded) if value in values}
    return rows


def _answer(where: str, cells: Mapping[str, str], rating: int) -> RecordedAnswer:
    shown = {"shown": tuple(cells[side] for side in SIDES)}
    told = {"left": cells["side"]} if cells["side"] else shown
    names: tuple[str, ...] = ("participant", "group", "trial_id")
    if rating != UNKNOWN:
        names += ("position", "rt_ms")
    return recorded(where, **{name: cells[name] for name in names}, **told, rating=rating)


def _positioned(answers: Sequence[RecordedAnswer]) -> list[RecordedAnswer]:
    """Positions from 1: by the export's trial numbers where they differ, else by its order."""
    by_participant: dict[str, list[int]] = defaultdict(list)
    for index, answer in enumerate(answers):
        by_participant[answer.participant].append(index)
    positioned = list(answers)
    for indices in by_participant.values():
        # Trial numbers that repeat, as over several spreadsheets, say nothing of the order.
        numbers = [answers[index].position for index in indices]
        if UNKNOWN not in numbers and len(set(numbers)) == len(numbers):
            indices = sorted(indices, key=lambda index: answers[index].position)
        for position, index in enumerate(indices, start=1):
            positioned[index] = answers[index].model_copy(update={"position": position})
    return positioned


def _scale(rows: Iterable[Row], options: GorillaOptions, files: str) -> tuple[str, dict[str, int]]:
    """The column that holds ratings, and which rating each of its cells is.

    Zones, where they name buttons, go before responses.
    """

    def rating(cell: str) -> int | None:
        if options.ratings:
            return options.ratings.get(cell)
        button = _BUTTON.fullmatch(cell)
        return int(button[1]) if button else None

    tried = {name: {cells[name] for _, cells in rows} - {""} for name in ("zone", "response")}
    for name, cells in tried.items():
        scale = {cell: value for cell in cells if (value := rating(cell)) is not None}
        if scale:
            return name, scale
    zones, responses = (", ".join(map(repr, sorted(cells)[:12])) for cells in tried.values())
    raise InputError(
        f"No rating was found in {files}. Zones are {zones or 'none'}; responses are "
        f"{responses or 'none'}. State under [ratings] which of them means what, from 1 (very "
        "confident in the left sentence) to 6."
    )


PLATFORM = Platform(
    "gorilla",
    Exporter(export_gorilla, GorillaSettings),
    Reader(read_gorilla, GorillaReading, files="CSV exports of one experiment."),
)
