"""Sizes and fonts of all figures, and functions that draw heat maps and save figures."""

from __future__ import annotations

import textwrap
from io import BytesIO
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from contstim.files.files import writing
from contstim.reporting.report import short_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox
    from numpy.typing import NDArray

    from contstim.files.arrays import FloatArray
    from contstim.items.scores import ScoreTable


# Colours of Okabe & Ito (2008), which can be distinguished with common types of colour blindness
BLUE, ORANGE, GREY, BLACK = "#0072B2", "#D55E00", "#BBBBBB", "#000000"
SIZE = 8  # points, as journals require
_DPI = 300
_POINTS = 72  # per inch
_CHARACTERS_PER_INCH, _MIN_LINE_LENGTH = 14, 24  # for wrapping bold text of size SIZE
_HINTING_FACTOR = 1.03  # fitting letters to pixels (hinting) may widen them by this factor
_STYLE: dict[Any, Any] = {
    "font.size": SIZE,
    "text.parse_math": False,  # names such as "$x$" are not formulas
    "pdf.fonttype": 42,  # embedded text, as publishers require
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
}


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure of a size in inches; no display is needed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def panels(
    n: int, across: int, width: float, height: float, *, rows: int = 1, **shared: Any
) -> tuple[Figure, NDArray[Any]]:
    """Make a figure with n columns of panels; each column has `rows` panels.

    At most `across` columns are next to each other. Further columns are placed below. `width` and
    `height` of a panel are in inches. `shared` are the options of `Figure.subplots` that make
    panels share axes, such as `sharex`.

    Returns:
        Figure, and axes, (rows, n).
    """
    across = min(n, across)
    down = rows * ceil(n / across)
    figure = new_figure(0.4 + width * across, 0.4 + height * down)
    grid = figure.subplots(down, across, squeeze=False, **shared)
    # The grid consists of blocks of `rows` rows, one below the other. Place the blocks next to
    # each other: (rows, n + unused columns)
    axes_grid = np.hstack(np.split(grid, down // rows))
    unused: Iterable[Axes] = axes_grid[:, n:].flat
    for axes in unused:
        axes.set_axis_off()
    return figure, axes_grid[:, :n]


def widest(labels: Iterable[str]) -> float:
    """Return the width of the widest label at the default font size, inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    measure, font = TextToPath().get_text_width_height_descent, FontProperties(size=SIZE)
    points = max(measure(label, font, ismath=False)[0] for label in labels)
    return _HINTING_FACTOR * points / _POINTS


def styled() -> AbstractContextManager[None]:
    """Return a context manager that sets the style; make and save figures only within it."""
    import matplotlib as mpl

    return mpl.rc_context(_STYLE)


def plain_log(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers, because `styled` does not display powers."""
    from matplotlib.ticker import LogFormatter

    axis.set_major_formatter("{x:,g}")
    axis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.4)))


def lay_out(figure: Figure) -> None:
    """Lay out a figure once, so that files of all formats have the same layout."""
    for _ in range(2):  # colour bars of square axes get their positions in the second round
        figure.draw_without_rendering()
    figure.set_layout_engine("none")


def png(make: Callable[[], Figure]) -> bytes:
    """Render the figure that `make` returns as a PNG image; `make` is called in `styled`."""
    with styled():
        figure = make()
        lay_out(figure)
        return _png(figure, None)


def _png(figure: Figure, part: Bbox | None) -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI, bbox_inches=part, metadata={"Software": None})
    return buffer.getvalue()


def write_figure(make: Callable[[], Figure], path: Path | str) -> None:
    """Write a figure in the format of the suffix (.png, .pdf, .svg); `make` is called in `styled`.

    Raises:
        InputError: if the file cannot be written.
    """
    with styled(), writing(path) as partial:
        figure = make()
        lay_out(figure)
        figure.savefig(partial, dpi=200, format=str(path).rpartition(".")[2])


