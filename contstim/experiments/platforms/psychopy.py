"""PsychoPy and Pavlovia: write a script and conditions files, and read the data.

There is a conditions file for each presentation list. Facts from psychopy.org, *Loops* and
*Conditions*: a conditions file is a CSV file with a row for each trial, and its column names are
valid names of variables. PsychoPy (`psychopy/data/utils.py`, `importConditions`) and PsychoJS
(`TrialHandler.importConditions`, `util.turnSquareBracketsIntoArrays`; it reads CSV with SheetJS)
interpret cells differently, so a cell must be safe in both programs:

* A cell in square brackets is evaluated as Python. In a browser, square brackets anywhere in a cell
  make it a list. In Excel files, cells in round brackets are evaluated too.
* A cell becomes a number if it is a number after its commas are replaced by points, for example
  1,5. In a browser, a cell may also become a date.
* Texts that mean a missing value in pandas (`NA`, `None`, `null`, …) become None. The texts `true`
  and `false` become truth values.
* A backslash and an n become a new line.
* In a browser, a cell that begins with = is a formula.

Facts on data (*Data outputs*, *Keyboard*, *Mouse*, *Slider*): PsychoPy writes a CSV file for each
participant, with a row for each trial. The columns of the conditions file are repeated in each row.
A component (Keyboard, Slider or Mouse) with the name `rating` writes `rating.keys` and `rating.rt`
(Keyboard), `rating.response` and `rating.rt` (Slider), or `rating.clicked_name` and `rating.time`
(Mouse). Times are in seconds. Each entry of the start-up dialogue is a column. Newer versions write
the values of a mouse as lists in brackets. Cells with a comma or a line end are quoted, but
quotation marks within these cells are not doubled (`saveAsWideText` in
`psychopy/data/experiment.py`; issue 7718). Therefore, the exported script does not save sentences.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from contstim.errors import InputError
from contstim.experiments.platforms.folder import ExportFolder, script
from contstim.experiments.platforms.lists import button_facts, stimulus_lists
from contstim.experiments.platforms.platform import Exported, Exporter, Platform, Reader
from contstim.experiments.platforms.rows import MISSING, table_rows, unnamed_note
from contstim.experiments.platforms.texts import Language, button_labels, labels
from contstim.experiments.responses import alignment
from contstim.experiments.responses.table import NO_BREAK_SPACE, escape_formula
from contstim.files.documents import shortened
from contstim.files.tables import join_names
from contstim.options import Help, Seed
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contstim.items.stimuli import Trial

COLUMNS = ("trial_id", "list_name", "stimulus_group", "left", "left_sentence", "right_sentence")

_RESERVED_WORDS = frozenset("#n/a #na <na> n/a na null none true false".split())
_DATE_WORD = re.compile(
    r"jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|"
    r"oct(ober)?|nov(ember)?|dec(ember)?|[ap]m",
    re.IGNORECASE,
)
_MAX_LISTED = 20  # maximum number of sentences in an error message

_EMPTY = (*MISSING, "[]")  # a mouse without a click writes []
# A key (4, num_4), a value of a slider (4.0) or the name of a button (b4, ['b4'])
_BUTTON = re.compile(r"\[?['\"]?(?:[A-Za-z][A-Za-z_ -]*)?([0-9])(?:\.0+)?['\"]?\]?")


def export_psychopy(
    trials: Sequence[Trial],
    out: Path | str,
    *,
    language: Language = "en",
    seed: Seed = 0,
) -> Exported:
    """Write a script and conditions files for PsychoPy and Pavlovia, and a README.

    Each group gets two lists with mirrored sides. PsychoPy draws the order of trials. If PsychoPy
    would evaluate a sentence, a no-break space is added before it. If this does not help, the
    export is refused.

    Example: `contstim export psychopy --trials trials.csv --out psychopy`

    Raises:
        InputError: if PsychoPy would change a sentence or a trial_id (the message names them); if
            `stimulus_lists` refuses the trials; if there are no texts in the language; or if the
            folder contains other files.
    """
    problems = [problem for trial in trials for problem in _find_problems(trial)]
    if problems:
        lines = "\n".join(problems[:_MAX_LISTED])
        raise InputError(
            f"PsychoPy would change these texts ({len(problems):,}). Change them, leave their "
            f"trials out, or export to another platform.\n{lines}"
        )
    folder = ExportFolder(out, "psychopy")
    lists = stimulus_lists(trials, psychopy_cell, seed=seed)
    for list_rows in lists:
        rows = [{**row, "stimulus_group": row["group"]} for row in list_rows]
        folder.rows(f"{list_rows[0]['list_name']}.csv", rows, COLUMNS)
    folder.lists(lists)
    facts = button_facts(trials[0].scale, language)
    texts = labels(language, "lists")
    keys = texts["key"].replace("{n}", facts["last"])
    task = (texts["task"], texts["question"], f"{texts['no_wrong']} {keys} {texts['space']}")
    values: dict[str, object] = {
        "ASKED": texts["question"],
        "BEGINNING": "\n\n".join(task),
        "END": f"{texts['saved']} {texts['space']}",
        "HEADING": texts["title"],
        "LABELS": button_labels(trials[0].scale, language),
        "KEY_LIST": [str(answer) for answer in trials[0].scale.answers],
    }
    folder.text("experiment.py", script("psychopy.txt", values, repr))
    folder.readme(lists=len(lists), **facts)
    return folder.finish(seed=seed)


def _find_problems(trial: Trial) -> Iterator[str]:
    name = trial.trial_id
    for text in trial.displayed_texts:
        if problem := escape_problem(text):
            yield f"  {name}: {text[:60]!r}: {problem}"
    if problem := escape_problem(name):
        yield f"  the trial_id {name!r}: {problem}"
    # A space cannot be added to a trial_id, because PsychoPy must return it unchanged
    elif psychopy_cell(name) != name:
        yield f"  the trial_id {name!r}: PsychoPy would not return it unchanged"


def psychopy_cell(text: str) -> str:
    """Return the cell for a text, so that PsychoPy and PsychoJS display the text unchanged.

    An invisible no-break space is added before formulas, quotation marks, texts in round brackets,
    and words for missing values or truth values.

    The text must have no `escape_problem`.
    """
    # PsychoPy evaluates round brackets around a whole cell
    if text.lower() in _RESERVED_WORDS or re.fullmatch(r"(?s)\(.*\)", text) or text[:1] == '"':
        return NO_BREAK_SPACE + text
    return escape_formula(text, NO_BREAK_SPACE)


def escape_problem(text: str) -> str:
    """Return the reason why PsychoPy would change a text; empty if there is none.

    Such a text contains square brackets, is a number or a date, or contains a backslash before an
    n. A no-break space before the text does not prevent the change.
    """
    if re.search(r"(?s)\[.*\]", text):
        return "PsychoPy evaluates text in square brackets"
    if "\\n" in text:
        return "PsychoPy reads a backslash with n as a line break"
    # PsychoPy reads decimal numbers, with a point or a comma. A browser also reads numbers such as
    # 0x1F
    for convert in (float, partial(int, base=0)):
        with suppress(ValueError):
            convert(text.replace(",", "."))
            return "PsychoPy reads the text as a number"
    if not any(letter.isalpha() for letter in _DATE_WORD.sub("", text)):
        return "PsychoPy may read the text as a number or a date"
    return ""


def import_psychopy(
    files: Sequence[Path | str],
    trials: Sequence[Trial],
    *,
    component: Annotated[
        str, Help("Name of the Keyboard, Mouse or Slider that recorded the rating.")
    ] = "rating",
) -> alignment.Imported:
    """Read the data of PsychoPy or Pavlovia experiments that use the exported conditions files.

    Example: `contstim import psychopy data/*.csv --trials trials.csv --out responses.csv`

    Args:
        files: data files. Rows with a trial_id are trials, in order of presentation. All other rows
            are skipped and counted. If a file has no column `participant`, all its rows belong to
            one participant, who gets the name of the file.
        trials: exported trials.
        component: the component that recorded the rating.

    Raises:
        InputError: if a file cannot be read, has no trial, or lacks the component's columns; see
            also `import_files`.
    """
    return alignment.import_files(files, trials, lambda path: _read_answers(path, component))


def _read_answers(
    path: Path, component: str
) -> Iterator[alignment.RecordedAnswer | InputError | str]:
    rows, errors = table_rows(path)
    yield from errors
    trial_rows = [row for row in rows if row.cells.get("trial_id", "")]
    if not trial_rows:
        is_of_psychopy = {"participant", "expName", "trial_id"} & rows[0].cells.keys()
        kind = alignment.NoTrialsError if is_of_psychopy else InputError
        raise kind(f"{path} has no row with a trial_id, and therefore no trials.")
    rating, time = _find_columns(path, [*trial_rows[0].cells], component)
    if n_others := len(rows) - len(trial_rows):
        yield f"{path}: skipped {quantity(n_others, 'row')} without a trial_id."
    if not any(row.cells.get("participant") for row in trial_rows):
        yield unnamed_note(path)
    position: Counter[str] = Counter()
    # Rows are in order of presentation
    for row in trial_rows:
        participant = row.cells.get("participant") or path.stem
        position[participant] += 1
        cell = row.cells.get(rating, "")
        button = "" if cell in _EMPTY else _BUTTON.fullmatch(cell)
        if button is None:
            yield InputError(
                f"{row.where}: a rating must be a key, value or button that ends in a digit, got "
                f"{shortened(cell)}."
            )
            continue
        # A mouse records the times of all its clicks; the first click is the answer
        seconds = row.cells.get(time, "").strip("[]").split(",")[0].strip()
        yield alignment.recorded_or_unreadable(
            row.where,
            participant=participant,
            trial_id=row.cells["trial_id"],
            left=row.cells.get("left", ""),
            rating=button and button[1],
            position=position[participant],
            rt_s=seconds if button and seconds not in _EMPTY else "",
            row=row.cells,
        )


def _find_columns(path: Path, columns: Sequence[str], component: str) -> tuple[str, str]:
    """Find the columns of rating and time; the second name is empty if there is no time column."""
    ratings = [f"{component}.{kind}" for kind in ("keys", "response", "clicked_name")]
    times = [f"{component}.{kind}" for kind in ("rt", "time")]
    rating = next((name for name in ratings if name in columns), None)
    if rating is None:
        raise InputError(
            f"{path} has no column {' or '.join(ratings)}; its columns are {join_names(columns)}."
        )
    return rating, next((name for name in times if name in columns), "")


PLATFORM = Platform(
    "psychopy",
    Exporter(export_psychopy),
    Reader(import_psychopy, files="CSV files, one for each participant."),
)
