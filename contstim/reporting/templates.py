"""Make reports from Markdown templates, and find cited works in the bibliography.

A template looks like this::

    ## Trials

    {{ quantity(trials, "trial") }} in {{ groups }} groups. **To fill in: who took part?**

    | condition | trials |
    | --- | ---: |

Jinja2 inserts the values. Values are plain text, so Markdown's special characters, such as `*`, are
escaped in values. Whole numbers are written with commas, as in `1,200`.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from contstim.reporting.report import (
    Bullets,
    Heading,
    Paragraph,
    Report,
    Span,
    Table,
    make_environment,
)
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jinja2 import Environment

    from contstim.reporting.report import Part, Text


_SYNTAX = re.compile(r"[\\*`#|+-]")
_RUNS = re.compile(r"\*\*((?:\\.|[^\\*])+)\*\*|`((?:\\.|[^\\`])+)`|((?:\\.|[^\\*`])+)")


def fill_template(package: str, name: str, **values: Any) -> Report:
    """Fill a template in a package's folder with values; the first heading becomes the title.

    Raises:
        TypeError: if the template does not begin with a heading.
    """
    title, *parts = _parse_parts(_render(package, name, values))
    if not isinstance(title, Heading):
        raise TypeError(f"The template {name} must begin with a heading.")
    return Report(title.text, parts)


def passages(package: str, name: str, **values: Any) -> dict[str, str]:
    """Fill a template in a package's folder; return heading (`## name`) → text below it.

    Line ends within a text become spaces.
    """
    texts = re.split(r"(?m)^## ", _render(package, name, values))[1:]
    parts = (text.partition("\n") for text in texts)
    return {heading.strip(): _unescape(" ".join(text.split())) for heading, _, text in parts}


def _render(package: str, name: str, values: Mapping[str, Any]) -> str:
    return _environment(package).get_template(name).render(values)


@cache
def _environment(package: str) -> Environment:
    # Autoescape marks the output of macros as safe, so that `_escape` escapes only values
    environment = make_environment(package, finalize=_escape, trim_blocks=True, lstrip_blocks=True)
    environment.globals |= {"quantity": quantity, "in_a_row": in_a_row}
    return environment


def _escape(value: Any) -> Any:
    from markupsafe import Markup

    if isinstance(value, Markup):
        return value
    text = f"{value:,}" if type(value) is int else str(value)
    return Markup(_SYNTAX.sub(r"\\\g<0>", re.sub(r"\s*\n\s*", " ", text)))


def in_a_row(names: Sequence[str]) -> str:
    """Join names as in `a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _parse_parts(text: str) -> Iterator[Part]:
    for block in re.split(r"\n\s*\n", text.strip()):
        if block.startswith("#"):
            marks, _, heading = block.partition(" ")
            yield Heading(_unescape(heading), len(marks))
        elif block.startswith("- "):
            yield Bullets([_parse_runs(item) for item in re.split(r"(?m)^- ", block)[1:]])
        elif block.startswith("|"):
            yield _parse_table(block.split("\n"))
        else:
            yield Paragraph(_parse_runs(block))


def _parse_table(lines: Sequence[str]) -> Table:
    header, rules, *rows = ([*map(str.strip, re.split(r"(?<!\\)\|", line)[1:-1])] for line in lines)
    numbers = [rule.endswith(":") for rule in rules]
    first = numbers.index(True) if True in numbers else len(numbers)
    notes = numbers[::-1].index(True) if True in numbers else 0
    cells = [[_parse_runs(cell) for cell in row] for row in rows]
    return Table([*map(_unescape, header)], cells, texts=first, notes=notes)


def _parse_runs(text: str) -> Text:
    """Parse **bold** runs and `code` in a paragraph, bullet or cell."""
    # Conditions in templates may leave punctuation on a separate line
    line = re.sub(r"\n(?=[,;.)])", "", text).replace("\n", " ").strip()
    runs: list[str | Span] = [
        _unescape(text) if text else Span(_unescape(bold or name), "strong" if bold else "code")
        for bold, name, text in _RUNS.findall(line)
    ]
    return tuple(runs) if any(isinstance(run, Span) for run in runs) else "".join(map(str, runs))


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


@cache
def works() -> tuple[tuple[str, str, str], ...]:
    """Return the first author, year and reference of each work in the bibliography."""
    text = (resources.files(__package__) / "references.txt").read_text(encoding="utf-8")
    return tuple(
        (*re.findall(r"^([^,]+),.*?\((\d{4})\)", work)[0], work) for work in text.splitlines()
    )


def works_in(text: str) -> list[str]:
    """Return the references of the works that a text cites.

    Citations have the form `Golan et al., 2023` or `Golan et al. (2023)`.
    """
    plain = text.replace("\\", "")
    return [
        work
        for author, year, work in works()
        if re.search(rf"{author}('s| and \w+| & \w+| et al\.)?,? \(?{year}", plain)
    ]
