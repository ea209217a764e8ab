"""Exports of Gorilla's task builders: a row for each event, among them the ratings.

A rating is a row in which a button of the scale was pressed (`Zone Name` resp1 … resp6, from left
to right) while two sentences were shown. Instructions, fixation screens, `BEGIN TASK`, `END TASK`
and `END OF FILE` stand between them. Format: support.gorilla.sc, *Data columns*.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from contstim.documents import shortened
from contstim.errors import InputError
from contstim.experiments.platforms.gorilla.columns import (
    RECOGNISED,
    REQUIRED,
    SIDES,
    GorillaOptions,
    family,
)
from contstim.experiments.responses.alignment import Imported, align
from contstim.experiments.responses.checks import Problem, ResponseFinding
from contstim.experiments.responses.recorded import RecordedAnswer, shown_by_side
from contstim.experiments.responses.table import UNKNOWN
from contstim.options import Help
from contstim.sentence import END_MARKS, Sentence
from contstim.tables import listed, number, read_csv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from contstim.stimuli import Trial

# resp1 … resp6 are those of our own task; other tasks call their buttons otherwise.
_BUTTON = re.compile(
    r"(?:resp|response|rating|button|option|choice|likert)?[\s_-]*([0-9]{1,3})", re.I
)


@dataclass(frozen=True)
class GorillaReading:
    """The files that say how exports of Gorilla are read."""

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
    by_id = {trial.trial_id: trial for trial in trials}
    rows = [row for file in files for row in _rows(Path(file), options, by_id)]
    answers, notes, stray = _answers(rows, options, ", ".join(map(str, files)))
    return align(answers, trials, notes, stray)


@dataclass(frozen=True)
class _Row:
    where: str
    cells: Mapping[str, str]  # by our names; empty where the export has no such column or cell


def _rows(path: Path, options: GorillaOptions, by_id: Mapping[str, Trial]) -> Iterator[_Row]:
    """The rows of a file in its order, columns that belong together folded into one."""
    if path.suffix.lower() in (".xlsx", ".xls", ".ods"):
        raise InputError(f"{path} is a spreadsheet: download or save it as CSV (UTF-8).")
    table = read_csv(path, delimiters=",;\t", footer="END OF FILE")
    named = {name: options.find(name, table) for name in RECOGNISED}
    # Where the export tells the trial and what stood left, the table of trials has the sentences.
    stated = bool(by_id and named["trial_id"] and named["side"])
    missing = [name for name in REQUIRED if not named[name] and not (stated and name in SIDES)]
    if missing or not (named["zone"] or named["response"]):
        missing += [] if named["zone"] or named["response"] else ["zone or response"]
        raise InputError(
            f"{path}: which column holds {', '.join(missing)}? Name it under [columns] in the "
            f"options. The columns are {listed(table)}."
        )
    shape = {name: _folded(path, table, columns) for name, columns in named.items() if columns}
    wanted = _matching(path, table, options.only)
    flipped = _matching(path, table, options.flipped, default=False)
    # What a flipped row says of the left it means of the right
    mirror = {"left": "right", "right": "left"}
    for row in range(len(next(iter(table.values())))):
        if wanted(row):
            cells = {name: shape[name][row] if name in shape else "" for name in RECOGNISED}
            where = f"{path}, row {row}"
            if stated and cells["trial_id"] and cells["side"]:
                pair = shown_by_side(where, cells["trial_id"], cells["side"], by_id)
                cells |= zip(SIDES, pair, strict=True)
            if flipped(row):
                cells = {name: cells[mirror.get(name, name)] for name in cells}
            yield _Row(where, cells)


def _folded(path: Path, table: Mapping[str, list[str]], columns: list[str]) -> list[str]:
    """For each row the one value that these columns hold."""
    folded = []
    for row, cells in enumerate(zip(*(table[column] for column in columns), strict=True)):
        values = {cell.strip() for cell in cells if cell.strip()}
        if len(values) > 1:
            raise InputError(
                f"{path}, row {row}: {', '.join(columns)} should hold one value, but hold "
                f"{' and '.join(map(repr, sorted(values)))}. Name the right one under [columns]."
            )
        folded.append(values.pop() if values else "")
    return folded


def _matching(
    path: Path,
    table: Mapping[str, list[str]],
    conditions: Mapping[str, tuple[str, ...]],
    *,
    default: bool = True,
) -> Callable[[int], bool]:
    """Function that is true of rows with one of the stated values in every stated column."""
    folded = {}
    for name in conditions:
        columns = family(name, table, exact=True)
        if not columns:
            raise InputError(f"{path} has no column {name!r}; its columns are {listed(table)}.")
        folded[name] = _folded(path, table, columns)
    if not conditions:
        return lambda _: default
    return lambda row: all(folded[name][row] in values for name, values in conditions.items())


def _answers(
    rows: Sequence[_Row], options: GorillaOptions, files: str
) -> tuple[list[RecordedAnswer], list[str], list[ResponseFinding]]:
    """Every rating and every trial shown without one; what other rows are; ratings of nothing."""
    column, scale = _scale(rows, options, files)
    answers: list[RecordedAnswer] = []
    shown: dict[tuple[str, frozenset[str]], _Row] = {}
    stray: dict[str, list[str]] = defaultdict(list)
    aside: Counter[str] = Counter()
    for row in rows:
        rating = scale.get(row.cells[column])
        if not (row.cells["left"] and row.cells["right"]):
            aside["show no pair of sentences"] += 1
            if rating is not None:
                stray[_participant(row)].append(row.where)
        elif not row.cells["participant"]:
            raise InputError(f"{row.where} shows a pair of sentences to no participant.")
        else:
            answer = _answer(row, rating)
            # A trial has rows of other events too, such as clicks; they matter if none is a rating.
            if rating is None:
                shown.setdefault((answer.participant, answer.pair), row)
                aside["are other events of a trial"] += 1
            else:
                answers.append(answer)
    rated = {(answer.participant, answer.pair) for answer in answers}
    unrated = [_answer(row, None) for key, row in shown.items() if key not in rated]
    notes = [f"{count:,} rows {what}." for what, count in aside.items()]
    idle = {_participant(row) for row in rows} - {a.participant for a in answers} - {""}
    if idle:
        notes.append(f"These participants rated nothing: {', '.join(sorted(idle))}.")
    findings = [ResponseFinding(Problem.NO_PAIR, who, tuple(where)) for who, where in stray.items()]
    return _positioned([*answers, *unrated]), notes, findings


def _answer(row: _Row, rating: int | None) -> RecordedAnswer:
    cells = row.cells
    position = UNKNOWN
    rt_ms = math.nan
    if rating is not None:
        place = _number(row, "position", UNKNOWN)
        if place < 0 or place % 1:
            raise InputError(f"{row.where}: {place:g} under position is not a place in an order.")
        position, rt_ms = int(place), _number(row, "rt_ms", math.nan)
    return RecordedAnswer(
        row.where,
        _participant(row),
        cells["group"],
        cells["trial_id"],
        (Sentence.parse(cells["left"]).text, Sentence.parse(cells["right"]).text),
        UNKNOWN if rating is None else rating,
        position,
        rt_ms,
        all(cells[side].endswith(END_MARKS) for side in ("left", "right")),
    )


def _participant(row: _Row) -> str:
    """The identifier, without the decimals that spreadsheet programs add."""
    return re.sub(r"^([0-9]+)\.0$", r"\1", row.cells["participant"])


def _number(row: _Row, name: str, empty: float) -> float:
    cell = row.cells[name]
    try:
        return float(number(cell)) if cell else empty
    except ValueError:
        raise InputError(f"{row.where}: {shortened(cell)} under {name} is not a number.") from None


def _positioned(answers: Sequence[RecordedAnswer]) -> list[RecordedAnswer]:
    """Positions from 1: by the export's trial numbers where they differ, else by its order."""
    by_participant: dict[str, list[int]] = defaultdict(list)
    for index, answer in enumerate(answers):
        # When a trial without a rating was shown is not known: it has no place in the order.
        if answer.rating != UNKNOWN:
            by_participant[answer.participant].append(index)
    positioned = list(answers)
    for indices in by_participant.values():
        # Trial numbers that repeat, as over several spreadsheets, say nothing of the order.
        numbers = [answers[index].position for index in indices]
        if UNKNOWN not in numbers and len(set(numbers)) == len(numbers):
            indices = sorted(indices, key=lambda index: answers[index].position)
        for position, index in enumerate(indices, start=1):
            positioned[index] = replace(answers[index], position=position)
    return positioned


def _scale(rows: Iterable[_Row], options: GorillaOptions, files: str) -> tuple[str, dict[str, int]]:
    """The column that holds ratings, and which rating each of its cells is.

    Zones, where they name buttons, go before responses.
    """

    def rating(cell: str) -> int | None:
        if options.ratings:
            return options.ratings.get(cell)
        button = _BUTTON.fullmatch(cell)
        return int(button[1]) if button else None

    tried = {name: {row.cells[name] for row in rows} - {""} for name in ("zone", "response")}
    for name, cells in tried.items():
        scale = {cell: value for cell in cells if (value := rating(cell)) is not None}
        if scale:
            return name, scale
    raise InputError(
        f"No rating was found in {files}. Zones are {_some(tried['zone'])}; responses are "
        f"{_some(tried['response'])}. State under [ratings] which of them means what, from 1 (very "
        "confident in the left sentence) to 6."
    )


def _some(names: Iterable[str]) -> str:
    names = sorted(names)
    return ", ".join(map(repr, names[:12])) + (", …" if len(names) > 12 else "") or "none"
