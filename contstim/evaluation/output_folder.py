"""The folder that every evaluation writes: tables, figures, and a page that says what was run."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import InputError
from contstim.files import write_text
from contstim.models.base import conventions
from contstim.models.origins import model_origins
from contstim.records import provenance, write_record
from contstim.reporting.canvas import save
from contstim.reporting.report import Bullets, Heading, Picture, Report, Table, code
from contstim.tables import write_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.figure import Figure

    from contstim.models.base import Scorer
    from contstim.reporting.report import Part
    from contstim.tables import Column

    Columns = Mapping[str, Column]


def write_evaluation(
    folder: Path | str,
    *,
    title: str,
    parts: Iterable[Part],
    tables: Mapping[str, Columns],
    figures: Mapping[str, Figure],
    models: Sequence[Scorer] = (),
    data: Iterable[Path] = (),
    **facts: Any,
) -> None:
    """Write NAME.csv for each table, NAME.png and .pdf for each figure, and the page.

    The page is report.html, which stands alone, and report.md with its record. It ends with the
    figures and with what was run: every model with rule, context and fingerprint, the versions, the
    hash of the data and the further facts.

    Args:
        folder: made where it is missing; files of the same names are replaced.
        title: the page's heading.
        parts: what the page says of the results.
        tables: columns by the table's name; a table without rows is written with its header.
        figures: by name; made within `reporting.canvas.styled`.
        models: what was scored; none where scores came from a table.
        data: the files that were read.
        facts: seeds, samples, options.

    Raises:
        InputError: a file cannot be written or read.
    """
    folder, data = Path(folder), list(data)
    for name, columns in tables.items():
        write_table(folder / f"{name}.csv", columns)
    pictures = [
        Picture(name, save(figure, folder / name), alternative=name)
        for name, figure in figures.items()
    ]
    facts = {"data_sha256": data_hash(data), **facts}
    run = provenance()
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    fact_texts = {
        name: ", ".join(map(str, fact)) if isinstance(fact, list) else str(fact)
        for name, fact in facts.items()
    }
    report = Report(
        title,
        (
            *parts,
            *([Heading("Figures")] if pictures else []),
            *pictures,
            Heading("What was run"),
            *([_models_table(models)] if models else []),
            Bullets(
                (
                    ("command: ", code(" ".join(run["command"]))),
                    f"versions: {versions}",
                    *(f"{name.replace('_', ' ')}: {text}" for name, text in fact_texts.items()),
                )
            ),
        ),
    )
    write_text(folder / "report.md", report.markdown())
    write_text(folder / "report.html", report.html())
    endings = (*(f"{name}.csv" for name in tables), "report.html")
    drawn = (f"{name}{ending}" for name in figures for ending in (".png", ".pdf"))
    written = [folder / name for name in (*endings, *drawn)]
    origins = model_origins(model.specification for model in models)
    told = {"models": conventions(models), "commits": origins.commits}
    write_record(folder / "report.md", [*data, *origins.files], written, **told, **facts)


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


def finite_numbers(values: Iterable[float]) -> list[float | str]:
    """Numbers with empty cells for those that are not finite."""
    return [value if np.isfinite(value) else "" for value in values]


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
        # The null and the length keep a name from running into the content that follows it.
        digest.update(f"{path.name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
