"""The deltas' correlations as a heat map, and models' scores against people's judgements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from contstim.evaluation.acceptability.results import delta_correlations, fits
from contstim.reporting.canvas import BLUE, ORANGE, new_figure, widest
from contstim.reporting.heat_map import heat_map
from contstim.reporting.names import short_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from contstim.evaluation.acceptability.evaluation import AcceptabilityEvaluation

_ACROSS = 3


def acceptability_figures(evaluation: AcceptabilityEvaluation) -> dict[str, Figure]:
    """Both figures, by the names of their files."""
    return {
        "correlations": correlation_figure(evaluation),
        "scatter": scatter_figure(evaluation),
    }


def correlation_figure(evaluation: AcceptabilityEvaluation) -> Figure:
    """Pearson's r between the deltas of people and models, a cell each."""
    names, matrix = delta_correlations(evaluation)
    short = short_names(names)
    title = "Correlation of differences within pairs"
    return heat_map(short, short, matrix, title=title, middle=0.0, numbers="decimals")


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
            # the line spans the scores; sentences without a score are nan
            ends = np.array([np.nanmin(scores), np.nanmax(scores)])
            axes.plot(ends, line.intercept + line.slope * ends, color=ORANGE, lw=1.2)
        axes.set_title(f"{names[column]}\nr = {line.pearson:.2f}", loc="left", fontsize="small")
        axes.set_xlabel("z-score")
    for row in panels:
        row[0].set_ylabel("judgement")
    return figure
