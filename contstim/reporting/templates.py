"""Reports from templates: Markdown with values to fill in, which people can read and mend.

    ## Trials

    {{ counted(trials, "trial") }} in {{ groups }} groups. **To fill in: who took part?**

    | condition | trials |
    | --- | ---: |

Jinja2 fills a template in. A value is text and nothing else: whatever signs it holds, it begins no
heading, cell or bold run. Whole numbers are written as `1,200`.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

from contstim.reporting.report import Bullets, Heading, Paragraph, Report, Span, Table
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jinja2 import Environment, Template

    from contstim.reporting.report import Part, Text

_SIGNS = re.compile(r"[\\*`#|+-]")
_RUNS = re.compile(r"\*\*((?:\\.|[^\\*])+)\*\*|`((?:\\.|[^\\`])+)`|((?:\\.|[^\\*`])+)")


def filled(package: str, name: str, **values: Any) -> Report:
    """The report that a template beside a package's modules makes of values.

    Its first heading is the title.
    """
    title, *parts = _parts(_rendered(package, name, values))
    if not isinstance(title, Heading):
        raise TypeError(f"{name} begins with no heading.")
    return Report(title.text, parts)


def passages(package: str, name: str, **values: Any) -> dict[str, str]:
    """Texts of a template beside a package's modules, by the headings (`## name`) above them.

    Line ends within a text mean nothing; one that says nothing is empty.
    """
    texts = re.split(r"(?m)^## ", _rendered(package, name, values))[1:]
    parts = (text.partition("\n") for text in texts)
    return {heading.strip(): _plain(" ".join(text.split())) for heading, _, text in parts}


def _rendered(package: str, name: str, values: Mapping[str, Any]) -> str:
    return _environment(package).get_template(name).render(values)


@functools.cache  # a study writes its page twice a stage; compiling takes longer than filling in
def page_template(package: str, name: str) -> Template:
    """An HTML page's form beside a package's modules; values are escaped for HTML."""
    return _loaded(package, keep_trailing_newline=True).get_template(name)


def _loaded(package: str, **options: Any) -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader(package, "")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, **options)


@functools.cache
def _environment(package: str) -> Environment:
    # It escapes, too, so that what a macro made of values is told from a value
    environment = _loaded(package, finalize=_escaped, trim_blocks=True, lstrip_blocks=True)
    environment.globals |= {"counted": counted, "in_a_row": in_a_row}
    return environment


def _escaped(value: Any) -> Any:
    from markupsafe import Markup

    if isinstance(value, Markup):
        return value
    text = f"{value:,}" if type(value) is int else str(value)
    return Markup(_SIGNS.sub(r"\\\g<0>", re.sub(r"\s*\n\s*", " ", text)))


def in_a_row(names: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _parts(text: str) -> Iterator[Part]:
    for block in re.split(r"\n\s*\n", text.strip()):
        if block.startswith("#"):
            marks, _, heading = block.partition(" ")
            yield Heading(_plain(heading), len(marks))
        elif block.startswith("- "):
            yield Bullets([_runs(item) for item in re.split(r"(?m)^- ", block)[1:]])
        elif block.startswith("|"):
            yield _table(block.split("\n"))
        else:
            yield Paragraph(_runs(block))


def _table(lines: Sequence[str]) -> Table:
    header, rules, *rows = ([*map(str.strip, re.split(r"(?<!\\)\|", line)[1:-1])] for line in lines)
    numbers = [rule.endswith(":") for rule in rules]
    first = numbers.index(True) if True in numbers else len(numbers)
    notes = numbers[::-1].index(True) if True in numbers else 0
    cells = [[_runs(cell) for cell in row] for row in rows]
    return Table([*map(_plain, header)], cells, texts=first, notes=notes)


def _runs(text: str) -> Text:
    """A paragraph, a bullet or a cell with its **bold** runs and its `code`."""
    # A condition of a template may leave what ends a clause on a line of its own
    line = re.sub(r"\n(?=[,;.)])", "", text).replace("\n", " ").strip()
    runs: list[str | Span] = [
        _plain(text) if text else Span(_plain(bold or name), "strong" if bold else "code")
        for bold, name, text in _RUNS.findall(line)
    ]
    return tuple(runs) if any(isinstance(run, Span) for run in runs) else "".join(map(str, runs))


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
