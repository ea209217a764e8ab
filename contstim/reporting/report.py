"""A report of headings, paragraphs, lists, tables and figures, as an HTML or a Markdown page.

Report("Power", (
    Heading("Assumptions"),
    Paragraph(("All trials except ", code("catch"), ".")),
    Table(("model", "accuracy"), [("gpt2", 0.81)]),
))
"""

from __future__ import annotations

import functools
import math
import re
from base64 import b64encode
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from html import escape
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from jinja2 import Environment, Template


@dataclass(frozen=True, slots=True)
class Span:
    """A run of text with its own format.

    Attributes:
        text: text of the run.
        tag: HTML tag.
        path: target of a link, relative to the page, with slashes.
        title: tooltip on an HTML page.
    """

    text: str
    tag: Literal["code", "strong", "em", "mark", "kbd", "a"]
    path: str = ""
    title: str = ""

    @property
    def address(self) -> str:
        """The path as a URL with special characters quoted."""
        # Without "./", the name "a:b" would be a URL with the scheme "a"
        return f"./{quote(self.path)}"


_PIXELS = 0.36  # pixels on a page per dot of an image, so that 8-point type has 12 pixels

Text: TypeAlias = str | tuple[str | Span, ...]
"""A text, or a sequence of texts, formatted runs and links."""

Value: TypeAlias = Text | float | Span
"""Value of a table cell; a float is written with two decimals, or as a dash if it is not finite."""

code = partial(Span, tag="code")
"""A name, option or command in code font."""

strong = partial(Span, tag="strong")
emphasis = partial(Span, tag="em")
button = partial(Span, tag="kbd")

changed = partial(Span, tag="mark")
"""A marked word, such as a new word of a synthetic sentence."""


@dataclass(frozen=True)
class Heading:
    """A heading; the report's title has level 1."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; a note is printed in a lighter colour."""

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
        rows: rows with a cell per column. A row with an empty first cell continues the row above.
        texts: number of text columns on the left; columns of numbers are right-aligned.
        notes: number of text columns on the right.
        is_wide: whether the table is as wide as the page. The columns of consecutive wide tables
            are aligned.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Value]]
    texts: int = 1
    notes: int = 0
    is_wide: bool = False

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(
                    f"A row has {len(row)} cells, but the header has {len(self.header)}."
                )

    def is_number(self, column: int) -> bool:
        """Return True if the cells of a column are numbers."""
        return self.texts <= column < len(self.header) - self.notes


@dataclass(frozen=True)
class Picture:
    """A figure.

    Attributes:
        name: name of the file, without a suffix.
        png: content of the file.
        alternative: alternative text.
    """

    name: str
    png: bytes = field(repr=False)
    alternative: str = ""


@dataclass(frozen=True)
class Details:
    """Parts that a reader can unfold. In Markdown, the parts are shown below a bold line."""

    summary: str
    parts: Sequence[Part]
    is_open: bool = False


Part: TypeAlias = Heading | Paragraph | Bullets | Table | Picture | Details


@dataclass(frozen=True)
class Report:
    """A page.

    Attributes:
        warning: warning below the title, such as "Answers are artificial."; empty for none.
        meta: name → content of the `<meta>` tags of an HTML page.
    """

    title: str
    parts: Sequence[Part]
    warning: str = ""
    meta: Mapping[str, str] = field(default_factory=dict)

    def html(self) -> str:
        """Render a self-contained HTML page without scripts."""
        return page_template("contstim.reporting", "report.html.jinja").render(
            report=self,
            spans=spans,
            base64=lambda image: b64encode(image).decode(),
            # Bytes 16 to 19 of a PNG file are the width of the image
            pixels=lambda image: round(int.from_bytes(image[16:20]) * _PIXELS),
        )

    def printed(self) -> Iterator[Table | str]:
        """Yield the texts and tables for a terminal, without notes and pictures."""
        for part in self.parts:
            if isinstance(part, Table):
                yield part
            elif isinstance(part, Heading) or (isinstance(part, Paragraph) and not part.note):
                yield "".join(r if isinstance(r, str) else r.text for r in spans(part.text))

    def _repr_html_(self) -> str:
        """Return the page in a frame, so that the page and a notebook keep their own styles."""
        return (
            f'<iframe title="{escape(self.title)}" srcdoc="{escape(self.html())}" '
            f'style="width: 100%; height: 40em; border: 0"></iframe>'
        )

    def markdown(self) -> str:
        """Render a Markdown page; pictures are linked as NAME.png in the same folder."""
        blocks = [_render_heading(self.title, 1)]
        if self.warning:
            blocks.append(f"**{_render_runs(self.warning)}**")
        blocks += map(_render_part, self.parts)
        return "\n\n".join(blocks) + "\n"


