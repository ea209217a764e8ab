"""The folder that an analysis writes: tables, figures and a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from contstim.experiments.analysis import tables
from contstim.experiments.analysis.methods import methods_text
from contstim.experiments.analysis.outputs.drawings import drawings, require_rivals
from contstim.experiments.analysis.outputs.page import report
from contstim.files import write_text
from contstim.reporting.canvas import save, styled
from contstim.tables import write_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contstim.experiments.analysis.run import Analysis
    from contstim.models.training_text import Contamination


def write_analysis(
    analysis: Analysis,
    folder: Path | str,
    *,
    title: str,
    pair: tuple[str, str] | None = None,
    seen: Mapping[str, Contamination | None] | None = None,
) -> list[Path]:
    """Write tables (CSV), figures (PDF and PNG), methods.md and report.html, which stands alone.

    Where participants were artificial, the page and every figure say so first, and every table has
    a column `simulated_participants`, such as `3 of 10`.

    Args:
        analysis: what `analyze` found.
        folder: made where it is missing; files of the same names are replaced.
        title: the page's heading.
        pair: two models whose sentences to draw; by default the most consistent rivals.
        seen: which of the sentences stand in the training text of each model.

    Returns:
        The tables, figures and text that stand beside report.html.

    Raises:
        InputError: a file cannot be written, or no trial sets the pair against each other.
    """
    folder = Path(folder)
    if pair:
        require_rivals([t for group in analysis.ratings.groups for t in group.trials], pair)
    seen = seen or {}
    files: list[Path] = []
    results = tables.result_tables(analysis) | {"training_texts": tables.training_texts_table(seen)}
    for name, columns in results.items():
        if columns and analysis.origin.simulated:
            # Said in every row: rows are copied, sorted and joined, and a file's name is lost.
            rows = len(next(iter(columns.values())))
            columns |= {"simulated_participants": [analysis.origin.share] * rows}
        if columns:
            files.append(folder / "tables" / f"{name}.csv")
            write_table(files[-1], columns)
    images = {}  # PNG by name: the page holds the very images that are written
    with styled():
        for name, figure in drawings(analysis, pair):
            path, warning = folder / "figures" / name, analysis.origin.warning
            images[name] = save(figure, path, warning=warning)
            files += [path.with_name(f"{name}{ending}") for ending in (".pdf", ".png")]
    told = ["# Statistics", analysis.origin.warning, *methods_text(analysis)]
    files.append(folder / "methods.md")
    write_text(files[-1], "\n\n".join(filter(None, told)) + "\n")
    write_text(folder / "report.html", report(analysis, images, title=title, seen=seen).html())
    return files