def save(figure: Figure, path: Path | str, *, warning: str = "") -> bytes:
    """Write `path`.pdf and `path`.png, and return the content of the PNG file.

    The figure must have been made within `styled`. `warning` is printed above the figure.

    Raises:
        InputError: if a file cannot be written.
    """
    lay_out(figure)
    strip = _add_warning(figure, warning)
    image = _png(figure, strip)
    with writing(Path(f"{path}.png")) as partial:
        partial.write_bytes(image)
    with writing(Path(f"{path}.pdf")) as partial:
        figure.savefig(partial, format="pdf", bbox_inches=strip, metadata={"CreationDate": None})
    return image


def wrapped(warning: str, width: float) -> str:
    """Wrap a bold warning to a width in inches."""
    return textwrap.fill(warning, max(_MIN_LINE_LENGTH, int(width * _CHARACTERS_PER_INCH)))


def _add_warning(figure: Figure, warning: str) -> Bbox | None:
    """Add a warning above a figure; return the area to save, inches (None for the whole figure)."""
    if not warning:
        return None
    from matplotlib.transforms import Bbox

    width, height = figure.get_size_inches()
    text = wrapped(warning, width)
    strip = (text.count("\n") + 2) * SIZE * 1.2 / _POINTS
    figure.text(
        *(0.5, 1 + 0.4 * SIZE / _POINTS / height, text),
        ha="center",
        va="bottom",
        color=ORANGE,
        weight="bold",
    )
    return Bbox([[0, 0], [width, height + strip]])


_SQUARE = 0.36  # side of a square cell of a heat map, inches
_ACROSS, _DOWN = 0.42, 0.26  # width and height of a cell that is not square, inches
_SCALE_WIDTH, _SCALE_SHARE = 0.15, 0.7  # colour bar: width in inches; height relative to the map
_MIN_HEIGHT = 0.9  # minimum height of a map, inches
_SLOPE = 0.71  # height of a name at 45 degrees, relative to its length
_LUMINANCE = (0.2126, 0.7152, 0.0722)  # luminance of red, green and blue (ITU-R BT.709)
_DARK = 0.5  # on a cell with a lower luminance, the number is white


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
    """Draw a heat map with a number in each cell.

    Cells are square if rows and columns have the same names. If `middle` is given (for example,
    chance), the colour scale is diverging and symmetric about `middle`. Otherwise, the colour scale
    is sequential, from the smallest value (rounded down to a tenth) to 1.

    Values are at most 1, (n_rows, n_columns); nan leaves a cell empty. `numbers` is the format of
    the numbers. For example, the value 0.256 is written as

    per cent      26 in a cell, 26% at the colour bar
    hundredths    26 in a cell, 0.26 at the colour bar
    decimals      0.26 in a cell, 0.26 at the colour bar
    """
    square = list(rows) == list(columns)
    label_width, label_height = widest(rows), _SLOPE * widest(columns)
    across, down = (_SQUARE, _SQUARE) if square else (_ACROSS, _DOWN)
    # Cells are high enough for the label of the row axis and for three numbers at the colour bar
    down = max(down, _MIN_HEIGHT / len(rows), widest([row_label or " "]) / len(rows))
    across = down if square else across
    # The sloping name of the first column may need more space than the names of rows
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
        # Size of the colour bar: width relative to the map, height relative to the map, and
        # height / width
        fraction=_SCALE_WIDTH / (across * len(columns)),
        shrink=_SCALE_SHARE,
        aspect=_SCALE_SHARE * down * len(rows) / _SCALE_WIDTH,
    )
    bar.outline.set_visible(False)
    return figure


def agreement_map(scores: ScoreTable) -> Figure:
    """Draw the share of sentence pairs that two models order in the same way.

    A share of 0.5, which is chance, has no colour.
    """
    shares = scores.agreement().copy()
    np.fill_diagonal(shares, np.nan)  # a model's agreement with itself is not informative
    names = short_names(scores.models)
    return heat_map(
        names, names, shares, title="Pairs of sentences in the same order (%)", middle=0.5
    )
