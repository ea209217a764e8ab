"""Tables on disk: CSV, Parquet or JSON lines, by the ending of the file's name."""

from __future__ import annotations

import csv
import json
import math
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from contstim.errors import InputError
from contstim.files import writing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.arrays import FloatArray, IntArray

    Column: TypeAlias = Sequence[Any] | FloatArray | IntArray


FORMULA_SIGNS = "=+-@\t\r\n＝＋－＠"
"""A cell that begins with one may be a formula to a spreadsheet, quoted or not.

Those of OWASP's page on CSV injection, with the full-width forms that some systems take alike.
"""

TABLE_KINDS = (".csv", ".parquet", ".jsonl")


def write_table(path: Path | str, columns: Mapping[str, Column]) -> None:
    """Write named columns of equal length.

    CSV is UTF-8 with a header, texts quoted, and numbers in the shortest form that reads back
    exactly; `.parquet` and `.jsonl` are recognised by the name.

    Raises:
        InputError: the file cannot be written, or its name is no table's.
    """
    kind = table_kind(path)
    with writing(path) as partial:
        if kind == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.table(dict(columns)), partial)
        elif kind == ".jsonl":
            _write_jsonl(partial, columns)
        else:
            with partial.open("w", encoding="utf-8", newline="") as file:
                write_csv(file, columns)


def write_csv(file: TextIO, columns: Mapping[str, Column]) -> None:
    """Write named columns of equal length as CSV; see `write_table`."""
    writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*map(_plain, columns.values()), strict=True))


def table_kind(path: Path | str) -> str:
    """The ending of a table's name in lower case.

    Raises:
        InputError: the ending is none of .csv, .parquet, .jsonl.
    """
    kind = Path(path).suffix.lower()
    if kind not in TABLE_KINDS:
        raise InputError(f"{path} is no table: its name must end in {', '.join(TABLE_KINDS)}.")
    return kind


def read_table(path: Path | str) -> dict[str, list[Any]]:
    """Read named columns; the values of a CSV file are all texts.

    Raises:
        InputError: the file is missing, empty, not UTF-8, ragged, names a column twice, or its
            name is no table's.
    """
    return _read(Path(path), table_kind(path))


def read_csv(
    path: Path | str, *, delimiters: str = ",", footer: str | None = None
) -> dict[str, list[Any]]:
    """Read named columns of texts from a CSV file, whatever its name.

    Args:
        path: the file.
        delimiters: what may separate cells; the one that is most frequent in the header does.
        footer: a first cell that ends the table; its row is left out.

    Raises:
        InputError: see `read_table`.
    """
    return _read(Path(path), ".csv", delimiters, footer)


def _read(
    path: Path, kind: str, delimiters: str = ",", footer: str | None = None
) -> dict[str, list[Any]]:
    try:
        if kind == ".parquet":
            return _read_parquet(path)
        with path.open(encoding="utf-8-sig", newline="") as file:
            if kind == ".jsonl":
                return _read_jsonl(path, file)
            return _read_csv(path, file, delimiters, footer)
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start + 1}).") from error
    except (csv.Error, json.JSONDecodeError) as error:
        raise InputError(f"{path} is not a readable table: {error}.") from error


def _read_parquet(path: Path) -> dict[str, list[Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table: dict[str, list[Any]] = pq.read_table(path).to_pydict()
    except pa.ArrowException as error:
        raise InputError(f"{path} is not a readable Parquet file: {error}.") from error
    return table


def _write_jsonl(path: Path, columns: Mapping[str, Column]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in zip(*map(_plain, columns.values()), strict=True):
            cells = dict(zip(columns, row, strict=True))
            file.write(json.dumps(cells, ensure_ascii=False) + "\n")


def _plain(column: Column) -> Sequence[Any]:
    """Python numbers instead of NumPy's: their text reads back to the same double."""
    plain: Sequence[Any] = column.tolist() if hasattr(column, "tolist") else column
    return plain


def _read_csv(
    path: Path, file: Iterable[str], delimiters: str, footer: str | None
) -> dict[str, list[Any]]:
    lines = iter(file)
    first = next(lines, "")
    reader = csv.reader(chain([first], lines), delimiter=max(delimiters, key=first.count))
    header = next(reader, None)
    if not header:
        raise InputError(f"{path} is empty; expected a header and rows.")
    _distinct(path, header)
    columns: list[list[Any]] = [[] for _ in header]
    for row in reader:
        if footer is not None and row[:1] == [footer]:
            break
        if len(row) != len(header):
            if not row:
                continue
            raise InputError(
                f"{path}, line {reader.line_num}: {len(row)} values for {len(header)} columns."
            )
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    return dict(zip(header, columns, strict=True))


def _read_jsonl(path: Path, file: Iterable[str]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    for number, line in enumerate(filter(str.strip, file)):
        row = json.loads(line)
        if not isinstance(row, dict) or (number and row.keys() != columns.keys()):
            raise InputError(f"{path}, row {number + 1}: expected the same columns in every row.")
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    if not columns:
        raise InputError(f"{path} is empty; expected one JSON object a line.")
    return columns


def _distinct(path: Path, names: Sequence[str]) -> None:
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise InputError(f"{path} names these columns twice: {', '.join(twice)}.")


def number(value: Any, *, whole: bool = False) -> int | float:
    """A number of a table, which may be text; `2.0` is whole.

    Raises:
        ValueError: it is not finite, or not whole where it must be.
    """
    parsed = float(value)
    if not math.isfinite(parsed) or (whole and not parsed.is_integer()):
        raise ValueError(value)
    return int(parsed) if whole else parsed
