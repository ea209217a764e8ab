"""The folder that every evaluation writes: tables, figures, and a page that says what was run."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.files.files import reading, write_text
from contstim.files.records import provenance
from contstim.files.tables import write_table
from contstim.models.base import conventions
from contstim.reporting.canvas import save, styled
from contstim.reporting.report import Bullets, Heading, Picture, Report, Table, code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from matplotlib.figure import Figure

    from contstim.models.base import Scorer
    from contstim.reporting.report import Part

    Columns: TypeAlias = dict[str, list[Any]]


@dataclass(frozen=True)
class Findings:
    """Findings of an evaluation, ready to be printed and written.

    Attributes:
        title: heading of the page.
        summary: what a terminal shows.
        parts: what the page says of the results.
        tables: columns by the table's name; a table without rows is written with its header, one
            without columns is not.
        figures: makes the figures, by name.
        facts: seeds, samples, options, counts.
    """

    title: str
    summary: Table
    parts: Sequence[Part]
    tables: Mapping[str, Columns]
    figures: Callable[[], Mapping[str, Figure]]
    facts: Mapping[str, Any] = field(default_factory=dict)


def write_findings(
    findings: Findings,
    folder: Path | str,
    *,
    models: Sequence[Scorer] = (),
    data: Iterable[Path] = (),
    **facts: Any,
) -> tuple[dict[str, Any], list[Path]]:
    """Write NAME.csv for each table, NAME.png and .pdf for each figure, and the page.

    The page is report.html, which stands alone, and report.md. It ends with the
    figures and with what was run: every model with rule, context and fingerprint, the versions, the
    hash of the data and the facts.

    Args:
        findings: what is written.
        folder: made where it is missing; files of the same names are replaced.
        models: what was scored; none where scores came from a table.
        data: the files that were read.
        facts: further ones.

    Returns:
        Facts for a record, and the files beside the page.

    Raises:
        InputError: a file cannot be written or read.
    """
    folder = Path(folder)
    written: list[Path] = []
    for name, columns in findings.tables.items():
        if columns:
            written.append(folder / f"{name}.csv")
            cells = {name: [*map(filled, column)] for name, column in columns.items()}
            write_table(written[-1], cells)
    pictures: list[Part] = []
    with styled():
        for name, figure in findings.figures().items():
            pictures.append(Picture(name, save(figure, folder / name), alternative=name))
            written += [folder / f"{name}.png", folder / f"{name}.pdf"]
    facts = {"data_sha256": data_hash(data), **facts, **findings.facts}
    heading = [Heading("Figures")] if pictures else []
    parts = (*findings.parts, *heading, *pictures, *_run_parts(models, facts))
    report = Report(findings.title, parts)
    write_text(folder / "report.md", report.markdown())
    write_text(folder / "report.html", report.html())
    return {"models": conventions(models), **facts}, written


def _run_parts(models: Sequence[Scorer], facts: Mapping[str, Any]) -> list[Part]:
    """What was run: models, command, versions and facts."""
    run = provenance()
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    lines = [
        f"{name.replace('_', ' ')}: {', '.join(map(str, fact)) if isinstance(fact, list) else fact}"
        for name, fact in facts.items()
    ]
    command = ("command: ", code(" ".join(run["command"])))
    bullets = Bullets((command, f"versions: {versions}", *lines))
    tables = [_models_table(models)] if models else []
    return [Heading("What was run"), *tables, bullets]


def _models_table(models: Sequence[Scorer]) -> Table:
    """Loading and scoring of each model; specifications only where a model has another name."""
    header = ["model", "specification", "rule", "context", "unit", "fingerprint"]
    rows = [
        [m.name, m.specification or m.name, c.rule, repr(c.context), c.unit, c.fingerprint]
        for m, c in ((model, model.convention) for model in models)
    ]
    if all(name == specification for name, specification, *_ in rows):
        header, rows = [header[0], *header[2:]], [[name, *others] for name, _, *others in rows]
    return Table(header, rows, texts=len(header))


def table_of(rows: Iterable[Mapping[str, Any]], header: Iterable[str] = ()) -> Columns:
    """Rows as columns; a cell that a row lacks is nan.

    Args:
        rows: cells by the name of their column.
        header: names of the columns that there are in any case, first.
    """
    listed = list(rows)
    names = dict.fromkeys((*header, *(name for row in listed for name in row)))
    return {name: [row.get(name, math.nan) for row in listed] for name in names}


def filled(value: Any) -> Any:
    """A cell: the value, but for nan nothing."""
    return "" if isinstance(value, float) and math.isnan(value) else value


def page_table(
    columns: Columns,
    names: Mapping[str, str] | None = None,
    *,
    most: int | None = None,
    **having: str,
) -> Table:
    """A table as pages and terminals show it.

    Whole numbers have commas, others three decimals; an accuracy that `NAME: low` and `NAME: high`
    stand beside has its interval in brackets, `0.480 (0.35-0.61)`.

    Args:
        columns: of the table.
        names: headings of the columns to show, by their names; by default all under these.
        most: number of rows, from the first on; by default all.
        having: texts that cells of further columns must be.
    """
    shown = names or {n: n for n in columns if not n.endswith((": low", ": high"))}
    n_rows = len(next(iter(columns.values())))
    rows = [r for r in range(n_rows) if all(columns[n][r] == text for n, text in having.items())]
    texts = 0
    while texts < len(shown) and all(isinstance(c, str) for c in columns[list(shown)[texts]]):
        texts += 1
    cells = [[_page_cell(columns, name, row) for name in shown] for row in rows[:most]]
    return Table(list(shown.values()), cells, texts)


def _page_cell(columns: Columns, name: str, row: int) -> str:
    value = filled(columns[name][row])
    if not isinstance(value, float):
        return value if isinstance(value, str) else f"{value:,}"
    limits = [columns[n][row] for n in (f"{name}: low", f"{name}: high") if n in columns]
    has_limits = limits and not math.isnan(limits[0])
    low_to_high = f" ({limits[0]:z.2f}-{limits[1]:z.2f})" if has_limits else ""
    return f"{value:.3f}{low_to_high}"


def data_hash(paths: Iterable[Path]) -> str:
    """The SHA-256 of files' names and contents, in the order of their names.

    Raises:
        InputError: a file cannot be read.
    """
    digest = hashlib.sha256()
    for path in sorted(paths, key=lambda path: path.name):
        with reading(path):
            content = path.read_bytes()
        # The null and the length keep a name from running into the content that follows it.
        digest.update(f"{path.name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
