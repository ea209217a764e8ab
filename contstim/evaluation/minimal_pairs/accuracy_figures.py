"""Figures of minimal pairs: heat maps, profiles, learning curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contstim.evaluation.minimal_pairs.profile import FEATURES
from contstim.reporting.canvas import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    SIZE,
    new_figure,
    plain_log,
    widest,
)
from contstim.reporting.names import short_names, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from contstim.arrays import FloatArray
    from contstim.evaluation.minimal_pairs.accuracies import Accuracies
    from contstim.evaluation.minimal_pairs.curves import LearningCurve
    from contstim.evaluation.minimal_pairs.profile import Bin

_COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", BLACK)  # Okabe & Ito (2008)
_LINES = ("-", "--", ":")
_DARK = 0.27  # distance from the middle of the scale, from where numbers are white
_ACROSS = 4  # panels of learning curves in a row


def phenomena_figure(accuracies: Accuracies, title: str) -> Figure:
    """Accuracy of every column in every phenomenon and overall, in per cent."""
    rows = accuracies.means()
    names = shortened([name.replace("_", " ") for name in rows])
    return _heat_map(names, short_names(accuracies.columns), np.stack(list(rows.values())), title)


def correlations_figure(accuracies: Accuracies) -> Figure:
    """Correlation of accuracies in paradigms between columns, in hundredths."""
    names, values = short_names(accuracies.columns), accuracies.correlations()
    title = "Correlation of accuracies in paradigms (hundredths)"
    return _heat_map(names, names, values, title, middle=0.0)


def _heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    values: FloatArray,
    title: str,
    *,
    middle: float = 0.5,
) -> Figure:
    """Cells with their values in hundredths, in colours that diverge from the middle up to 1."""
    beside, below = widest(rows), widest(columns)
    width = max(3.2, 0.8 + max(beside, below) + 0.42 * len(columns), 0.2 + widest([title]))
    figure = new_figure(width, 0.9 + below + 0.24 * len(rows))
    axes = figure.subplots()
    axes.imshow(values, cmap="PuOr", vmin=2 * middle - 1, vmax=1, aspect="auto")
    for row, column in np.argwhere(np.isfinite(values)):
        value = values[row, column]
        ink = "white" if abs(value - middle) > 2 * _DARK * (1 - middle) else "black"
        text = f"{100 * value:.0f}"
        axes.text(column, row, text, ha="center", va="center", color=ink, size=SIZE - 1)
    axes.set_xticks(range(len(columns)), columns, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    figure.suptitle(title, x=0.08 / width, ha="left", fontsize="medium")
    return figure


def profile_figure(bins: Sequence[Bin]) -> Figure:
    """A panel for each feature with a line for each model (Warstadt et al. 2020, Fig. 2)."""
    features = [name for name in FEATURES if any(point.feature == name for point in bins)]
    models = list(dict.fromkeys(point.model for point in bins))
    names = short_names(models)
    width = max(3.8, 1.9 * len(features), 1.2 + 2 * widest(names))
    figure = new_figure(width, 2.4 + 0.09 * len(models))
    panels = figure.subplots(1, len(features), sharey=True, squeeze=False)[0]
    for axes, feature in zip(panels, features, strict=True):
        for number, model in enumerate(models):
            line = [point for point in bins if (point.model, point.feature) == (model, feature)]
            axes.plot(
                [point.mean for point in line],
                [point.accuracy for point in line],
                # every colour once with a solid line, then all of them dashed, then dotted
                linestyle=_LINES[number // len(_COLOURS) % len(_LINES)],
                color=_COLOURS[number % len(_COLOURS)],
                marker="o",
                ms=2.5,
                lw=1,
                label=names[number],
            )
        axes.axhline(0.5, color=GREY, lw=0.6)
        axes.set_xlabel(FEATURES[feature].replace(" of", "\nof"))
    if "perplexity" in features:
        panels[features.index("perplexity")].set_xscale("log")
        plain_log(panels[features.index("perplexity")].xaxis)
    panels[0].set_ylabel("accuracy")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure


def curves_figure(curves: Sequence[LearningCurve]) -> Figure:
    """A panel for each phenomenon: accuracy against sentences of text, with the fitted line."""
    across = min(len(curves), _ACROSS)
    down = -(-len(curves) // across)
    figure = new_figure(0.3 + 1.75 * across, 0.4 + 1.45 * down)
    panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).flatten()
    for axes, curve in zip(panels, curves, strict=False):
        sizes, values = np.array(curve.sentences), np.array(curve.accuracies)
        # a least-squares line passes through the means of both coordinates
        doublings = np.log2(sizes)
        fitted = values.mean() + curve.slope * (doublings - doublings.mean())
        axes.plot(sizes, fitted, color=ORANGE, lw=0.8)
        axes.plot(sizes, values, "o", color=BLUE, ms=3)
        axes.axhline(0.5, color=GREY, lw=0.6)
        axes.set_xscale("log")
        plain_log(axes.xaxis)
        title = f"{curve.phenomenon.replace('_', ' ')}\n{curve.slope:+.3f} per doubling"
        axes.set_title(title, loc="left", fontsize="small")
    # numbers stand under the lowest panel of each column, also where the last row is not full
    for axes in panels[max(0, len(curves) - across) : len(curves)]:
        axes.tick_params(labelbottom=True)
    for axes in panels[len(curves) :]:
        axes.set_visible(False)
    figure.supxlabel("sentences of text", fontsize="medium")
    figure.supylabel("accuracy", fontsize="medium")
    return figure
