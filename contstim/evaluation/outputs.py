"""The folder that every evaluation writes: tables, figures, and a report of what was run."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.files import write_text
from contstim.models.base import conventions
from contstim.records import provenance, write_record
from contstim.reporting.canvas import save
from contstim.reporting.markdown import markdown_code, markdown_table
from contstim.tables import write_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.figure import Figure

    from contstim.models.base import Scorer
    from contstim.tables import Column

    Columns = Mapping[str, Column]


def write_evaluation(
    folder: Path | str,
    *,
    title: str,
    summary: str,
    tables: Mapping[str, Columns],
    figures: Mapping[str, Figure],
    models: Sequence[Scorer] = (),
    data: Iterable[Path] = (),
    **facts: Any,
) -> None:
    """Write NAME.csv for each table, NAME.png and .pdf for each figure, report.md and its record.

    The report ends with what was run: every model with rule, context and fingerprint, the versions,
    the hash of the data and the further facts.

    Args:
        folder: made where it is missing; files of the same names are replaced.
        title: the report's heading.
        summary: its body, as Markdown.
        tables: columns by the table's name; a table without rows is written with its header.
        figures: by name; made within `figures.canvas.styled`.
        models: what was scored; none where scores came from a table.
        data: the files that were read.
        facts: seeds, samples, options.

    Raises:
        InputError: a file cannot be written or read.
    """
    folder = Path(folder)
    for name, columns in tables.items():
        write_table(folder / f"{name}.csv", columns)
    for name, figure in figures.items():
        save(figure, folder / name)
    facts = {"data_sha256": data_hash(data), **facts}
    parts = [f"# {title}", summary.strip(), *(f"![{name}]({name}.png)" for name in figures)]
    parts += ["## What was run", _models(models), _facts(facts)]
    write_text(folder / "report.md", "\n\n".join(filter(None, parts)) + "\n")
    write_record(folder / "report.md", models=conventions(models), **facts)


def data_hash(paths: Iterable[Path]) -> str:
    """The SHA-256 of files' names and contents, in the order of their names.

    Raises:
        InputError: a file cannot be read.
    """
    digest = hashlib.sha256()
    for path in sorted(paths, key=lambda path: path.name):
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
        digest.update(f"{path.name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _models(models: Sequence[Scorer]) -> str:
    header = ("model", "specification", "rule", "context", "unit", "fingerprint")
    ways = [(m.name, m.specification or m.name, m.convention) for m in models]
    rows = [(*names, c.rule, repr(c.context), c.unit, c.fingerprint) for *names, c in ways]
    if all(name == specification for name, specification, *_ in rows):
        shorter = [(name, *others) for name, _, *others in rows]
        return markdown_table((header[0], *header[2:]), shorter) if rows else ""
    return markdown_table(header, rows)


def _facts(facts: Mapping[str, Any]) -> str:
    run = provenance()
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    lines = [f"- command: {markdown_code(' '.join(run['command']))}", f"- versions: {versions}"]
    return "\n".join(lines + [f"- {name.replace('_', ' ')}: {v}" for name, v in facts.items()])
