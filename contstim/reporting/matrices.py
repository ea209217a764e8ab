"""A number for each pair of models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contstim.reporting.canvas import SIZE, new_figure, widest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

    from contstim.arrays import FloatArray

_DARK = 0.55  # of the colour scale, from where numbers are white
_STRONG = 0.3  # the same for a scale with a middle, from there
_CELL = 0.33  # inches
_SHRUNK = 0.7  # the colour scale's share of the height
_BAR = 0.15  # inches, the width of the colour scale
_SLOPE = 0.71  # height of a name at 45 degrees


def matrix_figure(
    models: Sequence[str],
    shares: FloatArray,
    *,
    title: str,
    rows: str = "",
    columns: str = "",
    diverging: bool = False,
) -> Figure:
    """Shares as a matrix of cells with their numbers in per cent; cells without trials stay empty.

    Args:
        models: names of rows and columns.
        shares: (n_models, n_models), 0 to 1, nan where there is none.
        title: above the matrix.
        rows: what a row's model does.
        columns: what a column's model does.
        diverging: whether one half is the middle of the scale.
    """
    n, beside = len(models), widest(models)
    cell = max(_CELL, widest([rows]) / n if rows else 0)
    width = max(1.35 + 0.25 * bool(rows) + beside + 1.1 * cell * n, 0.2 + widest([title]))
    figure = new_figure(width, 0.6 + 0.2 * bool(columns) + _SLOPE * beside + cell * n)
    axes = figure.subplots()
    colours = "PuOr" if diverging else "Blues"
    low = 0.0 if diverging else np.floor(10 * np.nanmin(shares)) / 10
    image = axes.imshow(shares, cmap=colours, vmin=low, vmax=1)
    for row, column in np.argwhere(np.isfinite(shares)):
        share = shares[row, column]
        strong = abs(share - 0.5) > _STRONG if diverging else share - low > _DARK * (1 - low)
        ink = "white" if strong else "black"
        axes.text(
            column, row, f"{100 * share:.0f}", ha="center", va="center", color=ink, size=SIZE - 1
        )
    axes.set_xticks(range(n), models, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(n), models)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set(xlabel=columns, ylabel=rows)
    figure.suptitle(title, x=0.08 / width, ha="left", fontsize="medium")
    ticks = [low, (low + 1) / 2, 1]
    colour_scale(image, axes, length=_SHRUNK * cell * n, ticks=ticks, labels="{x:.0%}")
    return figure


def colour_scale(
    image: AxesImage, axes: Axes, *, length: float, ticks: Sequence[float], labels: str
) -> None:
    """Draw what colours mean beside square axes: a bar of a length in inches, always as wide."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    bar = figure.colorbar(
        image,
        ax=axes,
        ticks=ticks,
        format=labels,
        fraction=_BAR / figure.get_figwidth(),
        aspect=length / _BAR,
        shrink=_SHRUNK,
    )
    bar.outline.set_visible(False)
