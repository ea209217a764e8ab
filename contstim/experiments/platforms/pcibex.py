"""PCIbex Farm: a table of items with a PennController 2 script, and its results.

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
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote

from contstim.errors import InputError
from contstim.experiments.platforms.display import BUTTONS, QUESTION, as_html
from contstim.experiments.platforms.folder import ExportFolder, template
from contstim.experiments.platforms.lists import ListSettings, sides, stimulus_lists
from contstim.experiments.platforms.platform import Exported, Exporter, Platform, Reader
from contstim.experiments.responses.alignment import Imported, align
from contstim.experiments.responses.recorded import milliseconds, sided_answer, whole
from contstim.experiments.responses.table import UNKNOWN
from contstim.options import Help
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contstim.experiments.responses.recorded import RecordedAnswer
    from contstim.stimuli import Trial

COLUMNS = (
    *("group", "item", "label", "trial_id", "stimulus_group", "left"),
    *("left_html", "right_html"),
)
_COLUMN = re.compile(r"#\s*([0-9]{1,6})\.\s+(.+?)\.?\s*$")
_TIME, _ADDRESS = "Results reception time", "MD5 hash of participant's IP address"
_ITEM, _ELEMENT, _PARAMETER = "Order number of item", "PennElementType", "Parameter"
_VALUE, _EVENT = "Value", "EventTime"


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
    lists = stimulus_lists(trials, seed=settings.seed)
    # A trial has one number in both mirrored lists.
    item = {trial.trial_id: number for number, trial in enumerate(trials, start=1)}
    rows = []
    for stimulus_list in lists:
        for shown in stimulus_list.shown:
            left, right = map(as_html, sides(shown))
            # PCIbex takes what we call a list for a group: the rows that one participant sees.
            rows.append(
                {
                    "group": stimulus_list.name,
                    "item": item[shown.trial.trial_id],
                    "label": "trial",
                    "trial_id": shown.trial.trial_id,
                    "stimulus_group": stimulus_list.group,
                    "left": shown.left,
                    "left_html": left,
                    "right_html": right,
                }
            )
    script = template("pcibex.js").replace("QUESTION", as_html(QUESTION))
    for number, label in enumerate(BUTTONS, start=1):
        script = script.replace(f"LABEL_{number}", as_html(label))
    folder.rows("trials.csv", rows, COLUMNS)
    folder.text("main.js", script)
    folder.lists(lists)
    folder.readme(template("pcibex.md"), lists=len(lists))
    return folder.finish(seed=settings.seed)


@dataclass(frozen=True)
class PcibexReading:
    """Options of reading results of PCIbex; `selector` has elements that are called 1 to 6."""

    selector: Annotated[str, Help("The Selector that took the rating.")] = "rating"


def import_pcibex(
    files: Sequence[Path | str], trials: Sequence[Trial], settings: PcibexReading | None = None
) -> Imported:
    """Read results of PCIbex: those of the script that `contstim export pcibex` wrote.

    Example: `contstim import pcibex results.csv --trials trials.csv --out responses.csv`

    Args:
        files: `results.csv` or raw. Lines that carry a trial_id belong to trials. The rating is the
            number of the button selected; the reaction time goes from the start of the trial to
            that selection; the position follows from the order numbers of items. A trial that
            started and has no selection is a missing rating.
        trials: what was exported.
        settings: defaults where None.

    Raises:
        InputError: a file cannot be read, names no columns, or has no trial; a line says something
            that cannot be; and see `align`.
    """
    selector = (settings or PcibexReading()).selector
    by_id = {trial.trial_id: trial for trial in trials}
    answers: list[RecordedAnswer] = []
    notes: list[str] = []
    for path in map(Path, files):
        runs: dict[tuple[str, ...], _Run] = {}
        others = 0
        for where, cells in _lines(path):
            if not cells.get("trial_id"):
                others += 1
                continue
            missing = [n for n in (_ITEM, _ELEMENT, _PARAMETER, _VALUE, _EVENT) if n not in cells]
            if missing:
                raise InputError(
                    f"{where} has no column {', '.join(missing)}; is it from PennController?"
                )
            # A participant may send twice: the time of the submission tells the two apart.
            key = (_participant(cells), cells.get(_TIME, ""), cells[_ITEM], cells["trial_id"])
            runs.setdefault(key, _Run(where, cells)).add(cells, selector)
        if not runs:
            raise InputError(
                f"{path} has no line with a trial_id, so nothing in it is a trial. Was it "
                "collected with the script that was exported?"
            )
        notes.append(f"{path}: {counted(others, 'line')} of no trial.")
        answers += _positioned(
            [(run, answer) for run in runs.values() for answer in run.answers(by_id)]
        )
    return align(answers, trials, notes)


@dataclass
class _Run:
    """One trial as one participant went through it."""

    where: str
    cells: Mapping[str, str]
    start: str = ""
    selected: list[tuple[str, str]] = field(default_factory=list)  # button and time

    def add(self, cells: Mapping[str, str], selector: str) -> None:
        if cells.get(_PARAMETER) == "_Trial_" and cells.get(_VALUE) == "Start":
            self.start = cells[_EVENT]
        elif (
            cells.get(_ELEMENT) == "Selector"
            and cells.get("PennElementName") == selector
            and cells.get(_PARAMETER) == "Selection"
        ):
            self.selected.append((cells[_VALUE], cells[_EVENT]))

    def answers(self, by_id: Mapping[str, Trial]) -> Iterator[RecordedAnswer]:
        """An answer for each selection; an answer without a rating where there is none."""
        for button, time in self.selected or [("NA", "Never")]:
            rating, rt_ms = UNKNOWN, math.nan
            if button not in ("NA", ""):
                rating = whole(self.where, button, "Value of the selection")
                rt_ms = milliseconds(self.where, time, _EVENT)
                rt_ms -= milliseconds(self.where, self.start, _EVENT)
            yield sided_answer(
                self.where,
                _participant(self.cells),
                self.cells["trial_id"],
                self.cells.get("left", ""),
                by_id,
                rating=rating,
                rt_ms=rt_ms,
            )

    @property
    def order(self) -> int:
        """The number of the item, which counts instructions and pauses too."""
        return whole(self.where, self.cells[_ITEM], _ITEM)


def _positioned(run_answers: Sequence[tuple[_Run, RecordedAnswer]]) -> list[RecordedAnswer]:
    """The answers of each participant, numbered from 1 by the order of their items."""
    # Items are counted with instructions and pauses: only the order of the numbers tells.
    orders: dict[str, set[int]] = defaultdict(set)
    for run, answer in run_answers:
        orders[answer.participant].add(run.order)
    position = {
        (participant, order): place
        for participant, numbers in orders.items()
        for place, order in enumerate(sorted(numbers), start=1)
    }
    return [
        replace(answer, position=position[answer.participant, run.order])
        for run, answer in run_answers
    ]


def _participant(cells: Mapping[str, str]) -> str:
    """The name that was logged; else address and time of one submission."""
    # Of the address there is only a hash; its first twelve digits tell people apart.
    named = cells.get("participant", "")
    return named or "-".join(filter(None, (cells.get(_ADDRESS, "")[:12], cells.get(_TIME, ""))))


def _lines(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Each line of data, its values by the names that the comments above it give."""
    names: dict[int, str] = {}  # of columns, by their numbers from 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for place, line in enumerate(file, start=1):
                # A spreadsheet program that saved the file may have put quotes around comments.
                if line.startswith(("#", '"#')):
                    comment = _COLUMN.match(line.strip().strip('"'))
                    if comment:
                        # What other lines logged after this column is not said of the next ones.
                        names = {n: name for n, name in names.items() if n < int(comment[1])}
                        names[int(comment[1])] = comment[2]
                elif line.strip():
                    if not names:
                        raise InputError(f"{path} names no columns (`# 1. …`); is it from PCIbex?")
                    # Commas are split before `%2C` becomes one; columns count from 1.
                    cells = line.rstrip("\r\n").split(",")
                    values = {
                        n: "" if cell in ("NULL", "undefined") else unquote(cell).strip()
                        for n, cell in enumerate(cells, start=1)
                    }
                    yield (
                        f"{path}, line {place}",
                        {names[n]: cell for n, cell in values.items() if n in names},
                    )
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start + 1}).") from error


PLATFORM = Platform(
    "pcibex",
    Exporter(export_pcibex, ListSettings),
    Reader(import_pcibex, PcibexReading, files="Results as downloaded."),
)
