"""The table of responses: a row for each rating that a participant gave."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contstim.documents import shortened
from contstim.errors import InputError
from contstim.experiments.responses.spreadsheets import escape_formula, unescape_formula
from contstim.tables import (
    columns_of,
    count,
    listed,
    number,
    read_rows,
    text,
    whole_number,
    write_table,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

SCALE = range(1, 7)  # 1: very confident in sentence_1 … 6: very confident in sentence_2
UNKNOWN = 0  # of rating, left and position: not recorded
SIMULATED = "simulated"  # the column that only tables with artificial participants have
SIMULATED_NAME = "simulated-"  # how contstim begins the names of artificial participants


class FurtherColumns(UserWarning):
    """A table of responses has columns that nothing uses."""


@dataclass(frozen=True)
class Response:
    """A participant's rating of one trial; fields are the columns of responses.csv.

    What was not recorded is an empty cell in the file; here it is 0 (rating, left, position) or nan
    (rt_ms). The column `simulated` (true or false) is in a file only if some answer is simulated;
    where it or its cell is missing, a person answered, unless the participant's name begins with
    `simulated-`: so the mark outlives the column.
    """

    participant: str
    group: int  # from 1
    trial_id: str
    rating: int  # 1 … 6, from sentence_1 to sentence_2 of the trial, whatever side each was on
    left: int  # 1 or 2: the sentence shown left
    position: int  # order of presentation, from 1
    rt_ms: float
    simulated: bool = False  # whether an artificial participant answered

    def __post_init__(self) -> None:
        # Past the frozen dataclass: a table that lost the column must not pass for people's
        if self.participant.startswith(SIMULATED_NAME):
            object.__setattr__(self, SIMULATED, True)

    @property
    def choice(self) -> int:
        """The preferred sentence, 1 or 2; 0 where no rating was recorded."""
        # 1 to 3 prefer sentence_1, 4 to 6 sentence_2; the scale has no middle
        return 0 if self.rating == UNKNOWN else 1 + (self.rating > 3)


def mirrored(rating: int) -> int:
    """The rating seen from the other sentence; what is not on the scale stays as it is."""
    return SCALE[0] + SCALE[-1] - rating if rating in SCALE else rating


def write_responses(path: Path | str, responses: Iterable[Response]) -> None:
    """Write responses.csv (or `.parquet`, `.jsonl`): the fields of `Response`, in that order.

    Texts that a spreadsheet would run as a formula get an apostrophe in front, which
    `read_responses` takes away.

    Raises:
        InputError: the file cannot be written.
    """
    write_table(path, response_columns(responses))


def response_columns(responses: Iterable[Response]) -> dict[str, list[Any]]:
    """The columns of responses.csv; see `write_responses` and `Response`."""
    rows = list(responses)
    columns = columns_of(Response, rows)
    for name in _OPTIONAL:
        # 0 or nan: not recorded, an empty cell
        cells = columns[name]
        columns[name] = [None if cell == UNKNOWN or math.isnan(cell) else cell for cell in cells]
    for name in ("participant", "trial_id"):
        columns[name] = list(map(escape_formula, columns[name]))
    # Tables of people alone have no such column
    marks = columns.pop(SIMULATED)
    return columns | ({SIMULATED: [str(mark).lower() for mark in marks]} if any(marks) else {})


def read_responses(path: Path | str) -> tuple[Response, ...]:
    """Read what `write_responses` wrote; further columns are ignored, with a warning.

    Ratings outside the scale are read as they stand: `check_responses` names them.

    Raises:
        InputError: the file cannot be read, lacks a column, has a row without participant or trial,
            or a value of another type.
    """

    def warn(names: list[str]) -> None:
        warnings.warn(
            f"{path} has further columns, which nothing here uses or passes on: {listed(names)}. "
            "What they say of participants can be joined to results by participant.",
            FurtherColumns,
            stacklevel=1,  # one place for all callers, so that Python says it once
        )

    return read_rows(path, Response, _READERS, ignored=warn)


_TRUTH = {"": False, "false": False, "0": False, "true": True, "1": True}
_TRUTH_VALUE = "truth value; write true or false, or leave the cell empty where a person answered"


def _truth(cell: object) -> bool:
    written = "" if cell is None else str(cell).strip().lower()
    if written not in _TRUTH:
        raise ValueError(f"{written} is not a truth value")
    return _TRUTH[written]


def simulated_cell(where: str, cell: object) -> bool:
    """Whether a cell marks its answer as simulated; one that is missing or empty does not.

    Args:
        where: file and row, for messages.
        cell: true or false, as a text in any case, a truth value, or 1 or 0.

    Raises:
        InputError: the cell says something else.
    """
    try:
        return _truth(cell)
    except ValueError:
        raise InputError(
            f"{where}: {shortened(cell)} under {SIMULATED} is not a {_TRUTH_VALUE}."
        ) from None


def _reader(
    parse: Callable[[Any], Any], what: str, unknown: float | None = None
) -> tuple[Callable[[Any], Any], str]:
    """How a cell is read, the white space around it left out; an empty one is `unknown`."""

    def read(cell: Any) -> Any:
        cell = cell.strip() if isinstance(cell, str) else cell
        if cell is None or cell == "":
            if unknown is None:
                raise ValueError("an empty cell")
            return unknown
        return parse(cell)

    return read, what


_OPTIONAL = ("rating", "left", "position", "rt_ms")
_READERS = {
    "participant": _reader(lambda cell: unescape_formula(text(cell)), "text"),
    # Groups count from 1: `count` takes what is left of 1 or more
    "group": _reader(lambda cell: 1 + count(whole_number(cell) - 1), "whole number"),
    "trial_id": _reader(lambda cell: unescape_formula(text(cell)), "text"),
    "rating": _reader(whole_number, "whole number", UNKNOWN),
    "left": _reader(whole_number, "whole number", UNKNOWN),
    "position": _reader(count, "whole number", UNKNOWN),
    "rt_ms": _reader(number, "number", math.nan),
    SIMULATED: (_truth, _TRUTH_VALUE),
}
