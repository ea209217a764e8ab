"""Consistency of each model: bars, a dot for each group, the noise ceiling, and significance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis.effects import units_of
from contstim.experiments.analysis.scopes import DESCRIPTIONS
from contstim.reporting.canvas import BLACK, BLUE, GREY, SIZE, new_figure, widest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from contstim.experiments.analysis.effects import ModelResult, Result, Units

_BARS = 3.7  # inches
_METRO = 0.5  # inches for the word at the first line
_LINE = 0.17  # inches between the lines of significance
_DOT = 3.5


def consistency_figure(
    result: Result, units: Units | None, names: Mapping[str, str] | None = None
) -> Figure:
    """Horizontal bars, best model on top, with 95 % intervals and the noise ceiling in grey.

    The lines on the right show significance, as in a metro map: each joins a model (filled) to
    those that are significantly worse (open); the first joins the ceiling to the models below it.

    Args:
        result: of one scope and measure.
        units: whose values the dots are.
        names: what to call models, where other than by their names.
    """
    models = sorted(result.models, key=lambda model: model.value)
    labels = [(names or {}).get(model.model, model.model) for model in models]
    title, beside = DESCRIPTIONS[result.scope], widest(labels)
    cannot = result.detectability.cannot(str(units))
    label = result.measure.label + (f"\n(differences {cannot})" if cannot else "")
    widths = [max(_BARS, widest([title, *label.split("\n")])), _METRO + _LINE * len(models)]
    figure = new_figure(0.3 + beside + sum(widths), 1.1 + 0.24 * len(models))
    bars, metro = figure.subplots(1, 2, sharey=True, gridspec_kw={"width_ratios": widths})
    # Each model has a row, from the worst at 0. The ceilings are its own, since its trials are;
    # they lie behind the bars, and dots above all, spread over the bar's height.
    for row, model in enumerate(models):
        if np.isfinite(model.lower):
            ceiling = (model.lower, model.upper)
            bars.fill_betweenx((row - 0.5, row + 0.5), *ceiling, color=GREY, lw=0, alpha=0.7)
    values = [model.value for model in models]
    bars.barh(range(len(models)), values, height=0.62, color=BLUE, alpha=0.75, lw=0)
    bars.axvline(result.measure.chance, color=BLACK, lw=0.6, ls=(0, (4, 3)))
    by_unit = units_of(result.evaluation, result.evaluation.values, units)  # (n_units, n_models)
    for row, model in enumerate(models):
        limits = (model.interval.low, model.interval.high)
        if np.isfinite(limits[0]):
            bars.plot(limits, (row, row), color=BLACK, lw=1.1, solid_capstyle="butt")
        dots = by_unit[:, result.evaluation.models.index(model.model)]
        heights = row + np.linspace(-0.2, 0.2, len(dots)) if len(dots) > 1 else [row]
        bars.plot(dots, heights, "o", ms=2, mfc="white", mec=BLACK, mew=0.5)
    _draw_significance(metro, models, result)
    bars.set_yticks(range(len(models)), labels)
    bars.set_ylim(-0.6, len(models) - 0.4)
    bars.set_xlabel(label)
    bars.set_title(title, loc="left", fontsize="medium")
    return figure


def _draw_significance(axes: Axes, models: list[ModelResult], result: Result) -> None:
    """The metro map: a line a model that beats any, from left to right, the ceiling's first."""
    names = [model.model for model in models]
    below = result.below_ceiling()
    axes.set_axis_off()
    lines = [("ceiling", len(models) - 0.5, below)]
    lines += [(name, row, result.beaten_by(name)) for row, name in reversed([*enumerate(names)])]
    # A line reaches from its own model (or the top) down to the last that is worse; a line without
    # any such model takes no place.
    for column, (name, top, worse) in enumerate([line for line in lines if line[2]]):
        rows = sorted(names.index(model) for model in worse)
        span = (min(rows[0], top), max(rows[-1], top))
        axes.plot((column, column), span, color=BLACK, lw=0.8, zorder=1)
        axes.plot([column] * len(rows), rows, "o", ms=_DOT, mfc="white", mec=BLACK, mew=0.8)
        if name == "ceiling":
            axes.plot(column, top, "s", ms=_DOT, color=GREY, mec=BLACK, mew=0.6, clip_on=False)
            axes.text(column, top + 0.25, name, rotation=45, va="bottom", size=SIZE - 1)
        else:
            axes.plot(column, top, "o", ms=_DOT, color=BLACK)
    axes.set_xlim(-0.7, len(models) + 0.3)
