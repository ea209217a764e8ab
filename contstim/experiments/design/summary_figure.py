"""A design's summary as a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.design.summary import MEASURES
from contstim.files import writing
from contstim.reporting.canvas import lay_out, new_figure, styled
from contstim.wording import counted

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from matplotlib.figure import Figure

    from contstim.experiments.design.summary import DesignSummary

_SIDES = ("sentence_1", "sentence_2")


def draw_summary(summary: DesignSummary, path: Path | str) -> None:
    """Write `summary_figure`; the kind of image follows from the file's name (.png, .pdf, .svg).

    Raises:
        InputError: the file cannot be written.
    """
    with styled(), writing(path) as partial:
        kind = str(path).rpartition(".")[2]
        figure = summary_figure(summary)
        lay_out(figure)
        figure.savefig(partial, dpi=200, format=kind)


def summary_figure(summary: DesignSummary) -> Figure:
    """Trials by group and condition, sentences by source, and the balance between sides."""
    figure = new_figure(9, 6)
    upper, lower = figure.subfigures(2, 1, squeeze=False).ravel()
    left, right = upper.subplots(1, 2)
    _draw_counts(left, summary)
    _draw_sources(right, summary)
    for axis, (row, measure) in zip(lower.subplots(1, 3), enumerate(MEASURES), strict=True):
        _draw_balance(axis, summary, row, measure)
    return figure


def _draw_counts(axis: Any, summary: DesignSummary) -> None:
    from matplotlib.ticker import MaxNLocator

    groups = np.arange(1, summary.groups + 1)
    bottom = np.zeros(summary.groups)
    for condition, counts in summary.counts.items():
        axis.bar(groups, counts, bottom=bottom, label=condition)
        bottom += counts
    axis.set(xlabel="group", ylabel="trials")
    axis.xaxis.set_major_locator(MaxNLocator(10, integer=True, min_n_ticks=1))
    axis.set_title(f"{counted(max(1, round(max(summary.minutes))), 'minute')} for a participant")
    axis.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))


def _draw_sources(axis: Any, summary: DesignSummary) -> None:
    names = [f"{condition}: {kind}" for condition, kind in summary.sources]
    bars = axis.barh(names, list(summary.sources.values()))
    axis.bar_label(bars, padding=2, fontsize="small")
    axis.margins(x=0.12)
    axis.invert_yaxis()
    axis.set(xlabel="distinct sentences", title="sentences by source")
    axis.tick_params(axis="y", labelsize="small")


def _draw_balance(axis: Any, summary: DesignSummary, row: int, measure: str) -> None:
    places = np.arange(len(summary.balance))
    for side, name in enumerate(_SIDES):
        values = [table[row, side] for table in summary.balance.values()]
        axis.plot(values, places + 0.15 * (side - 0.5), "o", label=name)
    axis.set_yticks(places, list(summary.balance), fontsize="small")
    axis.invert_yaxis()
    axis.margins(x=0.2, y=0.2)
    axis.set_title(measure)
    if row == 0:
        axis.legend(fontsize="small", loc="upper right")
