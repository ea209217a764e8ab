"""A report: headings, paragraphs, lists, tables and figures, whatever it is written as.

Whoever has results makes a `Report`; `report.html.jinja` and `markdown` write it. What a part means
is said once, here; how it looks is said once, in the writers.

    Report("Power", (
        Heading("Assumptions"),
        Paragraph(("All trials but ", code("catch"), ".")),
        Table(("model", "accuracy"), [("gpt2", 0.81)]),
    ))
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from dataclasses import dataclass, field
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Span:
    """A run of characters that differs from the text around it.

    Attributes:
        text: what is read.
        tag: of HTML, by which it differs.
        path: of a link, the file beside the page, or in a folder below it, with slashes.
        title: what is read where the pointer rests, of an HTML page.
    """

    text: str
    tag: Literal["code", "strong", "em", "mark", "kbd", "a"]
    path: str = ""
    title: str = ""

    @property
    def address(self) -> str:
        """The path as an address: characters that mean something there are written otherwise."""
        # "./", because a file may be called "a:b", and what stands before a colon is a scheme
        return f"./{quote(self.path)}"


_PIXELS = 0.36  # for each of a figure's 300 dots an inch: type of 8 points has 12 pixels

Text: TypeAlias = str | tuple[str | Span, ...]
"""A text, or runs of it of which some differ or lead somewhere."""

Value: TypeAlias = Text | float | Span
"""What a cell of a table holds; a float is written with two decimals, or a dash if not finite."""

code = partial(Span, tag="code")
"""A name, option or command, as it is typed."""

strong = partial(Span, tag="strong")
"""A run in bold."""

emphasis = partial(Span, tag="em")
"""A run in italics."""

button = partial(Span, tag="kbd")
"""Label of a button, as a span."""

changed = partial(Span, tag="mark")
"""A word that differs from the one it is compared with."""


@dataclass(frozen=True)
class Heading:
    """A heading; the report's title is of level 1."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; a note is printed more lightly."""

    text: Text
    note: bool = False


@dataclass(frozen=True)
class Bullets:
    """A list of short texts."""

    items: Sequence[Text]


@dataclass(frozen=True)
class Table:
    """Rows of cells under a header.

    Attributes:
        header: names of the columns.
        rows: as many cells in each; a row whose first cell is empty belongs to the row above.
        texts: how many columns, from the left, hold texts; numbers stand at the right of theirs.
        notes: how many of the last columns hold texts.
        is_wide: whether it is as wide as the page, so that several below one another look alike.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Value]]
    texts: int = 1
    notes: int = 0
    is_wide: bool = False

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(f"{len(row)} cells under {len(self.header)} names of columns.")

    def is_number(self, column: int) -> bool:
        """True if the cells of a column are numbers."""
        return self.texts <= column < len(self.header) - self.notes


@dataclass(frozen=True)
class Picture:
    """A figure.

    Attributes:
        name: of its file, without an ending.
        png: its content, for pages that stand alone.
        alternative: what it shows, in words.
    """

    name: str
    png: bytes = field(repr=False)
    alternative: str = ""


@dataclass(frozen=True)
class Details:
    """Parts that a reader unfolds; on paper, parts under a bold line."""

    summary: str
    parts: Sequence[Part]
    is_open: bool = False


Part: TypeAlias = Heading | Paragraph | Bullets | Table | Picture | Details


@dataclass(frozen=True)
class Report:
    """A page.

    Attributes:
        title: its first heading.
        parts: what it says, in this order.
        warning: what nobody may overlook, such as that answers are artificial; empty: nothing.
        meta: of an HTML page, names and contents of `<meta>` tags, which no reader sees.
    """

    title: str
    parts: Sequence[Part]
    warning: str = ""
    meta: Mapping[str, str] = field(default_factory=dict)

    def html(self) -> str:
        """One HTML page that stands alone: no scripts, nothing fetched."""
        from contstim.reporting.templates import page_template  # which loads Jinja2

        return page_template("contstim.reporting", "report.html.jinja").render(
            report=self,
            spans=spans,
            base64=lambda png: b64encode(png).decode(),
            # the number of columns stands in a PNG's first chunk
            pixels=lambda png: round(int.from_bytes(png[16:20]) * _PIXELS),
        )

    def _repr_html_(self) -> str:
        """HTML for a notebook: the page in a frame, so that its style stays its own."""
        return (
            f'<iframe title="{escape(self.title)}" srcdoc="{escape(self.html())}" '
            f'style="width: 100%; height: 40em; border: 0"></iframe>'
        )

    def markdown(self) -> str:
        """One Markdown page; pictures are linked as NAME.png beside it."""
        from contstim.reporting.markdown import write_markdown

        return write_markdown(self)


def with_code(text: str) -> tuple[str | Span, ...]:
    """Runs of a message, in which names and commands are between `backticks`."""
    runs = re.split(r"`([^`]+)`", text)
    return tuple(code(run) if index % 2 else run for index, run in enumerate(runs))


def spans(value: Value) -> Iterable[Span | str]:
    """The runs of a text or a cell."""
    if isinstance(value, float):
        return (f"{value:.2f}" if math.isfinite(value) else "–",)
    if isinstance(value, tuple):
        return value
    return (value if isinstance(value, Span) else str(value),)
