"""Rows of platforms' data: unreadable rows are reported, and all other rows are read.

Files are often damaged. PsychoPy does not double quotation marks within cells. JATOS repeats the
header of a table, or writes JSON arrays without a separator. The last line may be cut off.
"""

from __future__ import annotations

import csv
import io
import json
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.files.documents import parse_json, read_text
from contstim.files.files import reading
from contstim.files.tables import join_names
from contstim.wording import find_duplicates, grouped, quantity

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence
    from pathlib import Path

MISSING = ("", "NA", "N/A", "#N/A", "None", "NaN", "nan", "null", "undefined")
"""Texts for a missing value in spreadsheets, R, pandas, Python and JavaScript."""

_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_THOUSANDS_AND_POINT = re.compile(r"[+-]?\d{1,3}(,\d{3})+\.\d+")
_JSON_LINE = re.compile(r'^\s*("?\[\s*)?\{\s*\\?"', re.MULTILINE)
# After a damaged JSON value, reading continues at the next line that begins with a bracket, at the
# next array of objects, or at the next object of an array, whichever comes first
_NEXT_VALUE = re.compile(r'\n(?=\s*[\[{])|(?=\[\s*\{\s*")|\}\s*,\s*(?=\{\s*")')


@dataclass(frozen=True)
class Row:
    """A row of data.

    Attributes:
        where: file and line, for messages.
        cells: column name → value; cells of a CSV file have no outer spaces.
        run: identifier of the run of the experiment that wrote the row; None if unknown.
    """

    where: str
    cells: Mapping[str, Any]
    run: Hashable = None


def read_data(path: Path) -> str:
    """Return the text of a file, with LF as line ends.

    Raises:
        InputError: if the file cannot be read, or has an encoding other than UTF-8 or UTF-16. A
            UTF-16 file must begin with a byte order mark.
    """
    with reading(path):
        with path.open("rb") as start:
            is_wide = start.read(2) in (BOM_UTF16_LE, BOM_UTF16_BE)
        text = path.read_text(encoding="utf-16") if is_wide else read_text(path)
    if "\0" in text[:100]:
        raise InputError(
            f"{path} is not a text file, or is UTF-16 without a byte order mark. Save it as UTF-8."
        )
    # Joined files have byte order marks in the middle
    return text.replace("\ufeff", "")


def unnamed_note(path: Path) -> str:
    """Return a note about a file that names no participant."""
    return (
        f"{path} names no participant. All its rows are read as answers of one participant "
        f"with the name {path.stem}."
    )


def looks_like_json(text: str) -> bool:
    """Return whether a text, or one of its lines, begins like a JSON array or object."""
    return text.lstrip()[:1] in ("[", "{") or _JSON_LINE.search(text) is not None


def table_rows(
    path: Path, text: str | None = None, *, footer: str | None = None
) -> tuple[list[Row], list[InputError]]:
    """Read the rows of a CSV file whose cells are separated by commas, semicolons or tabs.

    Also return an error for each unreadable row.

    Blank rows are left out. A repeated header begins a new run (session of a participant). If cells
    are separated by semicolons or tabs, decimal commas become points (see `_with_points`).

    If `text` is None, the file is read. Rows whose first cell is `footer` contain no data and are
    left out.

    Raises:
        InputError: if the file cannot be read, has no readable row, or names a column twice.
    """
    lines = list(io.StringIO(read_data(path) if text is None else text))
    delimiter, at = _delimiter(lines)
    header: list[str] = []
    rows: list[Row] = []
    errors: list[InputError] = []
    run = 0
    while at < len(lines):
        where = f"{path}, line {at + 1}"
        cells, n_lines = _record(lines, at, delimiter, header, footer)
        at += n_lines
        if isinstance(cells, str):
            errors.append(InputError(f"{where}: {cells}"))
        elif not any(cells) or cells[0] == footer:
            continue
        elif not header or _is_header(cells, header):
            header, run = cells, run + 1
            if twice := sorted({*find_duplicates(header)} - {""}):
                raise InputError(f"{path} names these columns twice: {join_names(twice)}.")
        else:
            rows.append(Row(where, dict(zip(header, cells, strict=False)), run))
    if not header:
        raise InputError(f"{path} is empty. Use a file with a header and rows.")
    if not rows:
        example = f": {join_names(errors, 1)}" if errors else "."
        raise InputError(f"{path} has a header, but no readable rows{example}")
    return rows if delimiter == "," else _with_points(rows, delimiter), errors


def _delimiter(lines: Sequence[str]) -> tuple[str, int]:
    first = lines[0] if lines else ""
    if declared := re.fullmatch(r'"?sep=([,;\t])"?\s*', first):  # an Excel declaration
        return declared[1], 1
    return max(",;\t", key=re.sub('"[^"]*"', "", first).count), 0


def _is_header(cells: Sequence[str], header: Sequence[str]) -> bool:
    return cells == header or ("trial_id" in header and "trial_id" in cells)


