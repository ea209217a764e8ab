"""A number for each row and column, as a map of coloured cells."""

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

_SQUARE, _ACROSS, _DOWN = 0.36, 0.42, 0.26  # inches: a square cell's side; another's width, height
_SCALE_WIDTH, _SCALE_SHARE = 0.15, 0.7  # inches; of the map's height
_LOWEST = 0.9  # inches, the height of a map
_SLOPE = 0.71  # height of a name at 45 degrees, of its length
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
    """Cells with their numbers, in colours that grow up to 1, or diverge from a middle.

    Cells are square where rows and columns have the same names. Colours that grow begin at the
    tenth below the smallest value; those that diverge lie symmetric about the middle.

    Args:
        rows: names of the rows, from the top.
        columns: names of the columns.
        values: (n_rows, n_columns), up to 1; cells that are nan stay empty.
        title: above the map.
        numbers: a value of .256 is printed as 26 (in the scale beside the map as 26% or 0.26), or
            as 0.26.
        middle: the value without colour, such as chance; None for colours that grow.
        row_label: what the row's name is, or does.
        column_label: the same of the column's.
    """
    square = list(rows) == list(columns)
    beside, below = widest(rows), _SLOPE * widest(columns)
    across, down = (_SQUARE, _SQUARE) if square else (_ACROSS, _DOWN)
    # a label stands along its rows, and so does the scale, which needs room for three numbers
    down = max(down, _LOWEST / len(rows), widest([row_label or " "]) / len(rows))
    across = down if square else across
    # the first column's sloping name may reach further to the left than the rows' names
    left = max(beside + 0.25 * bool(row_label), below - across / 2 + 0.2)
    width = max(1.35 + left + 1.05 * across * len(columns), 0.2 + widest([title]))
    figure = new_figure(width, 0.85 + 0.2 * bool(column_label) + below + down * len(rows))
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
        # matplotlib wants shares: of the map's width, of its height, and of the scale itself
        fraction=_SCALE_WIDTH / (across * len(columns)),
        shrink=_SCALE_SHARE,
        aspect=_SCALE_SHARE * down * len(rows) / _SCALE_WIDTH,
    )
    bar.outline.set_visible(False)
    return figure


def agreement_map(scores: ScoreTable) -> Figure:
    """The share of pairs of sentences that two models order alike; chance is without colour."""
    shares = scores.agreement().copy()
    np.fill_diagonal(shares, np.nan)  # a model with itself tells nothing
    names = short_names(scores.models)
    return heat_map(names, names, shares, title="Pairs of sentences ordered alike (%)", middle=0.5)