def with_code(text: str) -> tuple[str | Span, ...]:
    """Split a message into runs; texts between `backticks` are in code font."""
    runs = re.split(r"`([^`]+)`", text)
    return tuple(code(run) if index % 2 else run for index, run in enumerate(runs))


def spans(value: Value) -> Iterable[Span | str]:
    """Return the runs of a text or a cell."""
    if isinstance(value, float):
        return (f"{value:.2f}" if math.isfinite(value) else "–",)
    if isinstance(value, tuple):
        return value
    return (value if isinstance(value, Span) else str(value),)


@functools.cache  # compiling a template takes longer than filling it
def page_template(package: str, name: str) -> Template:
    """Load a template in a package's folder, with values escaped for HTML."""
    return make_environment(package, keep_trailing_newline=True).get_template(name)


def make_environment(package: str, **options: Any) -> Environment:
    """Create a Jinja2 environment for the templates in a package's folder."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader(package, "")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, **options)


_MARKS = {"strong": "**", "em": "*", "mark": "**", "kbd": "**"}
_INLINE_SYNTAX = re.compile(
    r"[\\*`$<]"  # start of an escape, emphasis, code, a formula, HTML
    r"|(?<![^\W_])_|_(?![^\W_])"  # emphasis, except between two letters or digits
    r"|[\[\]]"  # brackets of links and alternative texts
    r"|&(?=#?\w+;)"  # character entities
)
# Pattern of the start of a line that Markdown reads as a list, a heading, a quotation or code
_LINE_SYNTAX = re.compile(r"[-+#>=~]|\d+[.)]")


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
    # Markdown removes # at the end of a heading, unless it is escaped
    closing = re.sub(r"#(?=#*$)", r"\\#", _escape_inline(text))
    return f"{'#' * level} {closing}"


def _render_table(table: Table) -> str:
    rules = ["---:" if table.is_number(column) else "---" for column in range(len(table.header))]

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
            # The delimiter has more backticks than any run of backticks in the text
            marks = "`" * (1 + max(map(len, re.findall("`+", span.text)), default=0))
            space = " " * (len(marks) > 1)
            content = re.sub(r"\s*\n\s*", " ", span.text)
            fragments.append(f"{marks}{space}{content}{space}{marks}")
        else:
            fragments.append(f"{_MARKS[span.tag]}{_escape_inline(span.text)}{_MARKS[span.tag]}")
    return "".join(fragments)


def _escape_inline(text: str) -> str:
    return re.sub(r"\s*\n\s*", " ", _INLINE_SYNTAX.sub(r"\\\g<0>", text))


LONGEST = 28
"""Maximum number of characters of a short name."""


def names_for_tables(models: Sequence[str]) -> dict[str, str]:
    """Return model name → name in tables. If any model name is long, all names are shortened."""
    is_short = all(len(name) <= LONGEST for name in models)
    return dict(zip(models, models if is_short else short_names(models), strict=True))


def short_names(models: Sequence[str]) -> list[str]:
    """Shorten names of models that contain paths.

    A short name has the last part of the path, the scoring rule and the transform. For example,
    `hf:runs/a/bert@chain` and `hf:runs/gpt2` become `bert@chain` and `gpt2`. Folders are added to
    names that would be equal. `shortened` cuts names of more than 28 characters.
    """
    names = [_tail(model, 1) for model in models]
    depth, deepest = 1, max((model.count("/") for model in models), default=0)
    # In each round, a folder is added to equal names
    while len(set(names)) < len(set(models)) and depth < deepest:
        depth += 1
        counts = Counter(names)
        names = [
            _tail(m, depth) if counts[n] > 1 else n for m, n in zip(models, names, strict=True)
        ]
    return shortened(names if len(set(names)) == len(set(models)) else models)


def shortened(names: Sequence[str]) -> list[str]:
    """Cut the beginning of names of more than 28 characters. Names with equal ends get numbers."""
    short = {name: name for name in names if len(name) <= LONGEST}
    used_names = set(short)
    ends = Counter(name[1 - LONGEST :] for name in set(names) - used_names)
    for name in names:
        if name in short:
            continue
        # The result is "…end", or "(1) …end", "(2) …end" if several names have this end. If the
        # result is another model's name, the next number is tried
        for number in count(1 if ends[name[1 - LONGEST :]] > 1 else 0):
            front = f"({number}) …" if number else "…"
            short[name] = front + name[len(front) - LONGEST :]
            if short[name] not in used_names:
                break
        used_names.add(short[name])
    return [short[name] for name in names]


def _tail(model: str, depth: int) -> str:
    """Return the last `depth` parts of the path in a specification, with rule and transform."""
    cut = min((position for position in map(model.find, "@+") if position >= 0), default=len(model))
    return "/".join(model[:cut].split("/")[-depth:]) + model[cut:]
