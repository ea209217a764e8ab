"""Data of PsychoPy and Pavlovia: a CSV file for each participant, a row for each trial.

Facts from psychopy.org (*Data outputs*, *Keyboard*, *Mouse*, *Slider*): the columns of the
conditions come back with each row; a component `rating` writes `rating.keys` and `rating.rt`
(Keyboard), `rating.response` and `rating.rt` (Slider), or `rating.clicked_name` and `rating.time`
(Mouse); times are in seconds; what the start-up dialogue asked is a column. Newer versions write
the values of a mouse as lists in brackets.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.documents import shortened
from contstim.errors import InputError
from contstim.experiments.responses.alignment import Imported, align
from contstim.experiments.responses.recorded import milliseconds, sided_answer
from contstim.experiments.responses.table import UNKNOWN
from contstim.tables import listed, read_csv
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contstim.experiments.responses.recorded import RecordedAnswer
    from contstim.stimuli import Trial

_RATINGS = ("keys", "response", "clicked_name")
_TIMES = ("rt", "time")
_EMPTY = ("", "None", "NaN", "nan", "undefined", "null", "[]")
_BUTTON = re.compile(r"\[?['\"]?[A-Za-z_ -]*([0-9])(?:\.0+)?['\"]?\]?")


def import_psychopy(
    files: Sequence[Path | str], trials: Sequence[Trial], *, component: str = "rating"
) -> Imported:
    """Responses from PsychoPy's CSV files, in the canonical order of their trials.

    A row with a trial_id is a trial; all others are left aside and counted. The position is the
    order of these rows. A file without a `participant`, or with an empty one, is one participant,
    named as the file.

    Args:
        files: of any number of participants.
        trials: what was exported.
        component: the name of the component that recorded the rating.

    Raises:
        InputError: a file cannot be read, has no trial, or no column of the component; a rating is
            none of 1 to 6; and see `align`.
    """
    by_id = {trial.trial_id: trial for trial in trials}
    answers: list[RecordedAnswer] = []
    notes: list[str] = []
    for path in map(Path, files):
        rows = _rows(path)
        about = [(n, row) for n, row in enumerate(rows) if row.get("trial_id", "")]
        if not about:
            raise InputError(f"{path} has no row with a trial_id, so nothing in it is a trial.")
        rating = _column(path, rows, component, _RATINGS)
        time = _column(path, rows, component, _TIMES, needed=False)
        if len(about) < len(rows):
            notes.append(f"{path}: {counted(len(rows) - len(about), 'row')} of no trial.")
        if not any(row.get("participant") for _, row in about):
            notes.append(f"{path} names no participant: it is one, called {path.stem}.")
        shown: Counter[str] = Counter()
        for n, row in about:
            where = f"{path}, row {n}"
            participant = row.get("participant") or path.stem
            shown[participant] += 1
            button = _button(where, row[rating], rating)
            answers.append(
                sided_answer(
                    where,
                    participant,
                    row["trial_id"],
                    row.get("left", ""),
                    by_id,
                    rating=button,
                    position=shown[participant],
                    rt_ms=_first_time(where, row[time], time) if time and button else math.nan,
                )
            )
    return align(answers, trials, notes)


def _rows(path: Path) -> list[dict[str, str]]:
    table = read_csv(path, delimiters=",;\t")
    cells = zip(*table.values(), strict=True)
    return [dict(zip(table, (cell.strip() for cell in row), strict=True)) for row in cells]


def _column(
    path: Path,
    rows: Sequence[Mapping[str, str]],
    component: str,
    kinds: Sequence[str],
    *,
    needed: bool = True,
) -> str:
    columns = list(rows[0])
    wanted = [f"{component}.{kind}" for kind in kinds]
    found = [name for name in wanted if name in columns]
    if needed and not found:
        raise InputError(
            f"{path} has no column {' or '.join(wanted)}; its columns are {listed(columns)}. "
            "Name the component that recorded the rating (--component)."
        )
    return next(iter(found), "")


def _button(where: str, cell: str, column: str) -> int:
    if cell in _EMPTY:
        return UNKNOWN
    found = _BUTTON.fullmatch(cell)
    if not found:
        raise InputError(
            f"{where}: {shortened(cell)} under {column} is not a rating; "
            "a key or a button whose name ends in 1 to 6 is one."
        )
    return int(found[1])


def _first_time(where: str, cell: str, column: str) -> float:
    """Seconds, the first of a list, as milliseconds."""
    first = cell.strip("[]").split(",")[0].strip()
    return math.nan if first in _EMPTY else milliseconds(where, first, column, unit=1_000)
