"""Tables on disk: CSV, TSV, Parquet or JSON lines, by the ending of the file's name.

CSV is read as spreadsheets of all countries write it: cells separated by commas, semicolons or
tabs, in UTF-8 or, with a byte order mark, UTF-16; decimal commas where cells are not separated by
commas. TSV is written with tabs between quoted cells, and also read where nothing is quoted.
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
from itertools import chain
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
from contstim.files.files import is_file, reading, writing
from contstim.wording import repeated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from _typeshed import DataclassInstance
    from pandas import DataFrame

    from contstim.files.arrays import FloatArray, IntArray

    Column: TypeAlias = Sequence[Any] | FloatArray | IntArray
    Reader: TypeAlias = tuple[Callable[[Any], Any], str]

_Row = TypeVar("_Row", bound="DataclassInstance")


FORMULA_SIGNS = "=+-@\t\r\n＝＋－＠"
"""A cell that begins with one may be a formula to a spreadsheet, quoted or not.

Those of OWASP's page on CSV injection, with the full-width forms that some systems take alike.
"""

_Value = TypeVar("_Value")
_Column = TypeVar("_Column")

TABLE_KINDS = (".csv", ".tsv", ".parquet", ".jsonl")


def columns_of(kind: type[DataclassInstance], rows: Iterable[object]) -> dict[str, list[Any]]:
    """The fields of a dataclass as columns; sentences and members of enums as their texts.

    None in a field `Sentence | None` is an empty text.

    Args:
        kind: the dataclass, which names the columns where there are no rows.
        rows: its instances.
    """
    every = list(rows)
    return {
        field.name: [_as_cell(getattr(row, field.name), field.type) for row in every]
        for field in fields(kind)
    }


def _as_cell(value: object, annotation: object) -> object:
    if is_dataclass(value):  # such as a sentence, which is written as its text
        return str(value)
    if value is None and annotation == "Sentence | None":  # texts, as `read_rows` has them
        return ""
    return value.value if isinstance(value, Enum) else value


class ShownAsTable:
    """Results that a notebook shows as the table that `to_frame` makes."""

    __slots__ = ()

    def to_frame(self) -> DataFrame:
        """The table of pandas; each result says which."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return str(self.to_frame()._repr_html_())


def frame_of(columns: Mapping[str, Column]) -> DataFrame:
    """Named columns of equal length, such as those of `columns_of`, as a table of pandas."""
    from pandas import DataFrame

    return DataFrame(dict(columns))


def write_table(path: Path | str, columns: Mapping[str, Column]) -> None:
    """Write named columns of equal length.

    CSV is UTF-8 with a header, texts quoted, and numbers in the shortest form that reads back
    exactly; `.tsv`, `.parquet` and `.jsonl` are recognised by the name.

    Raises:
        InputError: the file cannot be written, or its name is not a table's.
    """
    kind = table_kind(path)
    with writing(path) as partial:
        if kind == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.table(dict(columns)), partial)
        elif kind == ".jsonl":
            with partial.open("w", encoding="utf-8", newline="\n") as file:
                # -inf is written as -Infinity, which Python reads back and JSON does not have
                for row in zip(*map(_plain, columns.values()), strict=True):
                    cells = dict(zip(columns, row, strict=True))
                    file.write(json.dumps(cells, ensure_ascii=False) + "\n")
        else:
            with partial.open("w", encoding="utf-8", newline="") as file:
                write_csv(file, columns, "\t" if kind == ".tsv" else ",")


def write_csv(file: TextIO, columns: Mapping[str, Column], delimiter: str = ",") -> None:
    """Write named columns of equal length as CSV; see `write_table`."""
    # Programs that look at quotation marks then do not take the text 1984 for a number
    writer = csv.writer(
        file, delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n"
    )
    writer.writerow(columns)
    writer.writerows(zip(*map(_plain, columns.values()), strict=True))


