"""What PsychoPy makes of the cells of a conditions file, and how a text stays a text.

Facts from the source of PsychoPy (`psychopy/data/utils.py`, `importConditions`) and of PsychoJS
(`TrialHandler.importConditions`, `util.turnSquareBracketsIntoArrays`; it reads CSV with SheetJS),
which disagree, so that a cell must pass both:

* a cell in square brackets is evaluated as Python; in a browser brackets anywhere make a list (in
  Excel files round brackets are evaluated too);
* a cell that is a number once its commas are points becomes one; in a browser so does a date;
* what pandas takes for missing (NA, None, null, …) becomes None, true and false truth values;
* a backslash and an n become a new line;
* in a browser what begins with = is a formula.

PsychoPy and Pavlovia: a conditions file for each list.

Facts from psychopy.org, *Loops* and *Conditions*: a CSV file with a row for each trial, whose
header holds valid variable names; and `psychopy_cells` for what becomes of the cells.

Data of PsychoPy and Pavlovia: a CSV file for each participant, a row for each trial.

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
from contstim.experiments.platforms.display import BUTTON_LIST, QUESTION, displayed
from contstim.experiments.platforms.folder import ExportFolder
from contstim.experiments.platforms.lists import sides, stimulus_lists
from contstim.experiments.responses.answers import Imported, align
from contstim.experiments.responses.sides import milliseconds, sided_answer
from contstim.experiments.responses.spreadsheets import NO_BREAK_SPACE, escape_formula
from contstim.experiments.responses.table import UNKNOWN
from contstim.tables import listed, read_csv
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contstim.experiments.design.presentation import Shown
    from contstim.experiments.platforms.lists import StimulusList
    from contstim.experiments.responses.answer import Answer
    from contstim.stimuli import Trial

_WORDS = frozenset("#n/a #na <na> n/a na null none true false".split())
_ROUND = re.compile(r"\(.*\)", re.DOTALL)
_LIST = re.compile(r"\[.*\]", re.DOTALL)
_DATE_WORD = re.compile(
    r"jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|"
    r"oct(ober)?|nov(ember)?|dec(ember)?|[ap]m",
    re.IGNORECASE,
)


def psychopy_cell(text: str) -> str:
    """The text as a cell that PsychoPy and PsychoJS both show as it is.

    A no-break space before it, which is not seen, quotes what begins like a formula, stands in
    round brackets, or is a word for missing or true.

    Raises:
        InputError: no quoting helps (`unquotable`).
    """
    problem = unquotable(text)
    if problem:
        raise InputError(f"PsychoPy would not show {_short(text)} as it is: {problem}.")
    if text.lower() in _WORDS or _ROUND.fullmatch(text):
        return NO_BREAK_SPACE + text
    return escape_formula(text, NO_BREAK_SPACE)


def unquotable(text: str) -> str:
    """Why no quoting makes PsychoPy show a text as it is; empty where one does, or none is needed.

    Square brackets, a number, a date, a backslash before an n.
    """
    if _LIST.search(text):
        return "it evaluates what stands in square brackets"
    if "\\n" in text:
        return "it takes a backslash and an n for a new line"
    if _is_number(text):
        return "it takes the text for a number"
    if not any(letter.isalpha() for letter in _DATE_WORD.sub("", text)):
        return "it may take the text for a number or a date"
    return ""


def _is_number(text: str) -> bool:
    def reads(kind: Callable[[str], float]) -> bool:
        try:
            kind(text.replace(",", "."))
        except ValueError:
            return False
        return True

    return reads(float) or reads(lambda digits: int(digits, 0))  # 0x1F is one in a browser


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "…")


COLUMNS = ("trial_id", "list_name", "stimulus_group", "left", "left_sentence", "right_sentence")


def export_psychopy(trials: Sequence[Trial], out: Path | str, *, seed: int = 0) -> Path:
    """Write a conditions file for each list (L01.csv, L02.csv, …), lists.csv and a README.

    Each group of the trials has two lists, mirrored in their sides; the loop draws the order.

    Args:
        trials: a design's.
        out: the folder, new or of an earlier export.
        seed: decides sides.

    Raises:
        InputError: PsychoPy would evaluate sentences or trial_ids, which are named; the trials
            cannot be traced back; or the folder holds other files.
    """
    _check(trials)
    folder = ExportFolder(out)
    lists = stimulus_lists(trials, seed=seed)
    tables = {one.name: [_row(one, shown) for shown in one.shown] for one in lists}
    for name, rows in tables.items():
        folder.rows(f"{name}.csv", rows, COLUMNS)
    folder.lists(lists)
    folder.readme(
        "psychopy.md",
        lists=len(lists),
        question=QUESTION,
        buttons=BUTTON_LIST,
    )
    return folder.finish("psychopy", seed=seed)


def _check(trials: Sequence[Trial]) -> None:
    """Refuse what PsychoPy would not show, or not give back, as it is; all of it at once."""
    found = [problem for trial in trials for problem in _problems(trial)]
    if found:
        more = f"\n  and {len(found) - 20:,} more" if len(found) > 20 else ""
        raise InputError(
            "PsychoPy would not show these as they are:\n"
            + "\n".join(found[:20])
            + f"{more}\nChange them or leave their trials out; other platforms show them."
        )


def _problems(trial: Trial) -> Iterator[str]:
    name = trial.trial_id
    for text in (displayed(trial.sentence_1), displayed(trial.sentence_2)):
        if problem := unquotable(text):
            yield f"  {name}: {text[:60]!r}: {problem}"
    if problem := unquotable(name):
        yield f"  the trial_id {name!r}: {problem}"
    elif psychopy_cell(name) != name:
        yield f"  the trial_id {name!r}: it would have to begin with a space"


def _row(one: StimulusList, shown: Shown) -> dict[str, object]:
    left, right = (psychopy_cell(text) for text in sides(shown))
    return {
        "trial_id": shown.trial.trial_id,
        "list_name": one.name,
        "stimulus_group": one.group,
        "left": shown.left,
        "left_sentence": left,
        "right_sentence": right,
    }


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
    answers: list[Answer] = []
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
