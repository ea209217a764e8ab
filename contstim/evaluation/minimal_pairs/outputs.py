"""An evaluation on minimal pairs as tables, figures and a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contstim.evaluation.minimal_pairs.figures import (
    correlations_figure,
    curves_figure,
    phenomena_figure,
    profile_figure,
)
from contstim.evaluation.minimal_pairs.pairs import Method
from contstim.evaluation.minimal_pairs.summary import summary
from contstim.evaluation.minimal_pairs.tables import tables_of
from contstim.evaluation.outputs import write_evaluation
from contstim.reporting.canvas import styled
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from contstim.evaluation.minimal_pairs.evaluation import Evaluation
    from contstim.models.base import Scorer


def write_minimal_pairs(
    evaluation: Evaluation,
    folder: Path | str,
    *,
    models: Sequence[Scorer] = (),
    data: Iterable[Path] = (),
    **facts: Any,
) -> None:
    """Write `report.md`, tables (CSV) and figures (PDF, PNG) into a folder.

    Tables: paradigms, phenomena, ties, pairs (every pair under every model), left_out, refusals,
    contrasts, profile, correlations, people, learning_curves, slopes; some have rows
    for some data only.

    Raises:
        InputError: a file cannot be written.
    """
    tables = tables_of(evaluation)
    with styled():
        write_evaluation(
            folder,
            title="Minimal pairs",
            summary=summary(evaluation),
            tables={name: table for name, table in tables.items() if table},
            figures=_figures(evaluation),
            models=models,
            data=data,
            ties=evaluation.ties,
            **facts,
        )


def _figures(evaluation: Evaluation) -> dict[str, Figure]:
    figures = {
        f"phenomena-{method}": phenomena_figure(
            found, f"Accuracy (%), {method}, {counted(found.pairs_of(), 'pair')}"
        )
        for method, found in evaluation.found.items()
    }
    full = evaluation.found.get(Method.FULL_SENTENCE)
    if full and len(full.columns) > 1 and len(full.paradigms) > 2:
        figures["correlations"] = correlations_figure(full)
    if evaluation.bins:
        figures["profile"] = profile_figure(evaluation.bins)
    for method, made in evaluation.curves.items():
        figures[f"learning-curves-{method}"] = curves_figure(made)
    return figures
