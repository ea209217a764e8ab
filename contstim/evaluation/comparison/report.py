"""The folder of a comparison: tables, figures, and a page."""

from __future__ import annotations

from dataclasses import fields
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.evaluation.comparison.measures import (
    Disagreement,
    Likeness,
    disagreements,
    likenesses,
)
from contstim.evaluation.outputs import write_evaluation
from contstim.reporting.canvas import BLUE, GREY, new_figure, styled, widest
from contstim.reporting.markdown import markdown_code, markdown_table
from contstim.reporting.matrices import matrix_figure
from contstim.reporting.names import short_names
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from contstim.models.base import Scorer
    from contstim.scores import ScoreTable

_PANELS, _IN_A_ROW = 12, 4
_SHOWN = 3


def write_comparison(
    table: ScoreTable,
    folder: Path | str,
    *,
    top: int,
    left_out: Mapping[str, str],
    commands: Sequence[str],
    models: Sequence[Scorer] = (),
    data: Iterable[Path] = (),
    **facts: Any,
) -> None:
    """Write comparison, disagreements, scores and left_out (.csv), two figures, and report.md.

    Args:
        table: two models or more.
        folder: made where it is missing.
        top: how many sentences to list for each ordered pair of models.
        left_out: sentences that are not compared, with the reason.
        commands: what sets the models against each other.
        models: where scores came from models.
        data: the files that were read.
        facts: for the record.

    Raises:
        ScoreError: there are fewer than two sentences.
        InputError: a file cannot be written.
    """
    pairs, most = likenesses(table), disagreements(table, top)
    tables: dict[str, dict[str, Any]] = {
        "comparison": _columns(Likeness, pairs),
        "disagreements": _columns(Disagreement, most),
        "scores": {"sentence": list(map(str, table.sentences or ()))}
        | dict(zip(table.models, table.log_probs.T, strict=True)),
        "left_out": {"sentence": list(left_out), "reason": list(left_out.values())},
    }
    with styled():
        figures = {"agreement": agreement_figure(table), "ranks": ranks_figure(table)}
        write_evaluation(
            folder,
            title="How alike the models order sentences",
            summary=_summary(table, pairs, most, left_out, commands),
            tables=tables,
            figures=figures,
            models=models,
            data=data,
            **facts,
        )


def agreement_figure(table: ScoreTable) -> Figure:
    """The share of pairs of sentences that two models order alike; none for one with itself."""
    shares = table.agreement().copy()
    np.fill_diagonal(shares, np.nan)
    title = "Pairs of sentences ordered alike"
    return matrix_figure(short_names(table.models), shares, title=title, diverging=True)


def ranks_figure(table: ScoreTable) -> Figure:
    """A panel for each pair of models (the first twelve): every sentence at its two ranks."""
    pairs = list(combinations(range(len(table.models)), 2))[:_PANELS]
    rows = -(-len(pairs) // _IN_A_ROW)
    columns = min(len(pairs), _IN_A_ROW)
    ranks, names = table.ranks(), short_names(table.models)
    side = max(2.0, 0.5 + widest(names))
    figure = new_figure(0.3 + side * columns, 0.4 + side * rows)
    panels = figure.subplots(rows, columns, squeeze=False).flat
    for axes, (i, j) in zip(panels, pairs, strict=False):
        axes.plot((0, 1), (0, 1), color=GREY, lw=0.8)
        axes.plot(ranks[:, i], ranks[:, j], "o", ms=2, color=BLUE, alpha=0.4, mew=0)
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=(0, 1), yticks=(0, 1))
        axes.set_xlabel(f"rank under\n{names[i]}", fontsize="small")
        axes.set_ylabel(f"rank under\n{names[j]}", fontsize="small")
    for axes in list(figure.axes)[len(pairs) :]:
        axes.set_axis_off()
    return figure


def _summary(
    table: ScoreTable,
    pairs: Sequence[Likeness],
    most: Sequence[Disagreement],
    left_out: Mapping[str, str],
    commands: Sequence[str],
) -> str:
    header = ("models", "spearman", "kendall", "pearson", "agreement")
    rows = [
        (f"{p.model_1}, {p.model_2}", p.spearman, p.kendall, p.pearson, p.agreement) for p in pairs
    ]
    parts = [
        f"{counted(len(table.log_probs), 'sentence')}. *agreement*: the share of all pairs of "
        "sentences that both order alike (ties count one half).",
        markdown_table(header, rows),
        "## Where they part",
        *(_parting(one, other, most) for one, other in _ordered(table.models)),
    ]
    if left_out:
        parts.append(f"Left out: {counted(len(left_out), 'sentence')} (left_out.csv).")
    if commands:
        text = "\n".join(commands)
        parts += ["## Set them against each other", f"```sh\n{text}\n```"]
    return "\n\n".join(filter(None, parts))


def _ordered(models: Sequence[str]) -> list[tuple[str, str]]:
    return [order for pair in combinations(models, 2) for order in (pair, pair[::-1])]


def _parting(one: str, other: str, most: Sequence[Disagreement]) -> str:
    own = [d for d in most if (d.model_1, d.model_2) == (one, other)][:_SHOWN]
    lines = [f"- {d.sentence} ({d.rank_1:.2f} against {d.rank_2:.2f})" for d in own]
    opening = f"{markdown_code(one)} ranks lower than {markdown_code(other)}:"
    return "\n".join([opening, "", *lines]) if lines else ""


def _columns(kind: type, rows: Sequence[Any]) -> dict[str, list[Any]]:
    return {field.name: [getattr(row, field.name) for row in rows] for field in fields(kind)}
