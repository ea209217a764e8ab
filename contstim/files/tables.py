"""Read and write tables: CSV, TSV, Parquet or JSON Lines, depending on the suffix of the file.

CSV files may come from spreadsheets in any country. Commas, semicolons or tabs separate cells. If
commas do not separate cells, numbers may have decimal commas. The encoding is UTF-8, or UTF-16 with
a byte order mark. Texts in TSV files may be with or without quotation marks; contstim writes them
with quotation marks.
"""

from __future__ import annotations

import csv
import json
import math
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeAlias, TypeVar

from contstim.errors import InputError
from contstim.files.documents import (
    parse_json_lines,
    read_json_object,
    refuse_other_format,
    shortened,
)
from contstim.files.files import reading, writing
from contstim.wording import find_duplicates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from _typeshed import DataclassInstance
    from pandas import DataFrame

    from contstim.files.arrays import FloatArray, IntArray

    Column: TypeAlias = Sequence[Any] | FloatArray | IntArray
    Reader: TypeAlias = tuple[Callable[[Any], Any], str]

_Row = TypeVar("_Row", bound="DataclassInstance")


FORMULA_SIGNS = "=+-@\t\r\n＝＋－＠"
"""First characters of cells that a spreadsheet may run as formulas, even if a cell is in quotes.

Source: OWASP's page on CSV injection. Some programs treat full-width signs like ASCII signs.
"""

_Value = TypeVar("_Value")
_Column = TypeVar("_Column")

TABLE_KINDS = (".csv", ".tsv", ".parquet", ".jsonl")


def columns_of(kind: type[DataclassInstance], rows: Iterable[object]) -> dict[str, list[Any]]:
    """Convert instances of the dataclass `kind` to columns, one for each field.

    Sentences and enum members become texts. None in a field `Sentence | None` becomes "".
    """
    instances = list(rows)
    return {
        field.name: [_to_cell(getattr(row, field.name), field.type) for row in instances]
        for field in fields(kind)
    }


def _to_cell(value: object, annotation: object) -> object:
    if is_dataclass(value):  # such as a sentence
        return str(value)
    if value is None and annotation == "Sentence | None":  # `read_rows` reads "" as None
        return ""
    return value.value if isinstance(value, Enum) else value