def table_kind(path: Path | str, kinds: Sequence[str] = TABLE_KINDS) -> str:
    """The ending of a table's name in lower case.

    Raises:
        InputError: the ending is none of `kinds`.
    """
    kind = Path(path).suffix.lower()
    if kind not in kinds:
        raise InputError(f"{path} is not a table: its name must end in {', '.join(kinds)}.")
    return kind


def read_table(path: Path | str, *, may_be_empty: bool = False) -> dict[str, list[Any]]:
    """Read named columns; the values of a CSV file are all texts, decimals with a point.

    Args:
        path: the file.
        may_be_empty: whether there may be columns without rows.

    Raises:
        InputError: the file is missing, empty, not UTF-8 or UTF-16, cut off, ragged, names a column
            twice, leaves open which sign its decimals have, or its name is not a table's.
    """
    return _read(Path(path), table_kind(path), may_be_empty)


def read_csv(
    path: Path | str, *, footer: str | None = None, may_be_empty: bool = False
) -> dict[str, list[Any]]:
    """Read named columns of texts from a CSV file, whatever its name.

    Args:
        path: the file.
        footer: a first cell that ends the table; its row is left out.
        may_be_empty: whether there may be columns without rows.

    Raises:
        InputError: see `read_table`.
    """
    return _read(Path(path), ".csv", may_be_empty, footer)


def read_rows(
    path: Path | str,
    kind: type[_Row],
    readers: Mapping[str, Reader],
    *,
    may_be_empty: bool = False,
) -> tuple[_Row, ...]:
    """Read what was written from `columns_of`: a dataclass of each row; other columns are ignored.

    Cells are read by functions of our own, not by pydantic, which takes `1_000`, `true` and `nan`
    for numbers and refuses `1e3`: these functions would read every cell first all the same.

    Args:
        path: of the table.
        kind: the dataclass, whose name, or TABLE, is what messages call the rows; a column whose
            field has a default may be missing and is then null.
        readers: how a cell is read, and what it must be (see `parsed`), by the name of the field
            or, for all fields of a type, by the name of the type.
        may_be_empty: whether there may be columns without rows.

    Raises:
        InputError: the file cannot be read or lacks a column, or a cell is something else.
    """
    columns = _read(Path(path), table_kind(path), may_be_empty)
    missing = [f.name for f in fields(kind) if f.default is MISSING and f.name not in columns]
    if missing:
        rows = getattr(kind, "TABLE", _INNER_CAPITAL.sub(" ", kind.__name__).lower() + "s")
        raise InputError(f"{path} is not a table of {rows}: it lacks {', '.join(missing)}.")
    # A column that may be missing: as many empty cells as there are rows
    nulls = [None] * max(map(len, columns.values()))
    typed = [
        parsed(
            path,
            field.name,
            columns.get(field.name, nulls),
            *(readers.get(field.name) or readers[str(field.type)]),
        )
        for field in fields(kind)
    ]
    return tuple(kind(*values) for values in zip(*typed, strict=True))


def needed_columns(
    path: Path | str, table: Mapping[str, _Column], names: Iterable[str]
) -> list[_Column]:
    """Columns of a table, in the order of their names.

    Raises:
        InputError: the table lacks one; names all that it lacks.
    """
    wanted = list(names)
    if lacking := [name for name in wanted if name not in table]:
        raise InputError(
            f"{path} lacks the columns {', '.join(lacking)}; its columns are {listed(table)}."
        )
    return [table[name] for name in wanted]


def parsed_columns(
    path: Path | str, table: Mapping[str, Sequence[Any]], readers: Mapping[str, Reader]
) -> list[list[Any]]:
    """Values of columns of a table, in the order of their readers.

    Args:
        path: of the table, for messages.
        table: what `read_table` gives.
        readers: how a cell is read, and what it must be (see `parsed`), by the column's name.

    Raises:
        InputError: see `needed_columns` and `parsed`.
    """
    columns = needed_columns(path, table, readers)
    pairs = zip(readers.items(), columns, strict=True)
    return [parsed(path, name, cells, *reader) for (name, reader), cells in pairs]


