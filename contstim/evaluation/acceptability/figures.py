"""The deltas' correlations as a heat map, and models' scores against people's judgements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from contstim.evaluation.acceptability.comparison import delta_correlations, fits
from contstim.reporting.canvas import BLUE, ORANGE, new_figure, widest
from contstim.reporting.heat_map import heat_map
from contstim.reporting.names import short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from contstim.evaluation.acceptability.comparison import Fit
    from contstim.evaluation.acceptability.evaluation import Evaluation

_ACROSS = 3


def correlation_figure(found: Evaluation) -> Figure:
    """Pearson's r between the deltas of people and models, a cell each."""
    names, matrix = delta_correlations(found)
    short = short_names(names)
    title = "Correlation of differences within pairs"
    return heat_map(short, short, matrix, title=title, middle=0.0, numbers="decimals")


def scatter_figure(found: Evaluation) -> Figure:
    """A panel a model: a dot a sentence, and the line that fits judgements best."""
    across = min(_ACROSS, len(found.models))
    down = math.ceil(len(found.models) / across)
    names = short_names(found.models)
    side = max(2.2, 0.5 + widest(names))
    figure = new_figure(0.4 + side * across, 0.4 + 2.1 * down)
    panels = figure.subplots(down, across, squeeze=False, sharey=True)
    for axes in panels.flat[len(found.models) :]:
        axes.set_axis_off()
    for column, (axes, line) in enumerate(zip(panels.flat, fits(found), strict=False)):
        _draw(axes, found, column, line, names[column])
    for row in panels:
        row[0].set_ylabel("judgement")
    return figure


def _draw(axes: Axes, found: Evaluation, column: int, line: Fit, name: str) -> None:
    scores, judgements = found.sentence_scores[:, column], found.sentence_judgements
    size = max(1.5, 40 / math.sqrt(len(scores)))
    axes.plot(scores, judgements, ".", ms=size, color=BLUE, alpha=0.35, mew=0, rasterized=True)
    if np.isfinite(line.slope):
        ends = np.array([np.nanmin(scores), np.nanmax(scores)])
        axes.plot(ends, line.intercept + line.slope * ends, color=ORANGE, lw=1.2)
    axes.set_title(f"{name}\nr = {line.pearson:.2f}", loc="left", fontsize="small")
    axes.set_xlabel("z-score")
