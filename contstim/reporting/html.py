"""A report as an HTML page that stands alone: no scripts, nothing fetched."""

from __future__ import annotations

from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING

from contstim.reporting.report import spans, value_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.reporting.report import Report

_PIXELS = 0.36  # for each of a figure's 300 dots an inch: type of 8 points has 12 pixels


def write_html(report: Report) -> str:
    """The page; every text of the report is escaped. See `report.html.jinja`."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("contstim.reporting", ""),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.globals.update(spans=spans, value_text=value_text, pixels=_pixels, base64=_base64)
    return environment.get_template("report.html.jinja").render(report=report)


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #1b1b1b; background: #fff; }
.wide { overflow-x: auto; margin: .5rem 0; }
table { border-collapse: collapse; margin: 0 0 1.5rem; }
th, td { text-align: left; padding: .25rem .7rem; border-bottom: 1px solid #ddd;
         vertical-align: top; }
td { overflow-wrap: anywhere; min-width: 7rem; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.number { min-width: 0; }
p.note { color: #555; }
p.banner { font-size: 1.3rem; font-weight: 700; padding: .8rem 1rem; border-radius: .3rem;
           color: #fff; background: #a40000; }
"""


def page(title: str, body: Iterable[str]) -> str:
    """A whole page with a heading."""
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n" + "\n".join(body) + "\n</body>\n</html>\n"
    )


def heading(text: str, level: int = 2) -> str:
    """A heading."""
    return f"<h{level}>{escape(text)}</h{level}>"


def paragraph(text: str, *, note: bool = False) -> str:
    """A paragraph; a note is printed more lightly."""
    kind = ' class="note"' if note else ""
    return f"<p{kind}>{escape(text)}</p>"


def banner(text: str) -> tuple[str, ...]:
    """A warning that nobody overlooks; nothing where there is none."""
    return (f'<p class="banner" role="alert">{escape(text)}</p>',) if text else ()


def image(png: bytes, alternative: str) -> str:
    """A picture, kept inside the page: type of 8 points has 12 pixels, on a phone 6 or more."""
    data, width = b64encode(png).decode(), round(_width(png) * _PIXELS)
    return (
        f'<div class="wide"><img src="data:image/png;base64,{data}" alt="{escape(alternative)}" '
        f'style="width: min(100%, {width}px); min-width: {min(width, max(480, width // 2))}px">'
        "</div>"
    )


def _pixels(png: bytes) -> int:
    """How wide a figure is shown."""
    return round(_width(png) * _PIXELS)


def _base64(png: bytes) -> str:
    return b64encode(png).decode()


def _width(png: bytes) -> int:
    """The number of columns, which stands in a PNG's first chunk."""
    return int.from_bytes(png[16:20])


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, texts: int = 1, notes: int = 0
) -> str:
    """A table whose first columns hold texts, whose last hold notes, and all others numbers.

    On a narrow page it is scrolled sideways by itself.
    """
    numbers = len(header) - texts - notes
    kinds = [""] * texts + [' class="number"'] * numbers + [""] * notes

    def line(tag: str, cells: Sequence[str]) -> str:
        inside = (f"<{tag}{k}>{escape(c)}</{tag}>" for k, c in zip(kinds, cells, strict=True))
        return f"<tr>{''.join(inside)}</tr>"

    return "\n".join(
        [
            '<div class="wide"><table>',
            line("th", header),
            *(line("td", row) for row in rows),
            "</table></div>",
        ]
    )