class ShownAsTable:
    """Base class of results that notebooks display as the data frame of `to_frame`."""

    __slots__ = ()

    def to_frame(self) -> DataFrame:
        """Return the result as a data frame; subclasses document the columns."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return str(self.to_frame()._repr_html_())


def frame_of(columns: Mapping[str, Column]) -> DataFrame:
    """Convert columns of equal length to a data frame."""
    from pandas import DataFrame

    return DataFrame(dict(columns))


def write_table(path: Path | str, columns: Mapping[str, Column]) -> None:
    """Write named columns of equal length in the format of the path's suffix.

    CSV is UTF-8 with a header and quoted texts. Numbers have enough digits to restore their exact
    values.

    Raises:
        InputError: if the file cannot be written, or its suffix is not that of a table.
    """
    kind = table_kind(path)
    with writing(path) as partial:
        if kind == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.table(dict(columns)), partial)
        else:
            with partial.open("w", encoding="utf-8", newline="") as file:
                if kind == ".jsonl":
                    rows = cells_by_name({name: _as_python(c) for name, c in columns.items()})
                    # Python writes and reads -inf as -Infinity, which is not JSON
                    file.writelines(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
                else:
                    write_csv(file, columns, "\t" if kind == ".tsv" else ",")


def write_csv(file: TextIO, columns: Mapping[str, Column], delimiter: str = ",") -> None:
    """Write named columns of equal length as CSV; see `write_table`."""
    # Quotes show that the text "1984" is not a number
    writer = csv.writer(file, "unix", delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(columns)
    writer.writerows(zip(*map(_as_python, columns.values()), strict=True))


def table_kind(path: Path | str, kinds: Sequence[str] = TABLE_KINDS) -> str:
    """Return the suffix of a table's path in lower case.

    Raises:
        InputError: if the suffix is not one of `kinds`.
    """
    kind = Path(path).suffix.lower()
    if kind not in kinds:
        raise InputError(f"{path} is not a table: its name must end in {', '.join(kinds)}.")
    return kind


def read_table(path: Path | str, *, may_be_empty: bool = False) -> dict[str, list[Any]]:
    """Read a table as columns by name.

    Cells of CSV files are texts. Decimal commas of numbers are replaced by points.

    Raises:
        InputError: if the file is not a readable table; if it has no rows (unless `may_be_empty` is
            true); or if the table's metadata file (`TABLE.meta.json`) has a format number that this
            version of contstim does not read.
    """
    return _read_columns(Path(path), table_kind(path), may_be_empty)


def read_csv(path: Path | str, *, may_be_empty: bool = False) -> dict[str, list[Any]]:
    """Read a CSV file with any suffix; see `read_table`.

    Raises:
        InputError: see `read_table`.
    """
    return _read_columns(Path(path), ".csv", may_be_empty)


def read_rows(
    path: Path | str,
    kind: type[_Row],
    readers: Mapping[str, Reader],
    *,
    may_be_empty: bool = False,
    field_of: Callable[[str], str] = str,
) -> tuple[_Row, ...]:
    """Read the rows of a table into instances of a dataclass; the inverse of `columns_of`.

    Columns that are not fields are ignored.

    Args:
        path: path of the table.
        kind: dataclass of a row. Its attribute TABLE describes the table in messages.
        readers: name or type of a field → parser and noun; see `parsed`. If a field has a default
            and its column is missing, the parser receives None for each row.
        may_be_empty: whether a table without rows is accepted.
        field_of: function that returns the field of a column; by default, both have one name.

    Raises:
        InputError: if the file cannot be read or lacks a column, or if a cell cannot be parsed.
    """
    columns = _read_columns(Path(path), table_kind(path), may_be_empty)
    columns = {field_of(name): column for name, column in columns.items()}
    missing = [f.name for f in fields(kind) if f.default is MISSING and f.name not in columns]
    if missing:
        rows = getattr(kind, "TABLE", _INNER_CAPITAL.sub(" ", kind.__name__).lower() + "s")
        raise InputError(f"{path} is not a table of {rows}: it lacks {', '.join(missing)}.")
    nulls = [None] * max(map(len, columns.values()))
    typed = {}
    for field in fields(kind):
        cells, reader = columns.get(field.name, nulls), readers.get(field.name)
        typed[field.name] = parsed(path, field.name, cells, *(reader or readers[str(field.type)]))
    return tuple(kind(**values) for values in cells_by_name(typed))


def needed_columns(
    path: Path | str, table: Mapping[str, _Column], names: Iterable[str]
) -> list[_Column]:
    """Return named columns of a table, in the order of the names.

    Raises:
        InputError: if columns are missing; the message names all of them.
    """
    column_names = list(names)
    if missing := [name for name in column_names if name not in table]:
        raise InputError(
            f"{path} lacks the columns {', '.join(missing)}; its columns are {join_names(table)}."
        )
    return [table[name] for name in column_names]


def parsed_columns(
    path: Path | str, table: Mapping[str, Sequence[Any]], readers: Mapping[str, Reader]
) -> list[list[Any]]:
    """Parse columns of a table, in the order of the readers.

    `readers` maps names of columns to parser and noun; see `parsed`. Messages name the path.

    Raises:
        InputError: see `needed_columns` and `parsed`.
    """
    pairs = zip(readers.items(), needed_columns(path, table, readers), strict=True)
    return [parsed(path, name, cells, *reader) for (name, reader), cells in pairs]


def cells_by_name(table: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Convert columns to rows: name of a column → cell."""
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def _read_columns(path: Path, kind: str, may_be_empty: bool) -> dict[str, list[Any]]:
    # A missing or damaged metadata file is ignored. A wrong format number in this file is an error
    content: dict[str, Any] = {}
    with suppress(InputError):
        content = read_json_object(f"{path}.meta.json", constants=True)
    refuse_other_format(path, content)
    with reading(path):
        if kind == ".parquet":
            columns = _read_parquet(path)
        else:
            with path.open("rb") as beginning:
                is_utf16 = beginning.read(2) in (BOM_UTF16_LE, BOM_UTF16_BE)
            # newline="" keeps line ends inside quoted cells
            with path.open(encoding="utf-16" if is_utf16 else "utf-8-sig", newline="") as file:
                columns = (_read_jsonl if kind == ".jsonl" else _read_csv)(path, file)
    if not may_be_empty and not any(columns.values()):
        raise InputError(f"{path} has a header but no rows.")
    return columns


