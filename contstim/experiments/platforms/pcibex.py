"""PCIbex Farm: export of a table and a PennController 2 script, and import of the results.

Facts from doc.pcibex.net (*Template*, *GetTable*, *Sequence*, *Counterbalancing*) and the source of
PennController 2.0: columns named `group`, `item` and `label` (in capital or small letters) have
special meanings. A participant runs the rows of one group. PCIbex sorts the groups by name. Earlier
versions sort the groups by the position of each group's first row. In exported tables, both orders
are the same. A counter of the server numbers the participants. The index of a participant's group
is this number modulo the number of groups. A Text element reads its content as HTML.

Facts on results (*Logging data*, *Examining data*, and the source of PennController and Ibex): the
comment `# 12. EventTime.` gives column 12 a name, and a later comment `# 12. …` gives it another
name. The columns after EventTime contain logged values of the trial. Each trial has a line with
`_Trial_` and `Start`. Each selection has a line with `Selection`, the name of the selected element
and the time (milliseconds since 1970). Commas within a value are written `%2C`; no value is quoted.
Example of two trials:

    # 3. Order number of item.  …  # 13. trial_id.  # 14. left.
    1763,3133,5,PennController,0,_Trial_,Start,1763730000000,…,trial-7,2
    1763,3133,5,Selector,rating,Selection,4,1763730001850,…,trial-7,2
    1763,3133,6,PennController,0,_Trial_,Start,1763730020000,…,trial-3,1
    1763,3133,6,Selector,rating,Selection,1,1763730023400,…,trial-3,1

A self-hosted Ibex server (its manual and `server.py`) names the first columns `1. Time results
were received.`, `2. MD5 hash that hopefully uniquely identifies participant.`, `4. Item number.`,
`5. Element number.`, `6. Type.`, `7. Group.`. With SIMPLE_RESULTS_FILE_COMMENTS = True on the
server, these columns have no names, and a comment above each line names the other columns:
`# ...First 7... [8] PennElementType -- [9] PennElementName`.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote

from contstim.errors import InputError
from contstim.experiments.platforms.folder import ExportFolder, script
from contstim.experiments.platforms.lists import as_html, button_facts, stimulus_lists
from contstim.experiments.platforms.platform import Exported, Exporter, Platform, Reader
from contstim.experiments.platforms.rows import Row, read_data
from contstim.experiments.platforms.texts import Language, button_labels, labels
from contstim.experiments.responses import alignment
from contstim.files.documents import shortened
from contstim.files.tables import needed_columns, number
from contstim.options import Help, Seed
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contstim.items.stimuli import Trial

COLUMNS = "group item label trial_id stimulus_group left left_html right_html".split()
_COLUMN = re.compile(r"#\s*([0-9]{1,6})\.\s+(.+?)\.?\s*$")
_TIME, _ADDRESS = "Results reception time", "MD5 hash of participant's IP address"
_ITEM, _ELEMENT, _PARAMETER = "Order number of item", "PennElementType", "Parameter"
_VALUE, _EVENT = "Value", "EventTime"
_IBEX_NAMES = {
    "Time results were received": _TIME,
    "MD5 hash that hopefully uniquely identifies participant": _ADDRESS,
    "Item number": _ITEM,
}
_EMPTY = ("NULL", "undefined")
_SIMPLE = re.compile(r"\[([0-9]{1,6})\] (.+?)(?= -- \[|\s*$)")


def export_pcibex(
    trials: Sequence[Trial],
    out: Path | str,
    *,
    language: Language = "en",
    seed: Seed = 0,
) -> Exported:
    """Write a table and a PennController script for PCIbex Farm.

    A README describes the next steps. Each group gets two lists with mirrored sides. PCIbex draws
    the order of trials.

    Example: `contstim export pcibex --trials trials.csv --out pcibex`

    Raises:
        InputError: if `stimulus_lists` refuses the trials, there are no texts in the language, or
            the folder contains other files.
    """
    folder = ExportFolder(out, "pcibex")
    lists = stimulus_lists(trials, as_html, seed=seed)
    item = {trial.trial_id: number for number, trial in enumerate(trials, start=1)}
    rows = [
        {
            **row,
            # For PCIbex, a `group` is all rows of one participant; contstim calls these rows a list
            "group": row["list_name"],
            "item": item[row["trial_id"]],
            "label": "trial",
            "stimulus_group": row["group"],
            "left_html": row["left_sentence"],
            "right_html": row["right_sentence"],
        }
        for list_rows in lists
        for row in list_rows
    ]
    buttons, texts = trials[0].scale.buttons, labels(language, "lists")
    values = {
        "LABELS": [as_html(label) for label in button_labels(trials[0].scale, language)],
        "TASK": as_html(" ".join(texts[name] for name in ("task", "question", "no_wrong"))),
        "PRESS": as_html(texts["press"].replace("{n}", str(buttons[-1]))),
        **{name.upper(): as_html(texts[name]) for name in ("question", "begin", "thanks")},
    }
    folder.rows("trials.csv", rows, COLUMNS)
    folder.text("main.js", script("pcibex.js", values, partial(json.dumps, ensure_ascii=False)))
    folder.lists(lists)
    folder.readme(lists=len(lists), **button_facts(trials[0].scale, language))
    return folder.finish(seed=seed)


def import_pcibex(
    files: Sequence[Path | str],
    trials: Sequence[Trial],
    *,
    selector: Annotated[str, Help("Name of the Selector that recorded the rating.")] = "rating",
) -> alignment.Imported:
    """Read the results of the exported script on PCIbex Farm or an Ibex server.

    Example: `contstim import pcibex results.csv --trials trials.csv --out responses.csv`

    Args:
        files: `results.csv` or raw results. Lines with a trial_id belong to trials. The rating is
            the number of the selected button. The reaction time is the time from the trial's start
            to the selection. Positions of trials are in the order of their start times. If a trial
            was started but has no selection, its rating is missing.
        trials: exported trials.
        selector: name of the Selector; the names of its elements are 1, 2, ….

    Raises:
        InputError: if a file cannot be read, lacks names of columns, or has no trial; see also
            `import_files`.
    """
    return alignment.import_files(files, trials, lambda path: _read_answers(path, selector))


def _read_answers(
    path: Path, selector: str
) -> Iterator[alignment.RecordedAnswer | InputError | str]:
    # (participant, reception time, item, trial_id) → lines of this trial in this submission
    runs: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    n_others = 0
    for line in _lines(path):
        if isinstance(line, InputError):
            yield line
            continue
        cells = line.cells
        if not cells.get("trial_id"):
            n_others += 1
            continue
        needed_columns(line.where, cells, (_ITEM, _ELEMENT, _PARAMETER, _VALUE, _EVENT))
        # A participant may submit twice; the reception time distinguishes the submissions. A
        # participant without a name gets a name: the first 12 characters of the address's hash, and
        # the reception time
        reception_time = cells.get(_TIME, "")
        unnamed = "-".join(filter(None, (cells.get(_ADDRESS, "")[:12], reception_time)))
        participant = cells.get("participant", "") or unnamed
        runs[participant, reception_time, cells[_ITEM], cells["trial_id"]].append(line)
    if not runs:
        raise InputError(f"{path} has no line with a trial_id, and therefore no trials.")
    yield f"{path}: skipped {quantity(n_others, 'line')} without a trial_id."
    # Positions are computed from start times, not from item numbers, because an Ibex server numbers
    # items in the order of their definition.
    # A run is one trial in one submission. Run → (start time, item number). If no start was
    # recorded, the time of the first line is used.
    start_by_run: dict[tuple[str, ...], tuple[float, float]] = {}
    starts_by_participant: dict[str, set[tuple[float, float]]] = defaultdict(set)
    for run, lines in runs.items():
        try:
            start = _start_time(lines)
            first_time = _number(lines[0], _EVENT) if math.isnan(start) else start
            start_by_run[run] = (first_time, _number(lines[0], _ITEM))
            starts_by_participant[run[0]].add(start_by_run[run])
        except InputError as error:
            yield error
    for run, start_and_item in start_by_run.items():
        position = 1 + sorted(starts_by_participant[run[0]]).index(start_and_item)
        try:
            selections = _selections(runs[run], selector)
        except InputError as error:
            yield error
            continue
        where, first = runs[run][0].where, runs[run][0].cells
        for button, rt_ms in selections:
            answer = {"rating": button, "position": position, "rt_ms": rt_ms, "row": first}
            shown = {"trial_id": first["trial_id"], "left": first.get("left", "")}
            yield alignment.recorded_or_unreadable(where, participant=run[0], **shown, **answer)


def _start_time(lines: Sequence[Row]) -> float:
    """Return the start time of a trial (milliseconds since 1970); nan if no line has it."""
    event = ("_Trial_", "Start")
    starts = [line for line in lines if (line.cells[_PARAMETER], line.cells[_VALUE]) == event]
    return _number(starts[-1], _EVENT) if starts else math.nan


def _selections(lines: Sequence[Row], selector: str) -> list[tuple[str, float | str]]:
    """Return button and reaction time (ms) of each selection; ("", "") if there is no selection."""
    start, selections = _start_time(lines), list[tuple[str, float | str]]()
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


def _lines(path: Path) -> Iterator[Row | InputError]:
    """Yield a row or an error for each line of data; earlier comment lines name the columns."""
    names: dict[int, str] = {}  # column number (from 1) → name
    lines = read_data(path).split("\n")
    for line_number, line in enumerate(lines, start=1):
        # If a spreadsheet program saved the file, comments may be in quotation marks
        if line.startswith(("#", '"#')):
            names = _update_names(names, line.strip().strip('",'), f"{path}, line {line_number}")
        elif line.strip(", "):
            if not names:
                raise InputError(
                    f"{path} names no columns (`# 1. …`). Use a results file from PCIbex."
                )
            cells = line.split(",")
            if line_number == len(lines) and len(cells) < max(names):  # incomplete last line
                yield InputError(
                    f"{path}, line {line_number}: the file ends within this line, after "
                    f"{len(cells)} of {quantity(max(names), 'value')}."
                )
                continue
            # Split at commas before decoding `%2C`; columns count from 1
            yield Row(
                f"{path}, line {line_number}",
                {
                    name: "" if (cell := cells[n - 1]) in _EMPTY else unquote(cell).strip()
                    for n, name in names.items()
                    if n <= len(cells)
                },
            )


def _update_names(names: dict[int, str], line: str, where: str) -> dict[int, str]:
    """Return column number (from 1) → name, updated with the comment in `line`."""
    if "...First 7..." in line:
        first = {1: _TIME, 2: _ADDRESS, 4: _ITEM}
        return first | {int(n): name for n, name in _SIMPLE.findall(line)}
    if "are in groups of" in line:
        raise InputError(
            f"{where}: this comment names columns for a group of lines, which cannot be read. Set "
            "SIMPLE_RESULTS_FILE_COMMENTS = True on the Ibex server, and download the results "
            "again."
        )
    if comment := _COLUMN.match(line):
        # A comment about column n replaces the name of column n, and makes earlier names of columns
        # with higher numbers invalid
        names = {n: name for n, name in names.items() if n < int(comment[1])}
        names[int(comment[1])] = _IBEX_NAMES.get(comment[2], comment[2])
    return names


PLATFORM = Platform(
    "pcibex",
    Exporter(export_pcibex),
    Reader(import_pcibex, files="Results as downloaded."),
)
