"""The deltas' correlations as a heat map, and models' scores against people's judgements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from contstim.evaluation.acceptability.results import delta_correlations, fits
from contstim.reporting.canvas import BLUE, ORANGE, SIZE, new_figure, widest
from contstim.reporting.matrices import colour_scale
from contstim.reporting.names import short_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from contstim.evaluation.acceptability.evaluation import AcceptabilityEvaluation

_ACROSS = 3
_STRONG = 0.6  # from where numbers are white


def correlation_figure(evaluation: AcceptabilityEvaluation) -> Figure:
    """Pearson's r between the deltas of people and models, a cell each."""
    names, matrix = delta_correlations(evaluation)
    names = tuple(short_names(names))
    n, beside = len(names), widest(names)
    title = "Correlation of differences within pairs"
    width = max(1.35 + beside + 0.42 * n, 0.2 + widest([title]))
    figure = new_figure(width, 1.0 + 0.75 * beside + 0.38 * n)
    axes = figure.subplots()
    image = axes.imshow(matrix, cmap="PuOr", vmin=-1, vmax=1)
    for row, column in np.argwhere(np.isfinite(matrix)):
        value = matrix[row, column]
        ink = "white" if abs(value) > _STRONG else "black"
        label = f"{value:.2f}".replace("-", "\N{MINUS SIGN}")
        axes.text(column, row, label, ha="center", va="center", color=ink, size=SIZE - 1)
    axes.set_xticks(range(n), names, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(n), names)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    figure.suptitle(title, x=0.08 / width, ha="left", fontsize="medium")
    colour_scale(image, axes, length=0.27 * n, ticks=[-1, 0, 1], labels="{x:.0f}")
    return figure


def scatter_figure(evaluation: AcceptabilityEvaluation) -> Figure:
    """A panel a model: a dot a sentence, and the line that fits judgements best."""
    across = min(_ACROSS, len(evaluation.models))
    down = math.ceil(len(evaluation.models) / across)
    names = short_names(evaluation.models)
    side = max(2.2, 0.5 + widest(names))
    figure = new_figure(0.4 + side * across, 0.4 + 2.1 * down)
    panels = figure.subplots(down, across, squeeze=False, sharey=True)
    for axes in panels.flat[len(evaluation.models) :]:
        axes.set_axis_off()
    judgements = evaluation.sentence_judgements
    dot = max(1.5, 40 / math.sqrt(len(judgements)))  # smaller, the more there are
    for column, (axes, line) in enumerate(zip(panels.flat, fits(evaluation), strict=False)):
        scores = evaluation.sentence_scores[:, column]
        axes.plot(scores, judgements, ".", ms=dot, color=BLUE, alpha=0.35, mew=0, rasterized=True)
        if np.isfinite(line.slope):
            ends = np.array([np.nanmin(scores), np.nanmax(scores)])
            axes.plot(ends, line.intercept + line.slope * ends, color=ORANGE, lw=1.2)
        axes.set_title(f"{names[column]}\nr = {line.pearson:.2f}", loc="left", fontsize="small")
        axes.set_xlabel("z-score")
    for row in panels:
        row[0].set_ylabel("judgement")
    return figure