def cells_by_name(table: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Rows of a table: cells by the names of columns."""
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def _read(
    path: Path, kind: str, may_be_empty: bool, footer: str | None = None
) -> dict[str, list[Any]]:
    record = Path(f"{path}.meta.json")
    if is_file(record):
        # A table whose record names another format is refused; a damaged record is no hindrance
        content: dict[str, Any] = {}
        with suppress(InputError):
            content = read_json_object(record, constants=True)
        refuse_other_format(path, content)
    with reading(path):
        if kind == ".parquet":
            columns = _read_parquet(path)
        else:
            with path.open("rb") as start:
                wide = start.read(2) in (BOM_UTF16_LE, BOM_UTF16_BE)
            # newline="": line ends inside a quoted cell are the reader's to keep
            with path.open(encoding="utf-16" if wide else "utf-8-sig", newline="") as file:
                if kind == ".jsonl":
                    columns = _read_jsonl(path, file)
                else:
                    columns = _read_csv(path, file, footer)
    if not may_be_empty and not any(columns.values()):
        raise InputError(f"{path} has a header and no rows.")
    return columns


def _read_parquet(path: Path) -> dict[str, list[Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.is_dir():  # which pyarrow would read as a table in parts
        raise IsADirectoryError(None, "Is a directory")
    try:
        table = pq.read_table(path, partitioning=None)  # else `a=1/x.parquet` has a column a
        columns: dict[str, list[Any]] = table.to_pydict()
    except pa.ArrowException as error:
        raise InputError(f"{path} is not a readable Parquet file: {error}.") from error
    return columns


def _plain(column: Column) -> Sequence[Any]:
    """Python numbers instead of NumPy's: their text reads back to the same double."""
    return column.tolist() if hasattr(column, "tolist") else column


def _read_csv(path: Path, file: Iterable[str], footer: str | None) -> dict[str, list[Any]]:
    lines = iter(file)
    first = next(lines, "")
    # The most frequent in the header outside quotation marks, a comma where none is more frequent
    delimiter = max(",;\t", key=_QUOTED.sub("", first).count)
    rest: Iterable[str] = chain([first], lines)
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL
    if delimiter == "\t":
        rest = list(rest)
        quoting = csv.QUOTE_NONE if _is_unquoted(rest) else csv.QUOTE_MINIMAL
    reader = csv.reader(rest, delimiter=delimiter, quoting=quoting, strict=True)
    header: list[str] = []
    columns: list[list[Any]] = []
    line = 1  # of the row's beginning: a quoted cell may run over several
    try:
        for row in reader:
            if not header:
                header, columns = row, [[] for _ in row]
            elif footer is not None and row[:1] == [footer]:
                break
            elif len(row) == len(header):
                for column, value in zip(columns, row, strict=True):
                    column.append(value)
            elif row:  # not a blank line, such as editors leave at the end
                raise InputError(
                    f"{path}, line {line}: {len(row)} values for {len(header)} columns."
                )
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(
            f"{path}, line {line}: the row that begins here is not readable CSV ({error}). "
            "Is the file cut off, or a quotation mark missing?"
        ) from error
    if not header:
        raise InputError(f"{path} is empty; expected a header and rows.")
    if twice := sorted(repeated(header)):
        raise InputError(f"{path} names these columns twice: {listed(twice)}.")
    table = dict(zip(header, columns, strict=True))
    return table if delimiter == "," else _with_points(path, table, delimiter)


def _is_unquoted(lines: Sequence[str]) -> bool:
    """Whether quotation marks of a table with tabs belong to the texts, as in many corpora."""
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


def _with_points(path: Path, table: dict[str, list[str]], delimiter: str) -> dict[str, list[str]]:
    """The table with points for decimal commas, in columns of numbers alone.

    Raises:
        InputError: the numbers have commas and points, or commas that may separate thousands.
    """
    filled = {name: [*filter(None, cells)] for name, cells in table.items()}
    numbers = {name: c for name, c in filled.items() if all(map(_NUMBER.fullmatch, c))}
    signed = [(name, cell) for name, c in numbers.items() for cell in c if {*",."} & {*cell}]
    commas = {name: cell for name, cell in signed if "," in cell}
    odd = [each for each in signed if each[1].count(",") + each[1].count(".") > 1]
    odd = odd or [each for each in signed if "." in each[1]]
    if not odd and delimiter == "\t" and all(_THOUSANDS.fullmatch(c) for _, c in signed):
        odd = signed
    if commas and odd:
        name, cell = next(iter(commas.items()))
        raise InputError(
            f"{path} does not say whether its numbers have decimal commas or points: {cell} under "
            f"{name}, {odd[0][1]} under {odd[0][0]}. Save it with one decimal sign and nothing "
            "between thousands."
        )
    points = {name: [cell.replace(",", ".") for cell in table[name]] for name in commas}
    return table | points


def _read_jsonl(path: Path, file: Iterable[str]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    for line, row in parse_json_lines(file, path, constants=True):  # as impossible sentences have
        # Compared as sets: the order of names in an object means nothing
        if columns and row.keys() != columns.keys():
            raise InputError(f"{path}, line {line}: expected the same columns in every row.")
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    if not columns:
        raise InputError(f"{path} is empty; expected one JSON object a line.")
    return columns


def listed(names: Iterable[object], most: int = 12) -> str:
    """Names with commas between them, as messages give them: the first dozen."""
    texts = [str(name) for name in names]
    return ", ".join(texts[:most]) + (f", … ({len(texts):,} in all)" if len(texts) > most else "")


def parsed(
    path: Path | str, name: str, cells: Iterable[Any], parse: Callable[[Any], _Value], what: str
) -> list[_Value]:
    """The values of a column.

    Args:
        path: of the table, for messages.
        name: of the column.
        cells: what `read_table` gives under that name.
        parse: reads a cell, such as `number`, `text` or `Sentence.parse`; its ValueError is told as
            an error of this row.
        what: what a cell must be, after "is not a".

    Raises:
        InputError: a cell is something else (names row and column; rows count from 0).
    """
    values = []
    for row, cell in enumerate(cells):
        try:
            values.append(parse(cell))
        except ValueError as error:
            why = f" {error}" if isinstance(error, InputError) else ""
            raise InputError(
                f"{path}, row {row}: {shortened(cell)} under {name} is not a {what}.{why}"
            ) from None
    return values


def whole_number(value: Any) -> int:
    """The whole number of a cell; see `number`."""
    return int(number(value, whole=True))


def count(value: Any) -> int:
    """The whole number from 0 of a cell; see `number`."""
    whole = whole_number(value)
    if whole < 0:
        raise ValueError(f"{whole} is not a count")
    return whole


def number(value: Any, *, whole: bool = False, infinite: bool = False) -> int | float:
    """The number of a cell, which may be a text as files write it; `2.0` is whole.

    Args:
        value: the cell.
        whole: whether it must be a whole number.
        infinite: whether it may be infinite.

    Raises:
        ValueError: it is not a number written in ASCII digits without underscores (Python's own
            readers take `1_000` and digits of other scripts), it is true or false, not a number,
            not finite or not whole where it must be.
    """
    if isinstance(value, str):
        plain = value.isascii() and "_" not in value
    else:
        plain = isinstance(value, Real) and not isinstance(value, bool)
    try:
        parsed = float(value) if plain else math.nan
    except (TypeError, ValueError, OverflowError):
        parsed = math.nan
    allowed = math.isfinite(parsed) or (infinite and math.isinf(parsed))
    if not allowed or (whole and not parsed.is_integer()):
        raise ValueError(f"{shortened(value)} is not a {'whole ' if whole else ''}number")
    # Whole numbers pass through a float: exact up to 2**53, far above any count of ours
    return int(parsed) if whole else parsed


def text(value: object) -> str:
    """The text of a cell; a number as it is written.

    Raises:
        ValueError: it is empty (null), true or false, or a list or an object, whose text in Python
            is nothing that anybody wrote.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{shortened(value)} is not a text")
    return str(value)
