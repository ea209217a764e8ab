"""PCIbex Farm: a table of items and a PennController 2 script.

Facts from doc.pcibex.net (*Template*, *GetTable*, *Sequence*, *Counterbalancing*) and the source of
PennController 2.0: columns named group, item and label in any case have meanings of their own; a
participant runs the rows of one group, which is number (counter modulo groups) in the order of
their names, compared as text (in earlier versions: of their first rows; both agree here); a Text
element takes its content for HTML.

Results of PCIbex: several lines for each trial, comments that name the columns.

Facts from doc.pcibex.net (*Logging data*, *Examining data*) and the source of PennController and
Ibex: a comment `# 12. EventTime.` names column 12, and comments between the data name columns anew;
what a trial logs stands after EventTime; each trial has a line `_Trial_`, `Start`, and each
Selector one with `Selection`, the name of the element and the time (milliseconds since 1970).
Commas within a value are written `%2C`; nothing is quoted.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from contstim.errors import InputError
from contstim.experiments.platforms.display import BUTTONS, QUESTION, as_html
from contstim.experiments.platforms.folder import ExportFolder, template
from contstim.experiments.platforms.lists import sides, stimulus_lists
from contstim.experiments.responses.answers import Imported, align
from contstim.experiments.responses.sides import milliseconds, sided_answer, whole
from contstim.experiments.responses.table import UNKNOWN
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contstim.experiments.design.presentation import Shown
    from contstim.experiments.platforms.lists import StimulusList
    from contstim.experiments.responses.answer import Answer
    from contstim.stimuli import Trial

COLUMNS = (
    *("group", "item", "label", "trial_id", "stimulus_group", "left"),
    *("left_html", "right_html"),
)


def export_pcibex(trials: Sequence[Trial], out: Path | str, *, seed: int = 0) -> Path:
    """Write trials.csv and main.js for a PCIbex experiment, with a README.

    Each group of the trials is two groups of PCIbex, mirrored in their sides; PCIbex draws the
    order. Sentences are escaped (`as_html`).

    Args:
        trials: a design's.
        out: the folder, new or of an earlier export.
        seed: decides sides.

    Raises:
        InputError: the trials cannot be traced back, or the folder holds other files.
    """
    folder = ExportFolder(out)
    lists = stimulus_lists(trials, seed=seed)
    item = {trial.trial_id: number for number, trial in enumerate(trials, start=1)}
    rows = [_row(one, shown, item[shown.trial.trial_id]) for one in lists for shown in one.shown]
    folder.rows("trials.csv", rows, COLUMNS)
    folder.text("main.js", _script())
    folder.lists(lists)
    folder.readme("pcibex.md", lists=len(lists))
    return folder.finish("pcibex", seed=seed)


def _row(one: StimulusList, shown: Shown, item: int) -> dict[str, object]:
    left, right = map(as_html, sides(shown))
    return {
        "group": one.name,
        "item": item,
        "label": "trial",
        "trial_id": shown.trial.trial_id,
        "stimulus_group": one.group,
        "left": shown.left,
        "left_html": left,
        "right_html": right,
    }


def _script() -> str:
    script = template("pcibex.js").replace("QUESTION", as_html(QUESTION))
    for number, label in enumerate(BUTTONS, start=1):
        script = script.replace(f"LABEL_{number}", as_html(label))
    return script


_COLUMN = re.compile(r"#\s*([0-9]{1,6})\.\s+(.+?)\.?\s*$")
_TIME, _ADDRESS = "Results reception time", "MD5 hash of participant's IP address"
_ITEM, _ELEMENT, _PARAMETER = "Order number of item", "PennElementType", "Parameter"
_VALUE, _EVENT = "Value", "EventTime"


def import_pcibex(
    files: Sequence[Path | str], trials: Sequence[Trial], *, selector: str = "rating"
) -> Imported:
    """Responses from PCIbex results, in the canonical order of their trials.

    Lines that carry a trial_id belong to trials. The rating is the number of the button selected;
    the reaction time goes from the start of the trial to that selection; the position follows from
    the order numbers of items. A trial that started and has no selection is a missing rating.

    Args:
        files: the results as downloaded, `results.csv` or raw.
        trials: what was exported.
        selector: the name of the Selector whose elements are called 1 to 6.

    Raises:
        InputError: a file cannot be read, names no columns, or has no trial; a line says something
            that cannot be; and see `align`.
    """
    by_id = {trial.trial_id: trial for trial in trials}
    answers: list[Answer] = []
    notes: list[str] = []
    for path in map(Path, files):
        runs: dict[tuple[str, ...], _Run] = {}
        others = 0
        for where, cells in _lines(path):
            if not cells.get("trial_id"):
                others += 1
                continue
            key = _key(where, cells)
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

    def answers(self, by_id: Mapping[str, Trial]) -> Iterator[Answer]:
        """One for each selection; one without a rating where there is none."""
        for button, time in self.selected or [("NA", "Never")]:
            rated = button not in ("NA", "")
            yield sided_answer(
                self.where,
                _participant(self.cells),
                self.cells["trial_id"],
                self.cells.get("left", ""),
                by_id,
                rating=whole(self.where, button, "Value of the selection") if rated else UNKNOWN,
                rt_ms=self._since_start(time) if rated else math.nan,
            )

    def _since_start(self, time: str) -> float:
        return milliseconds(self.where, time, _EVENT) - milliseconds(self.where, self.start, _EVENT)


def _positioned(found: Sequence[tuple[_Run, Answer]]) -> list[Answer]:
    """The answers of each participant, numbered by the order of their items."""
    theirs: dict[str, set[int]] = defaultdict(set)
    for run, answer in found:
        theirs[answer.participant].add(_order(run))
    rank = {
        participant: {order: n for n, order in enumerate(sorted(orders), start=1)}
        for participant, orders in theirs.items()
    }
    return [replace(a, position=rank[a.participant][_order(run)]) for run, a in found]


def _order(run: _Run) -> int:
    return whole(run.where, run.cells[_ITEM], _ITEM)


def _key(where: str, cells: Mapping[str, str]) -> tuple[str, ...]:
    missing = [name for name in (_ITEM, _ELEMENT, _PARAMETER, _VALUE, _EVENT) if name not in cells]
    if missing:
        raise InputError(f"{where} has no column {', '.join(missing)}; is it from PennController?")
    return (_participant(cells), cells.get(_TIME, ""), cells[_ITEM], cells["trial_id"])


def _participant(cells: Mapping[str, str]) -> str:
    """The name that was logged; else address and time of one submission."""
    named = cells.get("participant", "")
    return named or "-".join(filter(None, (cells.get(_ADDRESS, "")[:12], cells.get(_TIME, ""))))


def _lines(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Each line of data, its values by the names that the comments above it give."""
    names: dict[int, str] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for place, line in enumerate(file, start=1):
                if line.startswith(("#", '"#')):
                    _rename(names, line.strip().strip('"'))
                elif line.strip():
                    if not names:
                        raise InputError(f"{path} names no columns (`# 1. …`); is it from PCIbex?")
                    values = dict(enumerate(line.rstrip("\r\n").split(","), start=1))
                    yield (
                        f"{path}, line {place}",
                        {names[n]: _plain(cell) for n, cell in values.items() if n in names},
                    )
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start + 1}).") from error


def _rename(names: dict[int, str], comment: str) -> None:
    """A comment that names a column; the names after it are those of other lines."""
    found = _COLUMN.match(comment)
    if found:
        place = int(found[1])
        for later in [n for n in names if n >= place]:
            del names[later]
        names[place] = found[2]


def _plain(cell: str) -> str:
    return "" if cell in ("NULL", "undefined") else unquote(cell).strip()
