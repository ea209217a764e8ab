"""A report as a Markdown page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from contstim.reporting.report import Bullets, Details, Heading, Paragraph, Picture, Table, spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.reporting.report import Part, Report, Text, Value

_MARKS = {"strong": "**", "em": "*", "mark": "**", "kbd": "**"}
_INSIDE = re.compile(
    r"[\\*`$<]"  # what takes a sign's meaning away, emphasis, code, formulas, HTML
    r"|(?<![^\W_])_|_(?![^\W_])"  # emphasis too, unless between two letters
    r"|[\[\]]"  # links and what pictures show
    r"|&(?=#?\w+;)"  # a character by its name
)
_AT_THE_START = re.compile(r"[-+#>=~]|\d+[.)]")
"""What begins a list, a heading, a quotation or code, or underlines the line above."""


def write_markdown(report: Report) -> str:
    """The page; texts are shown as they are, whatever Markdown would make of their characters."""
    blocks = [_heading(report.title, 1)]
    if report.warning:
        blocks.append(f"**{_runs(report.warning)}**")
    blocks += map(_part, report.parts)
    return "\n\n".join(blocks) + "\n"


def _part(part: Part) -> str:
    match part:
        case Heading(text, level):
            return _heading(text, level)
        case Paragraph(text):
            return _line(text)
        case Bullets(items):
            return "\n".join(f"- {_line(item)}" for item in items)
        case Table():
            return _table(part)
        case Picture(name, alternative=alternative):
            return f"![{_plain(alternative or name)}]({name}.png)"
        case Details(summary, parts):
            return "\n\n".join([f"**{_runs(summary)}**", *map(_part, parts)])


def _heading(text: str, level: int) -> str:
    closing = re.sub(r"#(?=#*$)", r"\\#", _plain(text))  # else signs that only close a heading
    return f"{'#' * level} {closing}"


def _table(table: Table) -> str:
    columns = range(len(table.header))
    rules = ["---:" if table.is_number(column) else "---" for column in columns]

    def line(cells: Sequence[Value]) -> str:
        inside = (_runs(cell).replace("|", "\\|") for cell in cells)
        return f"| {' | '.join(inside)} |"

    return "\n".join([line(table.header), f"| {' | '.join(rules)} |", *map(line, table.rows)])


def _line(text: Text) -> str:
    """A text at the start of a line, where further characters have a meaning."""
    runs = _runs(text)
    sign = _AT_THE_START.match(runs)
    return f"{runs[: sign.end() - 1]}\\{runs[sign.end() - 1 :]}" if sign else runs


def _runs(text: Value) -> str:
    written = []
    for span in spans(text):
        if isinstance(span, str):
            written.append(_plain(span))
        elif span.tag == "a":
            written.append(f"[{_plain(span.text)}]({span.address})")
        elif span.tag == "code":
            # between more backticks than the text holds in a row, and apart from its own
            marks = "`" * (1 + max(map(len, re.findall("`+", span.text)), default=0))
            space = " " * (len(marks) > 1)
            inside = re.sub(r"\s*\n\s*", " ", span.text)
            written.append(f"{marks}{space}{inside}{space}{marks}")
        else:
            written.append(f"{_MARKS[span.tag]}{_plain(span.text)}{_MARKS[span.tag]}")
    return "".join(written)


def _plain(text: str) -> str:
    return re.sub(r"\s*\n\s*", " ", _INSIDE.sub(r"\\\g<0>", text))
