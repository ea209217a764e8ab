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
    new_figure,
    plain_log,
    widest,
)
from contstim.reporting.heat_map import heat_map
from contstim.reporting.names import short_names, shortened
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from contstim.evaluation.minimal_pairs.accuracies import Accuracies
    from contstim.evaluation.minimal_pairs.curves import LearningCurve
    from contstim.evaluation.minimal_pairs.evaluation import MinimalPairEvaluation
    from contstim.evaluation.minimal_pairs.profile import Bin

_COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", BLACK)  # Okabe & Ito (2008)
_LINES = ("-", "--", ":")
_ACROSS = 4  # panels of learning curves in a row


def accuracy_figures(evaluation: MinimalPairEvaluation) -> dict[str, Figure]:
    """Every figure that the evaluation has data for, by the names of their files."""
    full = evaluation.full
    figures = {
        f"phenomena-{method}": phenomena_figure(
            accuracies, f"Accuracy (%), {method}, {counted(accuracies.pairs_of(), 'pair')}"
        )
        for method, accuracies in evaluation.accuracies.items()
    }
    # over two paradigms every correlation is 1 or -1
    if full and len(full.columns) > 1 and len(full.paradigms) > 2:
        figures["correlations"] = correlations_figure(full)
    if evaluation.profile:
        figures["profile"] = profile_figure(evaluation.profile)
    for method, curves in evaluation.curves.items():
        figures[f"learning-curves-{method}"] = curves_figure(curves)
    return figures


def phenomena_figure(accuracies: Accuracies, title: str) -> Figure:
    """Accuracy of every column in every phenomenon and overall, in per cent."""
    rows = accuracies.means()
    names = shortened([name.replace("_", " ") for name in rows])
    columns, values = short_names(accuracies.columns), np.stack(list(rows.values()))
    return heat_map(names, columns, values, title=title, middle=0.5)


def correlations_figure(accuracies: Accuracies) -> Figure:
    """Correlation of accuracies in paradigms between columns, in hundredths."""
    names, values = short_names(accuracies.columns), accuracies.correlations()
    title = "Correlation of accuracies in paradigms (hundredths)"
    return heat_map(names, names, values, title=title, middle=0.0, numbers="hundredths")


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
