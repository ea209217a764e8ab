"""The output folder of every evaluation: tables, figures, and a page that documents the run."""

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
    Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Findings:
    """Results of an evaluation, ready to be printed and written.

    Attributes:
        summary: table for the terminal.
        parts: content of the page.
        tables: name of a table → its columns. A table without columns is not written.
        figures: function that draws the figures and returns name → figure.
        facts: name → value, such as a seed or a count, for the page and the record of the run.
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
    """Write `NAME.csv` for each table, `NAME.png` and `NAME.pdf` for each figure, and the page.

    The page is written twice: as `report.md`, and as `report.html` with embedded figures. The page
    ends with the figures and the settings of the run.

    Args:
        findings: results to write.
        folder: output folder; existing files are replaced.
        models: scored models; empty if the scores came from a table.
        data: input files; the page and the record contain one hash of all input files.
        facts: facts in addition to `findings.facts`.

    Returns:
        Facts for the record of the run, and the written files except the page.

    Raises:
        InputError: if a file cannot be written or read.
    """
    folder = Path(folder)
    written: list[Path] = []
    for name, columns in findings.tables.items():
        if columns:
            written.append(folder / f"{name}.csv")
            cells = {name: [*map(blank_if_nan, column)] for name, column in columns.items()}
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
    run = provenance()
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    lines = [
        f"{name.replace('_', ' ')}: {', '.join(map(str, fact)) if isinstance(fact, list) else fact}"
        for name, fact in facts.items()
    ]
    command = ("command: ", code(" ".join(run["command"])))
    bullets = Bullets((command, f"versions: {versions}", *lines))
    tables = [_models_table(models)] if models else []
    return [Heading("Settings"), *tables, bullets]


def _models_table(models: Sequence[Scorer]) -> Table:
    """Tabulate how each model scores a sentence.

    If every model's specification equals its name, the column of specifications is omitted.
    """
    header = ["model", "specification", "rule", "context", "unit", "fingerprint"]
    rows = [
        [m.name, m.specification or m.name, c.rule, repr(c.context), c.unit, c.fingerprint]
        for m, c in ((model, model.convention) for model in models)
    ]
    if all(name == specification for name, specification, *_ in rows):
        header, rows = [header[0], *header[2:]], [[name, *cells] for name, _, *cells in rows]
    return Table(header, rows, texts=len(header))


def table_of(rows: Iterable[Mapping[str, Any]], header: Iterable[str] = ()) -> Columns:
    """Convert rows to columns; missing cells are nan.

    The columns of `header` come first, and exist even without rows.
    """
    row_list = list(rows)
    names = dict.fromkeys((*header, *(name for row in row_list for name in row)))
    return {name: [row.get(name, math.nan) for row in row_list] for name in names}


def blank_if_nan(value: Any) -> Any:
    """Return the value of a cell, or an empty text for nan."""
    return "" if isinstance(value, float) and math.isnan(value) else value


def page_table(
    columns: Columns,
    names: Mapping[str, str] | None = None,
    *,
    max_rows: int | None = None,
    **having: str,
) -> Table:
    """Format a table for pages and terminals.

    Integers have thousands separators, other numbers have three decimals. If there are columns
    `NAME: low` and `NAME: high`, their values are shown as an interval in the column `NAME`, such
    as `0.480 (0.35-0.61)`.

    Args:
        columns: columns of the table.
        names: column to show → heading; by default, every column has its name as heading.
        max_rows: maximum number of rows.
        having: columns and their required values, such as `method="one-prefix"`. Only rows with
            these values are shown.
    """
    headings = names or {n: n for n in columns if not n.endswith((": low", ": high"))}
    n_rows = len(next(iter(columns.values())))
    rows = [r for r in range(n_rows) if all(columns[n][r] == text for n, text in having.items())]
    texts = 0
    while texts < len(headings) and all(isinstance(c, str) for c in columns[list(headings)[texts]]):
        texts += 1
    cells = [[_page_cell(columns, name, row) for name in headings] for row in rows[:max_rows]]
    return Table(list(headings.values()), cells, texts)


def _page_cell(columns: Columns, name: str, row: int) -> str:
    value = blank_if_nan(columns[name][row])
    if not isinstance(value, float):
        return value if isinstance(value, str) else f"{value:,}"
    limits = [columns[n][row] for n in (f"{name}: low", f"{name}: high") if n in columns]
    has_limits = limits and not math.isnan(limits[0])
    low_to_high = f" ({limits[0]:z.2f}-{limits[1]:z.2f})" if has_limits else ""
    return f"{value:.3f}{low_to_high}"


def data_hash(paths: Iterable[Path]) -> str:
    """Compute the SHA-256 of the names and contents of files, sorted by name.

    Raises:
        InputError: if a file cannot be read.
    """
    digest = hashlib.sha256()
    for path in sorted(paths, key=lambda path: path.name):
        with reading(path):
            content = path.read_bytes()
        # The null byte and the length separate names and contents unambiguously
        digest.update(f"{path.name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