def _read_parquet(path: Path) -> dict[str, list[Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.is_dir():  # pyarrow would read a folder as a partitioned table
        raise IsADirectoryError(None, "Is a directory")
    try:
        # With partitioning, the table `a=1/x.parquet` would get a column `a`
        columns: dict[str, list[Any]] = pq.read_table(path, partitioning=None).to_pydict()
    except pa.ArrowException as error:
        raise InputError(f"{path} is not a readable Parquet file: {error}.") from error
    return columns


def _as_python(column: Column) -> Sequence[Any]:
    # `json` writes only Python's numbers. Their texts have enough digits to restore exact values
    return column.tolist() if hasattr(column, "tolist") else column


def _read_csv(path: Path, file: Iterable[str]) -> dict[str, list[Any]]:
    lines = list(file)
    # The most frequent separator in the header, outside quotation marks. In a tie, commas are
    # preferred to semicolons, and semicolons to tabs
    delimiter = max(",;\t", key=_QUOTED.sub("", lines[0] if lines else "").count)
    is_unquoted = delimiter == "\t" and _is_unquoted(lines)
    quoting: Literal[0, 3] = csv.QUOTE_NONE if is_unquoted else csv.QUOTE_MINIMAL
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
    header: list[str] = []
    columns: list[list[Any]] = []
    line = 1  # first line of the row; a row with line breaks in cells has several lines
    try:
        for row in reader:
            if not header:
                header, columns = row, [[] for _ in row]
            elif len(row) == len(header):
                for column, value in zip(columns, row, strict=True):
                    column.append(value)
            elif row:  # blank lines are skipped
                raise InputError(
                    f"{path}, line {line}: the row has {len(row)} cells, but the header "
                    f"{len(header)}."
                )
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(
            f"{path}, line {line}: the row that begins here is not readable CSV ({error}). "
            "Check whether the file is complete and no quotation mark is missing."
        ) from error
    if not header:
        raise InputError(f"{path} is empty. Use a table with a header and rows.")
    if duplicates := sorted(find_duplicates(header)):
        raise InputError(f"{path} names these columns twice: {join_names(duplicates)}.")
    table = dict(zip(header, columns, strict=True))
    return table if delimiter == "," else _replace_commas(path, table, delimiter)


def _is_unquoted(lines: Sequence[str]) -> bool:
    """Return True if quotation marks in a TSV table belong to the texts.

    Otherwise, the marks enclose cells. Return True if the table cannot be parsed with marks that
    enclose cells, and no cell both begins and ends with a mark.
    """
    try:
        for _ in csv.reader(lines, delimiter="\t", strict=True):
            pass
    except csv.Error:
        cells = (cell.strip() for line in lines for cell in line.split("\t"))
        return not any(cell[:1] == cell[-1:] == '"' for cell in cells if len(cell) > 1)
    return False


_QUOTED = re.compile('"[^"]*"')
_INNER_CAPITAL = re.compile("(?<!^)(?=[A-Z])")
_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|\d{1,3}([.,]\d{3})+([.,]\d+)?)([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")


def _replace_commas(
    path: Path, table: dict[str, list[str]], delimiter: str
) -> dict[str, list[str]]:
    """Replace decimal commas by points in columns that contain only numbers.

    Raises:
        InputError: if numbers contain both commas and points, or if commas may separate thousands.
    """
    filled = {name: [*filter(None, cells)] for name, cells in table.items()}
    numbers = {name: c for name, c in filled.items() if all(map(_NUMBER.fullmatch, c))}
    signed = [(name, cell) for name, c in numbers.items() for cell in c if {*",."} & {*cell}]
    commas = {name: cell for name, cell in signed if "," in cell}
    mixed = [entry for entry in signed if entry[1].count(",") + entry[1].count(".") > 1]
    mixed = mixed or [entry for entry in signed if "." in entry[1]]
    if not mixed and delimiter == "\t" and all(_THOUSANDS.fullmatch(c) for _, c in signed):
        mixed = signed
    if commas and mixed:
        name, cell = next(iter(commas.items()))
        raise InputError(
            f"{path} has ambiguous decimal signs: {cell} under {name}, {mixed[0][1]} "
            f"under {mixed[0][0]}. Save it with one decimal sign and no thousands "
            "separator."
        )
    return table | {name: [cell.replace(",", ".") for cell in table[name]] for name in commas}


def _read_jsonl(path: Path, file: Iterable[str]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    for line, row in parse_json_lines(file, path, constants=True):  # scores can be -inf
        if columns and row.keys() != columns.keys():
            raise InputError(f"{path}, line {line}: expected the same columns in every row.")
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    if not columns:
        raise InputError(f"{path} is empty. Use one JSON object per line.")
    return columns


def join_names(names: Iterable[object], max_names: int = 12) -> str:
    """Join names with commas for messages.

    Names after the first `max_names` are replaced by the total number of names.
    """
    texts = [str(name) for name in names]
    suffix = f", … ({len(texts):,} in all)" if len(texts) > max_names else ""
    return ", ".join(texts[:max_names]) + suffix


def parsed(
    path: Path | str, name: str, cells: Iterable[Any], parse: Callable[[Any], _Value], noun: str
) -> list[_Value]:
    """Parse the cells of a column.

    `parse` raises a ValueError for an invalid cell. `noun` completes the message "CELL is not a …".

    Raises:
        InputError: if a cell is invalid. The message names the row, from 0, and the column.
    """
    values = []
    for row, cell in enumerate(cells):
        try:
            values.append(parse(cell))
        except ValueError as error:
            detail = f" {error}" if isinstance(error, InputError) else ""
            raise InputError(
                f"{path}, row {row}: {shortened(cell)} under {name} is not a {noun}.{detail}"
            ) from None
    return values


def whole_number(value: Any) -> int:
    """Parse a whole number; see `number`."""
    return int(number(value, must_be_whole=True))


def count(value: Any) -> int:
    """Parse a whole number of at least 0; see `number`."""
    parsed_number = whole_number(value)
    if parsed_number < 0:
        raise ValueError(f"{parsed_number} is not a count")
    return parsed_number


def number(value: Any, *, must_be_whole: bool = False, infinite: bool = False) -> int | float:
    """Parse a cell that contains a number, or the text of a number.

    Unlike Python, refuse underscores (`1_000`), digits of other scripts, true, false and nan.

    The text `2.0` is a whole number. Infinite numbers are accepted only if `infinite` is true.

    Raises:
        ValueError: if the cell is not such a number.
    """
    if isinstance(value, str):
        is_plain = value.isascii() and "_" not in value
    else:
        is_plain = isinstance(value, Real) and not isinstance(value, bool)
    try:
        result = float(value) if is_plain else math.nan
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    allowed = math.isfinite(result) or (infinite and math.isinf(result))
    if not allowed or (must_be_whole and not result.is_integer()):
        raise ValueError(f"{shortened(value)} is not a {'whole ' if must_be_whole else ''}number")
    return int(result) if must_be_whole else result


def text(value: object) -> str:
    """Return the text of a cell that holds a text or a number.

    Raises:
        ValueError: if the cell is null, true, false, a list or an object.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{shortened(value)} is not a text")
    return str(value)