def _record(
    lines: Sequence[str], at: int, delimiter: str, header: Sequence[str], footer: str | None
) -> tuple[list[str] | str, int]:
    """Return the cells of the CSV record that begins at line `at`, and its number of lines.

    If the record is unreadable, return the reason instead of the cells.
    """
    remaining_lines = (lines[index] for index in range(at, len(lines)))
    reader = csv.reader(remaining_lines, delimiter=delimiter, strict=True)
    try:
        cells = [cell.strip() for cell in next(reader)]
        # A row may end in additional empty cells, but every value needs a column name
        n_named = max((index for index, name in enumerate(header, start=1) if name), default=0)
        fits = len(cells) >= len(header) and not any(cells[n_named:])
        is_no_data = not header or not any(cells) or cells[0] == footer or _is_header(cells, header)
        if fits or is_no_data:
            return cells, reader.line_num
        problem = f"{quantity(len(cells), 'value')} for {len(header)} columns."
    except csv.Error as error:
        problem = f"the row that begins here is not readable CSV ({error})."
    # Read only one line, so that a missing quotation mark does not affect the following rows
    cells = _split_at_outer_quotes(lines[at].rstrip("\n"), delimiter)
    return (cells if len(cells) == len(header) else problem, 1)


def _split_at_outer_quotes(line: str, delimiter: str) -> list[str]:
    """Split a line in which quotation marks within cells are not doubled.

    A quotation mark is part of a text if a delimiter and a space follow. If a cell has an odd
    number of quotation marks, the result is empty.
    """
    pattern = re.compile(f'"(?P<quoted>.*?)"(?={delimiter}(?! )|$)|(?P<bare>[^{delimiter}]*)')
    cells, at = [], 0
    while at <= len(line):
        cell = pattern.match(line, at)
        assert cell is not None  # an empty cell matches, too
        if cell[0].count('"') % 2:
            return []
        cells.append((cell["quoted"] or cell["bare"] or "").strip())
        at = cell.end() + 1
    return cells


def _with_points(rows: Sequence[Row], delimiter: str) -> list[Row]:
    """Replace decimal commas by points, except in columns whose commas separate thousands."""
    columns = grouped(entry for row in rows for entry in row.cells.items() if "," in entry[1])
    decimal = {
        name
        for name, cells in columns.items()
        if not any(map(_THOUSANDS_AND_POINT.fullmatch, cells))
        # In tab-separated files, commas may also separate thousands: 1,234 may mean 1234
        and not (delimiter == "\t" and all(map(_THOUSANDS.fullmatch, cells)))
    }

    def with_point(name: str, cell: str) -> str:
        is_decimal = name in decimal and _DECIMAL_COMMA.fullmatch(cell)
        return cell.replace(",", ".") if is_decimal else cell

    return [
        replace(row, cells={name: with_point(name, cell) for name, cell in row.cells.items()})
        for row in rows
    ]


def json_rows(path: Path, text: str) -> tuple[list[Row], list[InputError]]:
    """Read rows from JSON values: objects, arrays of objects, or objects with such arrays.

    Also return an error for each unreadable value.

    There may be a line break, a comma, or nothing between two values. If an object contains the
    rows of a run (one participant's session), the object's other values are added to each row.
    `path` is used in messages only.

    Raises:
        InputError: if the text has values, but no readable object.
    """
    values: list[Row | InputError] = []
    run, is_inside, line, lines_until, at = 0, False, 1, 0, 0
    while at < len(text):
        sign, end = text[at], at + 1
        if sign in "[]":
            run, is_inside = run + (sign == "["), sign == "["
        elif sign not in " \t\n,}":
            line, lines_until = line + text.count("\n", lines_until, at), at
            where = f"{path}, line {line}, value {len(values) + 1}"
            try:
                _, end = json.JSONDecoder().raw_decode(text, at)
                value = parse_json(text[at:end], where, constants=True)
                if isinstance(value, dict):
                    values += _rows_within(value, where, (run,) if is_inside else ())
                elif isinstance(value, str) and looks_like_json(value):  # JSON as a text in JSON
                    values += chain(*json_rows(path, value))
                elif value is not None:  # null is an empty result
                    values.append(InputError(f"{where}: not an object."))
            except (ValueError, RecursionError) as error:
                reason = getattr(error, "msg", "") or f"{error}"
                values.append(InputError(f"{where}: not readable JSON ({reason})."))
                if end == at + 1:
                    following = _NEXT_VALUE.search(text, end)
                    end = following.end() if following else len(text)
        at = end
    rows = [value for value in values if isinstance(value, Row)]
    if values and not rows:
        raise InputError(
            f"{path} must contain lists of objects, as the data of jsPsych do. {values[0]}"
        )
    return rows, [value for value in values if isinstance(value, InputError)]


def _rows_within(
    value: Mapping[str, Any], where: str, run: tuple[Hashable, ...]
) -> Iterator[Row | InputError]:
    """Yield a row for each trial in an object, or a row for the object if there are no trials."""
    parts = {} if "trial_id" in value else {k: v for k, v in value.items() if _holds_trials(v)}
    if not parts:
        yield Row(where, value, run or None)
        return
    about = {k: v for k, v in value.items() if not isinstance(v, list | dict)}
    for name, part in parts.items():
        for row in part if isinstance(part, list) else [part]:
            if isinstance(row, dict):
                yield from _rows_within(about | row, where, (*run, where, name))
            else:
                yield InputError(f"{where}, {name}: not an object.")


def _holds_trials(value: object) -> bool:
    if isinstance(value, dict):
        return "trial_id" in value or any(map(_holds_trials, value.values()))
    return isinstance(value, list) and any(map(_holds_trials, value))
