"""Tables as Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table: first column left, numbers right; floats with three decimals.

    Texts are shown as they are: what Markdown would read as a formula, as HTML or as the end of a
    cell or row is escaped.
    """
    lines = [
        list(map(_cell, header)),
        ["---", *["---:"] * (len(header) - 1)],
        *([_cell(v) for v in r] for r in rows),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(value: object) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    for sign in "|$<":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.splitlines())


def markdown_code(text: str) -> str:
    """A text inside a line, as it is written."""
    marks = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    space = " " * (len(marks) > 1)
    return f"{marks}{space}{' '.join(text.splitlines())}{space}{marks}"
