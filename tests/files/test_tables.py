"""Tables: strict CSV, and numbers and texts of cells."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import InputError
from contstim.files.tables import (
    columns_of,
    frame_of,
    number,
    parsed,
    read_csv,
    read_rows,
    read_table,
    text,
    whole_number,
    write_table,
)
from contstim.words.sentence import Sentence

END = "\n"
# Half of a doubled quotation mark looks like the end of a cell
CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters='"' + END), max_size=6)


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=4), st.data())
def test_truncated_files_lose_no_row_silently(
    rows: list[tuple[str, str]], data: st.DataObject
) -> None:
    """Property: a truncated table is refused, or read as the first rows that were written."""
    file = io.StringIO(newline="")
    csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator=END).writerows([("a", "b"), *rows])
    content = file.getvalue()
    cut = data.draw(st.integers(0, len(content)))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        path.write_text(content[:cut], encoding="utf-8", newline="")
        try:
            columns = read_table(path)
        except InputError:
            return
    rows_read = list(zip(*columns.values(), strict=True))
    assert rows_read[:-1] == rows[: len(rows_read[:-1])]
    assert not rows_read or rows_read[-1] in (
        rows[len(rows_read) - 1],
        (rows[len(rows_read) - 1][0], ""),
    )
    assert len(rows_read) + 1 >= content[:cut].count(END)


def test_file_truncated_in_a_quoted_cell_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    for line, content in (
        (5, '"sentence","m"\n"One two.",-1\n"Three\nfour.",-2\n"Five six.,-3\n"x",-4\n'),
        (2, '"sentence","m"\n"One "two",-1\n'),
        (1, '"sentence","m'),
    ):
        path.write_text(content)
        for read in (read_table, read_csv):
            with pytest.raises(InputError, match=f"line {line}: the row that begins here is not"):
                read(path)


def test_line_ends_of_all_systems_are_read(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    for end in ("\n", "\r\n", "\r"):
        path.write_text(end.join(["a,b", "1,2", "3,4", ""]), newline="")
        assert read_table(path) == {"a": ["1", "3"], "b": ["2", "4"]}


def test_wide_header_is_read_in_linear_time(tmp_path: Path) -> None:
    """Comparing each of 100,000 columns with every other would take minutes."""
    names = [f"c{n}" for n in range(100_000)]
    path = tmp_path / "wide.csv"
    path.write_text(",".join(names) + "\n" + ",".join("1" * len(names)) + "\n")
    assert len(read_table(path)) == 100_000
    path.write_text(",".join([*names, "c7"]) + "\n")
    with pytest.raises(InputError, match="names these columns twice: c7"):
        read_table(path)


def test_parquet_content_does_not_depend_on_the_path(tmp_path: Path) -> None:
    """Pyarrow reads `model=gpt2` in a path as a column, and a folder as a table in parts."""
    folder = tmp_path / "model=gpt2"
    write_table(folder / "table.parquet", {"a": [1, 2]})
    assert read_table(folder / "table.parquet") == {"a": [1, 2]}
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(InputError, match="Is a directory"):
        read_table(tmp_path / "folder.parquet")


def test_parquet_with_repeated_columns_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(InputError, match="not a readable Parquet file: Multiple matches"):
        read_table(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("cell", "value"),
    [("3", 3.0), (" -1.5e-3\n", -0.0015), ("+2.", 2.0), (7, 7.0), (np.float32(0.5), 0.5)],
)
def test_cells_are_read_as_numbers(cell: object, value: float) -> None:
    assert number(cell) == value


@pytest.mark.parametrize(
    "cell",
    [
        "-1_0", "1_000", "３", "٣", "nan", "inf", "-Infinity", "1e999", "", " ", "one", "0x10",
        "1,5", None, True, False, [1], {"a": 1}, b"1", 10**400, math.nan, math.inf, -math.inf, 1j,
    ],
)  # fmt: skip
def test_cells_that_are_not_numbers_are_refused(cell: object) -> None:
    with pytest.raises(ValueError, match="is not a"):
        number(cell)
    with pytest.raises(ValueError, match="is not a"):
        number(cell, must_be_whole=True)


def test_whole_and_infinite_numbers_need_their_option() -> None:
    assert whole_number("2.0") == 2
    assert number("-inf", infinite=True) == -math.inf
    for cell in ("2.5", "inf", 1e400):
        with pytest.raises(ValueError, match="is not a"):
            whole_number(cell)
    with pytest.raises(ValueError, match="is not a"):
        number("nan", infinite=True)


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53))
def test_written_numbers_are_read_unchanged(value: float) -> None:
    assert number(repr(value)) == value


def test_cells_are_read_as_texts() -> None:
    assert [text(cell) for cell in ("", "a", 3, 2.5)] == ["", "a", "3", "2.5"]
    for cell in (None, True, ["a"], {"a": 1}):
        with pytest.raises(ValueError, match="is not a"):
            text(cell)


def test_error_names_row_and_column_of_an_invalid_cell() -> None:
    cells: list[Any] = ["1", "x" * 1_000]
    with pytest.raises(InputError, match=r"^t\.csv, row 1: 'x{39}… under n is not a number\.$"):
        parsed("t.csv", "n", cells, number, "number")


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Item:
    """A row with a field of every kind."""

    name: str
    colour: Colour
    sentence: Sentence | None
    number: float = 0.5


ROWS = [Item("a", Colour.RED, Sentence.parse("A b")), Item("b", Colour.RED, None, math.nan)]


def test_rows_are_converted_to_columns_of_plain_values() -> None:
    columns = columns_of(Item, iter(ROWS))
    texts = {"name": ["a", "b"], "colour": ["red", "red"], "sentence": ["A b.", ""]}
    assert columns == texts | {"number": [0.5, pytest.approx(math.nan, nan_ok=True)]}
    assert type(columns["colour"][0]) is str
    assert columns_of(Item, []) == {name: [] for name in columns}
    frame = frame_of(columns)
    assert frame["sentence"].tolist() == ["A b.", ""]
    assert frame["number"].isna().tolist() == [False, True]


def test_field_with_a_default_needs_no_column(tmp_path: Path) -> None:
    readers = {
        "str": (text, "text"),
        "Colour": (Colour, "colour"),
        "Sentence | None": (Sentence.parse, "sentence"),
        "number": (lambda cell: 9.0 if cell is None else number(cell), "number"),
    }
    path = tmp_path / "items.csv"
    path.write_text("further,colour,name,sentence\n1,red,a,A b\n")
    assert read_rows(path, Item, readers) == (replace(ROWS[0], number=9.0),)
    path.write_text("colour,name,sentence\nred,a,A b\nblue,b,A b\n")
    with pytest.raises(InputError, match="row 1: 'blue' under colour is not a colour"):
        read_rows(path, Item, readers)
    path.write_text("colour,name\nred,a\n")
    with pytest.raises(InputError, match="not a table of items: it lacks sentence"):
        read_rows(path, Item, readers)


# Content of a table from a spreadsheet program, its encoding, and its first row or error
SHEETS = {
    "commas and points": ("a,rt\nx,1.5\n", "utf-8", ("x", 1.5)),
    "decimal commas": ("\ufeffa;rt\r\nx, y;-0,25\r\nz;1234,5\r\n", "utf-8", ("x, y", -0.25)),
    "thousands with three decimals": ("a;rt\nx;1,234\n", "utf-8", ("x", 1.234)),
    "an exponent": ("a;rt\nx;2,5E-05\n", "utf-8", ("x", 2.5e-05)),
    "semicolons and points": ("a;rt\nx;1.5\n", "utf-8", ("x", 1.5)),
    "Unicode text of Excel": ("a\trt\r\nZoë, 中\t0,5\r\n", "utf-16", ("Zoë, 中", 0.5)),
    "the other order of bytes": ("\ufeffa\trt\nZoë\t2\n", "utf-16-be", ("Zoë", 2.0)),
    "quoted signs in a header": ('"a","rt","b;c;d;e"\nx,1.5,y\n', "utf-8", ("x", 1.5)),
    "commas in a text column": ("a;rt\n1,2,3;2,5\n", "utf-8", ("1,2,3", 2.5)),
    "a column of texts": ("a;rt\n1,5;2,5\nx;3,5\n", "utf-8", ("1,5", 2.5)),
    "both signs in two columns": ("a;rt;c\nx;1,5;2.5\n", "utf-8", "1,5 under rt, 2.5 under c"),
    "both signs in a column": ("a;rt\nx;1,5\nx;2.5\n", "utf-8", "1,5 under rt, 2.5 under rt"),
    "separators of thousands": ("a;rt\nx;1.234,5\n", "utf-8", "1.234,5 under rt, 1.234,5 under rt"),
    "commas for thousands": ("a;rt\nx;1,234,567\n", "utf-8", "1,234,567 under rt"),
    "thousands or decimals": ("a\trt\nx\t1,234\n", "utf-8", "1,234 under rt"),
    "an older code page": ("a;rt\nZoë;1,5\n", "cp1252", "is not UTF-8 (byte 8). Save it in UTF-8."),
    "half a character": ("\ufeffa;b\nx;1", "utf-16-le-cut", "is not UTF-16-LE (byte "),
}


@pytest.mark.parametrize("name", SHEETS)
def test_tables_of_international_spreadsheets_are_read(tmp_path: Path, name: str) -> None:
    content, encoding, expected = SHEETS[name]
    encoded = content.encode(encoding.removesuffix("-cut"))
    path = tmp_path / "table.csv"
    path.write_bytes(encoded[:-1] if encoding.endswith("-cut") else encoded)
    if isinstance(expected, str):
        with pytest.raises(InputError) as error:
            read_table(path)
        assert str(path) in str(error.value)
        assert expected in str(error.value)
        return
    table = read_table(path)
    assert (table["a"][0], number(table["rt"][0])) == expected


def test_tab_separated_tables_are_read_here_and_by_pandas(tmp_path: Path) -> None:
    path = tmp_path / "table.tsv"
    columns: dict[str, list[Any]] = {
        "sentence": ['She said "no", and\tleft', "1984", "a\nb"],
        "score": [0.1, -1e-9, 2.0],
    }
    write_table(path, columns)
    assert read_table(path) == {
        "sentence": columns["sentence"],
        "score": [str(score) for score in columns["score"]],
    }
    assert pd.read_csv(path, sep="\t", dtype={"sentence": str}).to_dict("list") == columns


def test_quotation_marks_in_tab_separated_corpora_are_text(tmp_path: Path) -> None:
    path = tmp_path / "table.tsv"
    path.write_text('sentence\tn\n"No," he said.\t1\nSo "it" is.\t2\n', encoding="utf-8")
    assert read_table(path)["sentence"] == ['"No," he said.', 'So "it" is.']
    path.write_text('sentence\tn\n"No," he said.\t1\n"It is."\t2\n', encoding="utf-8")
    with pytest.raises(InputError, match="line 2: the row that begins here is not readable CSV"):
        read_table(path)
