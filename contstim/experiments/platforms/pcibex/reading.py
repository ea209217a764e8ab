"""Results of PCIbex: several lines for each trial, comments that name the columns.

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
from contstim.experiments.responses.alignment import Imported, align
from contstim.experiments.responses.recorded import milliseconds, sided_answer, whole
from contstim.experiments.responses.table import UNKNOWN
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contstim.experiments.responses.recorded import RecordedAnswer
    from contstim.stimuli import Trial

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
    answers: list[RecordedAnswer] = []
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

    def answers(self, by_id: Mapping[str, Trial]) -> Iterator[RecordedAnswer]:
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


def _positioned(found: Sequence[tuple[_Run, RecordedAnswer]]) -> list[RecordedAnswer]:
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
