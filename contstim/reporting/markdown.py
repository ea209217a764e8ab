"""A report as a Markdown page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from contstim.reporting.report import Bullets, Details, Heading, Paragraph, Picture, Table, spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.reporting.report import Part, Report, Text, Value

_MARKS = {"strong": "**", "em": "*", "mark": "**", "kbd": "**"}
_INLINE_SYNTAX = re.compile(
    r"[\\*`$<]"  # escapes, emphasis, code, formulas, HTML
    r"|(?<![^\W_])_|_(?![^\W_])"  # emphasis, unless between two letters
    r"|[\[\]]"  # links and alternative texts
    r"|&(?=#?\w+;)"  # character entities
)
_LINE_SYNTAX = re.compile(r"[-+#>=~]|\d+[.)]")
"""Start of a list, a heading, a quotation or code, or underline of the line above."""


def write_markdown(report: Report) -> str:
    """Render a report as Markdown, with Markdown syntax in its texts escaped."""
    blocks = [_render_heading(report.title, 1)]
    if report.warning:
        blocks.append(f"**{_render_runs(report.warning)}**")
    blocks += map(_render_part, report.parts)
    return "\n\n".join(blocks) + "\n"


def _render_part(part: Part) -> str:
    match part:
        case Heading(text, level):
            return _render_heading(text, level)
        case Paragraph(text):
            return _render_line(text)
        case Bullets(items):
            return "\n".join(f"- {_render_line(item)}" for item in items)
        case Table():
            return _render_table(part)
        case Picture(name, alternative=alternative):
            return f"![{_escape_inline(alternative or name)}]({name}.png)"
        case Details(summary, parts):
            return "\n\n".join([f"**{_render_runs(summary)}**", *map(_render_part, parts)])


def _render_heading(text: str, level: int) -> str:
    # Unescaped, final signs # would be removed as a closing sequence
    closing = re.sub(r"#(?=#*$)", r"\\#", _escape_inline(text))
    return f"{'#' * level} {closing}"


def _render_table(table: Table) -> str:
    columns = range(len(table.header))
    rules = ["---:" if table.is_number(column) else "---" for column in columns]

    def line(cells: Sequence[Value]) -> str:
        escaped_cells = (_render_runs(cell).replace("|", "\\|") for cell in cells)
        return f"| {' | '.join(escaped_cells)} |"

    return "\n".join([line(table.header), f"| {' | '.join(rules)} |", *map(line, table.rows)])


def _render_line(text: Text) -> str:
    """Render a text at the start of a line, where more characters are syntax."""
    runs = _render_runs(text)
    sign = _LINE_SYNTAX.match(runs)
    return f"{runs[: sign.end() - 1]}\\{runs[sign.end() - 1 :]}" if sign else runs


def _render_runs(text: Value) -> str:
    fragments = []
    for span in spans(text):
        if isinstance(span, str):
            fragments.append(_escape_inline(span))
        elif span.tag == "a":
            fragments.append(f"[{_escape_inline(span.text)}]({span.address})")
        elif span.tag == "code":
            # More backticks than any run in the text, separated by a space
            marks = "`" * (1 + max(map(len, re.findall("`+", span.text)), default=0))
            space = " " * (len(marks) > 1)
            content = re.sub(r"\s*\n\s*", " ", span.text)
            fragments.append(f"{marks}{space}{content}{space}{marks}")
        else:
            fragments.append(f"{_MARKS[span.tag]}{_escape_inline(span.text)}{_MARKS[span.tag]}")
    return "".join(fragments)


def _escape_inline(text: str) -> str:
    return re.sub(r"\s*\n\s*", " ", _INLINE_SYNTAX.sub(r"\\\g<0>", text))
