"""The table of responses: a row for each rating that a participant gave."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from contstim.documents import shortened
from contstim.errors import InputError
from contstim.experiments.responses.spreadsheets import escape_formula, unescape_formula
from contstim.tables import count, number, read_table, text, whole_number, write_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

SCALE = range(1, 7)  # 1: very confident in sentence_1 … 6: very confident in sentence_2
UNKNOWN = 0  # of rating, left and position: not recorded
SIMULATED = "simulated"  # the column that only tables with artificial participants have


@dataclass(frozen=True)
class Response:
    """A participant's rating of one trial; fields are the columns of responses.csv.

    What was not recorded is an empty cell in the file; here it is 0 (rating, left, position) or nan
    (rt_ms). The column `simulated` (true or false) is in a file only if some answer is simulated;
    where it or its cell is missing, a person answered.
    """

    participant: str
    group: int  # from 1
    trial_id: str
    rating: int  # 1 … 6, from sentence_1 to sentence_2 of the trial, whatever side each was on
    left: int  # 1 or 2: the sentence shown left
    position: int  # order of presentation, from 1
    rt_ms: float
    simulated: bool = False  # whether an artificial participant answered

    @property
    def choice(self) -> int:
        """The preferred sentence, 1 or 2; 0 where no rating was recorded."""
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
    left_out = set() if any(row.simulated for row in rows) else {SIMULATED}
    names = [field.name for field in fields(Response) if field.name not in left_out]
    return {name: [_cell(name, getattr(row, name)) for row in rows] for name in names}


def read_responses(path: Path | str) -> tuple[Response, ...]:
    """Read what `write_responses` wrote; further columns are ignored.

    Ratings outside the scale are read as they stand: `check_responses` names them.

    Raises:
        InputError: the file cannot be read, lacks a column, has a row without participant or trial,
            or a value of another type.
    """
    columns = read_table(path)
    missing = [f.name for f in fields(Response) if f.name not in (*columns, SIMULATED)]
    if missing:
        raise InputError(f"{path} is not a table of responses: it lacks {', '.join(missing)}.")
    columns.setdefault(SIMULATED, [None] * len(columns["participant"]))
    typed = [
        [_parse(path, row, f.name, str(f.type), value) for row, value in enumerate(columns[f.name])]
        for f in fields(Response)
    ]
    return tuple(Response(*values) for values in zip(*typed, strict=True))


_SIGNED: dict[str, Callable[[Any], float]] = {
    "group": lambda cell: 1 + count(whole_number(cell) - 1),
    "rating": whole_number,
    "left": whole_number,
    "position": count,
    "rt_ms": number,
}
_OPTIONAL = ("rating", "left", "position", "rt_ms")


def _cell(name: str, value: object) -> object:
    unknown = value == UNKNOWN or (isinstance(value, float) and math.isnan(value))
    if isinstance(value, str):
        return escape_formula(value)
    if isinstance(value, bool):
        return str(value).lower()
    return None if unknown and name in _OPTIONAL else value


def _parse(path: Path | str, row: int, name: str, kind: str, value: object) -> Any:
    if isinstance(value, str):
        value = value.strip()
    empty = value is None or value == ""
    if empty and name in _OPTIONAL:
        return math.nan if kind == "float" else UNKNOWN
    if kind == "bool":
        return simulated_cell(f"{path}, row {row}", value)
    try:
        if empty:
            raise ValueError
        if kind == "str":
            return unescape_formula(text(value))
        return _SIGNED[name](value)
    except ValueError:
        what = {"str": "text", "int": "whole number", "float": "number"}[kind]
        raise InputError(
            f"{path}, row {row}: {shortened(value)} under {name} is not a {what} that can be there."
        ) from None


def simulated_cell(where: str, value: object) -> bool:
    """Whether a cell marks its answer as simulated; one that is missing or empty does not.

    Args:
        where: file and row, for messages.
        value: true or false, as a text in any case, a truth value, or 1 or 0.

    Raises:
        InputError: the cell says something else.
    """
    cell = "" if value is None else str(value).strip().lower()
    if cell not in _TRUTH:
        raise InputError(
            f"{where}: {shortened(value)} under {SIMULATED} is not a truth value; write true or "
            "false, or leave the cell empty where a person answered."
        )
    return _TRUTH[cell]


_TRUTH = {"": False, "false": False, "0": False, "true": True, "1": True}
