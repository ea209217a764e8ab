"""Tables that platforms give back, row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.tables import read_csv

if TYPE_CHECKING:
    from pathlib import Path


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file by the names of its columns, without spaces around cells.

    Cells may be separated by commas, semicolons or tabs.

    Raises:
        InputError: the file cannot be read or is not a table.
    """
    table = read_csv(path, delimiters=",;\t")
    rows = zip(*table.values(), strict=True)
    return [dict(zip(table, (cell.strip() for cell in row), strict=True)) for row in rows]
