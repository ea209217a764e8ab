"""Heat map of a number for each row and column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from contstim.reporting.canvas import SIZE, new_figure, widest
from contstim.reporting.names import short_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from contstim.files.arrays import FloatArray
    from contstim.items.scores import ScoreTable

# Inches: side of a square cell; width and height of others
_SQUARE, _ACROSS, _DOWN = 0.36, 0.42, 0.26
_SCALE_WIDTH, _SCALE_SHARE = 0.15, 0.7  # width of the colour bar, inches; height, share of map
_MIN_HEIGHT = 0.9  # of a map, inches
_SLOPE = 0.71  # height of a name at 45 degrees, relative to its length
_LUMINANCE = (0.2126, 0.7152, 0.0722)  # of red, green and blue (ITU-R BT.709)
_DARK = 0.5  # luminance of a cell below which its number is white


def heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    values: FloatArray,
    *,
    title: str,
    numbers: Literal["per cent", "hundredths", "decimals"] = "per cent",
    middle: float | None = None,
    row_label: str = "",
    column_label: str = "",
) -> Figure:
    """Draw cells with numbers, in a sequential or diverging colour scale.

    Cells are square if rows and columns have the same names. A sequential scale begins at the
    smallest value, rounded down to a tenth, and ends at 1. A diverging scale is symmetric about its
    middle.

    Args:
        rows: names of the rows, from the top.
        columns: names of the columns.
        values: values up to 1, (n_rows, n_columns); nan leaves a cell empty.
        title: title above the map.
        numbers: format of 0.256: 26 in a cell with 26% ("per cent") or 0.26 ("hundredths") at the
            colour bar, or 0.26 at both ("decimals").
        middle: value without colour, such as chance; None for a sequential scale.
        row_label: label of the row axis.
        column_label: label of the column axis.
    """
    square = list(rows) == list(columns)
    label_width, label_height = widest(rows), _SLOPE * widest(columns)
    across, down = (_SQUARE, _SQUARE) if square else (_ACROSS, _DOWN)
    # Room for the label along the rows, and for three numbers along the colour bar
    down = max(down, _MIN_HEIGHT / len(rows), widest([row_label or " "]) / len(rows))
    across = down if square else across
    # The first column's sloping name may extend further left than the rows' names
    left_margin = max(label_width + 0.25 * bool(row_label), label_height - across / 2 + 0.2)
    width = max(1.35 + left_margin + 1.05 * across * len(columns), 0.2 + widest([title]))
    figure = new_figure(width, 0.85 + 0.2 * bool(column_label) + label_height + down * len(rows))
    axes = figure.subplots()
    low = np.floor(10 * np.nanmin(values)) / 10 if middle is None else 2 * middle - 1
    colours = "Blues" if middle is None else "PuOr"
    image = axes.imshow(
        values, cmap=colours, vmin=low, vmax=1, aspect="equal" if square else "auto"
    )
    for row, column in np.argwhere(np.isfinite(values)):
        value = values[row, column]
        number = f"{value:z.2f}" if numbers == "decimals" else f"{100 * value:z.0f}"
        luminance = np.dot(image.to_rgba(value)[:3], _LUMINANCE)
        ink = "white" if luminance < _DARK else "black"
        signed = number.replace("-", "\N{MINUS SIGN}")
        axes.text(column, row, signed, ha="center", va="center", color=ink, size=SIZE - 1)
    axes.set_xticks(range(len(columns)), columns, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set(xlabel=column_label, ylabel=row_label)
    figure.suptitle(title, x=0.08 / width, ha="left", fontsize="medium")
    bar = figure.colorbar(
        image,
        ax=axes,
        ticks=[low, (low + 1) / 2, 1],
        format="{x:.0%}" if numbers == "per cent" else "{x:g}",
        # Shares of the map's width and height, and the bar's own ratio
        fraction=_SCALE_WIDTH / (across * len(columns)),
        shrink=_SCALE_SHARE,
        aspect=_SCALE_SHARE * down * len(rows) / _SCALE_WIDTH,
    )
    bar.outline.set_visible(False)
    return figure


def agreement_map(scores: ScoreTable) -> Figure:
    """Draw the share of sentence pairs that two models order equally; chance has no colour."""
    shares = scores.agreement().copy()
    np.fill_diagonal(shares, np.nan)  # not informative
    names = short_names(scores.models)
    return heat_map(
        names, names, shares, title="Pairs of sentences in the same order (%)", middle=0.5
    )
