"""PCIbex Farm, or an Ibex server: a table of items with a PennController 2 script, and its results.

Facts from doc.pcibex.net (*Template*, *GetTable*, *Sequence*, *Counterbalancing*) and the source of
PennController 2.0: columns named group, item and label in any case have meanings of their own; a
participant runs the rows of one group, which is number (counter modulo groups) in the order of
their names, compared as text (in earlier versions: of their first rows; both agree here); a Text
element takes its content for HTML.

Results (*Logging data*, *Examining data*, and the source of PennController and Ibex): a comment
`# 12. EventTime.` names column 12, and comments between the data name columns anew; what a trial
logs stands after EventTime; each trial has a line `_Trial_`, `Start`, and each Selector one with
`Selection`, the name of the element and the time (milliseconds since 1970). Commas within a value
are written `%2C`; nothing is quoted. So two trials of one participant are in full:

    # 3. Order number of item.  …  # 13. trial_id.  # 14. left.
    1763,3133,5,PennController,0,_Trial_,Start,1763730000000,…,trial-7,2
    1763,3133,5,Selector,rating,Selection,4,1763730001850,…,trial-7,2
    1763,3133,6,PennController,0,_Trial_,Start,1763730020000,…,trial-3,1
    1763,3133,6,Selector,rating,Selection,1,1763730023400,…,trial-3,1

An Ibex server of one's own (its manual and `server.py`) names the first columns `1. Time results
were received.`, `2. MD5 hash that hopefully uniquely identifies participant.`, `4. Item number.`,
`5. Element number.`, `6. Type.`, `7. Group.`; with simple comments it names them nowhere, and
further ones above each line: `# ...First 7... [8] PennElementType -- [9] PennElementName`.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote

from contstim.errors import InputError
from contstim.experiments.platforms.folder import ExportFolder, script
from contstim.experiments.platforms.lists import ListSettings, as_html, button_facts, stimulus_lists
from contstim.experiments.platforms.platform import Exported, Exporter, Platform, Reader
from contstim.experiments.platforms.rows import Row, read_data
from contstim.experiments.platforms.texts import button_labels, labels
from contstim.experiments.responses.alignment import (
    Imported,
    UnreadableRow,
    import_files,
    recorded_or_unreadable,
)
from contstim.files.documents import shortened
from contstim.files.tables import needed_columns, number
from contstim.options import Help
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contstim.experiments.responses.alignment import RecordedAnswer
    from contstim.items.stimuli import Trial

COLUMNS = (
    *("group", "item", "label", "trial_id", "stimulus_group", "left"),
    *("left_html", "right_html"),
)
_COLUMN = re.compile(r"#\s*([0-9]{1,6})\.\s+(.+?)\.?\s*$")
_TIME, _ADDRESS = "Results reception time", "MD5 hash of participant's IP address"
_ITEM, _ELEMENT, _PARAMETER = "Order number of item", "PennElementType", "Parameter"
_VALUE, _EVENT = "Value", "EventTime"
_OF_IBEX = {
    "Time results were received": _TIME,
    "MD5 hash that hopefully uniquely identifies participant": _ADDRESS,
    "Item number": _ITEM,
}
_SIMPLE = re.compile(r"\[([0-9]{1,6})\] (.+?)(?= -- \[|\s*$)")


def export_pcibex(
    trials: Sequence[Trial], out: Path | str, settings: ListSettings | None = None
) -> Exported:
    """Write a table and a PennController script for PCIbex Farm, and a README that says what to do.

    Each group gets two lists, mirrored in their sides; PCIbex draws the order.

    Example: `contstim export pcibex --trials trials.csv --out pcibex`

    Raises:
        InputError: the trials cannot be traced back, or the folder holds other files.
    """
    settings = settings or ListSettings()
    folder = ExportFolder(out, "pcibex")
    lists = stimulus_lists(trials, as_html, seed=settings.seed)
    # A trial has one number in both mirrored lists.
    item = {trial.trial_id: number for number, trial in enumerate(trials, start=1)}
    rows = [
        {
            **row,
            # PCIbex takes what we call a list for a group: the rows that one participant sees.
            "group": row["list_name"],
            "item": item[row["trial_id"]],
            "label": "trial",
            "stimulus_group": row["group"],
            "left_html": row["left_sentence"],
            "right_html": row["right_sentence"],
        }
        for shown in lists
        for row in shown
    ]
    buttons, texts = trials[0].scale.buttons, labels(settings.language, "lists")
    told = {
        "LABELS": [as_html(each) for each in button_labels(trials[0].scale, settings.language)],
        "TASK": as_html(" ".join(texts[name] for name in ("task", "question", "no_wrong"))),
        "PRESS": as_html(texts["press"].replace("{n}", str(buttons[-1]))),
        **{name.upper(): as_html(texts[name]) for name in ("question", "begin", "thanks")},
    }
    folder.rows("trials.csv", rows, COLUMNS)
    folder.text("main.js", script("pcibex.js", told, partial(json.dumps, ensure_ascii=False)))
    folder.lists(lists)
    folder.readme(lists=len(lists), **button_facts(trials[0].scale, settings.language))
    return folder.finish(seed=settings.seed)


@dataclass(frozen=True)
class PcibexReading:
    """Options of reading results of PCIbex; `selector` has elements that are called 1, 2, …."""

    selector: Annotated[str, Help("The Selector that took the rating.")] = "rating"


def import_pcibex(
    files: Sequence[Path | str], trials: Sequence[Trial], settings: PcibexReading | None = None
) -> Imported:
    """Read results of PCIbex Farm or of an Ibex server: those of the exported script.

    Example: `contstim import pcibex results.csv --trials trials.csv --out responses.csv`

    Args:
        files: `results.csv` or raw. Lines that carry a trial_id belong to trials. The rating is the
            number of the button selected; the reaction time goes from the start of the trial to
            that selection; the position follows from when trials began. A trial that
            started and has no selection is a missing rating.
        trials: what was exported.
        settings: defaults where None.

    Raises:
        InputError: a file cannot be read, names no columns, or has no trial; and see
            `import_files`.
    """
    selector = (settings or PcibexReading()).selector
    return import_files(files, trials, lambda path: _trials(path, selector))


def _trials(path: Path, selector: str) -> Iterator[RecordedAnswer | UnreadableRow | str]:
    """The answers of a file, trial by trial, its unreadable rows, and a note on its other lines."""
    # The lines of each trial as one participant went through it
    runs: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    others = 0
    for line in _lines(path):
        if isinstance(line, UnreadableRow):
            yield line
            continue
        cells = line.cells
        if not cells.get("trial_id"):
            others += 1
            continue
        needed_columns(line.where, cells, (_ITEM, _ELEMENT, _PARAMETER, _VALUE, _EVENT))
        # A participant may send twice: the time of the submission tells the two apart. Who was not
        # named is told by it and the address, of which there is only a hash: twelve digits do.
        sent = cells.get(_TIME, "")
        unnamed = "-".join(filter(None, (cells.get(_ADDRESS, "")[:12], sent)))
        key = (cells.get("participant", "") or unnamed, sent, cells[_ITEM], cells["trial_id"])
        runs[key].append(line)
    if not runs:
        raise InputError(f"{path} has no line with a trial_id, so nothing in it is a trial.")
    yield f"{path}: {counted(others, 'line')} of no trial."
    # Trials in the order in which they began: an Ibex server numbers items as they are defined
    beginnings: dict[tuple[str, ...], tuple[float, float]] = {}
    begun: dict[str, set[tuple[float, float]]] = defaultdict(set)
    for run, lines in runs.items():
        try:
            beginnings[run] = _beginning(lines)
            begun[run[0]].add(beginnings[run])
        except InputError as error:
            yield UnreadableRow(str(error))
    for run, beginning in beginnings.items():
        position = 1 + sorted(begun[run[0]]).index(beginning)
        try:
            selections = _selections(runs[run], selector)
        except InputError as error:
            yield UnreadableRow(str(error))
            continue
        where, first = runs[run][0].where, runs[run][0].cells
        for button, rt_ms in selections:
            yield recorded_or_unreadable(
                where,
                participant=run[0],
                trial_id=first["trial_id"],
                left=first.get("left", ""),
                rating=button,
                position=position,
                rt_ms=rt_ms,
                row=first,
            )


def _start(lines: Sequence[Row]) -> float:
    """Time at which a trial began, milliseconds since 1970; nan where no line says so."""
    starts = [
        line
        for line in lines
        if (line.cells[_PARAMETER], line.cells[_VALUE]) == ("_Trial_", "Start")
    ]
    return _number(starts[-1], _EVENT) if starts else math.nan


def _beginning(lines: Sequence[Row]) -> tuple[float, float]:
    """Time at which a trial began, or of its first line, and the number of its item."""
    start = _start(lines)
    first = _number(lines[0], _EVENT) if math.isnan(start) else start
    return first, _number(lines[0], _ITEM)


def _selections(lines: Sequence[Row], selector: str) -> list[tuple[str, float | str]]:
    """Button and reaction time (ms) of each selection in a trial; empty ones if there is none."""
    start, selections = _start(lines), list[tuple[str, float | str]]()
    for line in lines:
        cells = line.cells
        event = (cells[_ELEMENT], cells.get("PennElementName"), cells[_PARAMETER])
        if event == ("Selector", selector, "Selection") and cells[_VALUE] not in ("NA", ""):
            rt_ms = _number(line, _EVENT) - start
            selections.append((cells[_VALUE], "" if math.isnan(rt_ms) else rt_ms))
    return selections or [("", "")]


def _number(row: Row, name: str) -> float:
    try:
        return number(row.cells[name])
    except ValueError:
        value = shortened(row.cells[name])
        raise InputError(f"{row.where}: {value} under {name} is not a number.") from None


def _lines(path: Path) -> Iterator[Row | UnreadableRow]:
    """Each line of data, its values by the names that the comments above it give."""
    names: dict[int, str] = {}  # of columns, by their numbers from 1
    text = read_data(path)
    lines = text.split("\n")
    for place, line in enumerate(lines, start=1):
        # A spreadsheet program that saved the file may have put quotes around comments.
        if line.startswith(("#", '"#')):
            names = _renamed(names, line.strip().strip('",'), f"{path}, line {place}")
        elif line.strip(", "):
            if not names:
                raise InputError(f"{path} names no columns (`# 1. …`); is it from PCIbex?")
            cells = line.split(",")
            if place == len(lines) and len(cells) < max(names):  # others end in a line end
                lengths = f"{counted(len(cells), 'value')} for {max(names)} columns"
                yield UnreadableRow(f"{path}, line {place}: the file is cut off here, {lengths}.")
                continue
            # Commas are split before `%2C` becomes one; columns count from 1.
            yield Row(
                f"{path}, line {place}",
                {
                    name: ""
                    if cells[n - 1] in ("NULL", "undefined")
                    else unquote(cells[n - 1]).strip()
                    for n, name in names.items()
                    if n <= len(cells)
                },
            )


def _renamed(names: dict[int, str], line: str, where: str) -> dict[int, str]:
    """Names of columns after a comment."""
    if "...First 7..." in line:
        first = {1: _TIME, 2: _ADDRESS, 4: _ITEM}
        return first | {int(n): name for n, name in _SIMPLE.findall(line)}
    if "are in groups of" in line:
        raise InputError(
            f"{where}: columns are named for groups of lines. Set "
            "SIMPLE_RESULTS_FILE_COMMENTS = True on the Ibex server, and download again."
        )
    if comment := _COLUMN.match(line):
        # What other lines logged after this column is not said of the next ones.
        names = {n: name for n, name in names.items() if n < int(comment[1])}
        names[int(comment[1])] = _OF_IBEX.get(comment[2], comment[2])
    return names


PLATFORM = Platform(
    "pcibex",
    Exporter(export_pcibex, ListSettings),
    Reader(import_pcibex, PcibexReading, files="Results as downloaded."),
)
