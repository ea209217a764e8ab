"""Sizes and type that all figures share, and how they are saved."""

from __future__ import annotations

import textwrap
from io import BytesIO
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.files.files import writing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox
    from numpy.typing import NDArray

# Okabe & Ito (2008): distinct under every common colour blindness, and in grey
BLUE, ORANGE, GREY, BLACK = "#0072B2", "#D55E00", "#BBBBBB", "#000000"
SIZE = 8  # points, what journals ask for
_DPI = 300
_POINTS = 72  # in an inch
_SIGNS_PER_INCH, _NARROWEST = 14, 24  # of bold letters of the usual size
_HINTED = 1.03  # glyphs that are fitted to pixels may be wider
_STYLE: dict[Any, Any] = {
    "font.size": SIZE,
    "text.parse_math": False,  # names are shown as they are, also "$x$"
    "pdf.fonttype": 42,  # text stays text, as publishers ask
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
}


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of a size in inches, drawn without any display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def panels(
    n: int, across: int, width: float, height: float, *, rows: int = 1, **shared: Any
) -> tuple[Figure, NDArray[Any]]:
    """A figure with a column of panels for each of n things, some beside each other, then below.

    Args:
        n: number of columns.
        across: number of columns side by side, at most.
        width: of a panel, in inches.
        height: of a panel, in inches.
        rows: number of panels in a column.
        shared: axes that panels share, as of `Figure.subplots`.

    Returns:
        The figure, and the axes, (rows, n).
    """
    across = min(n, across)
    down = rows * ceil(n / across)
    figure = new_figure(0.4 + width * across, 0.4 + height * down)
    grid = figure.subplots(down, across, squeeze=False, **shared)
    # blocks of rows below each other become one block: (rows, n and unused panels)
    every = np.hstack(np.split(grid, down // rows))
    unused: Iterable[Axes] = every[:, n:].flat
    for axes in unused:
        axes.set_axis_off()
    return figure, every[:, :n]


def widest(labels: Iterable[str]) -> float:
    """Inches that the widest of some labels needs at the usual size of type."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    measure, font = TextToPath().get_text_width_height_descent, FontProperties(size=SIZE)
    points = max(measure(label, font, ismath=False)[0] for label in labels)
    return _HINTED * points / _POINTS


def styled() -> AbstractContextManager[None]:
    """The context in which a figure is made and saved."""
    import matplotlib as mpl

    return mpl.rc_context(_STYLE)


def plain_log(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers: text is not read as formulas here."""
    from matplotlib.ticker import LogFormatter

    axis.set_major_formatter("{x:,g}")
    axis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.4)))


def lay_out(figure: Figure) -> None:
    """Give everything its place, once and for all formats."""
    for _ in range(2):  # the second time, the places of square axes and their scales are known
        figure.draw_without_rendering()
    figure.set_layout_engine("none")


def png(figure: Figure) -> bytes:
    """A figure made within `styled`, as a PNG image."""
    lay_out(figure)
    return _png(figure, None)


def _png(figure: Figure, part: Bbox | None) -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI, bbox_inches=part, metadata={"Software": None})
    return buffer.getvalue()


def write_figure(make: Callable[[], Figure], path: Path | str) -> None:
    """Write a figure; the kind of image follows from the file's name (.png, .pdf, .svg).

    Args:
        make: makes it, within `styled`.
        path: of the image.

    Raises:
        InputError: the file cannot be written.
    """
    with styled(), writing(path) as partial:
        figure = make()
        lay_out(figure)
        figure.savefig(partial, dpi=200, format=str(path).rpartition(".")[2])


def save(figure: Figure, path: Path | str, *, warning: str = "") -> bytes:
    """Write `path`.pdf and `path`.png, and return the latter.

    Args:
        figure: made within `styled`.
        path: without an ending.
        warning: printed on a strip that is added above the figure; empty: no strip.

    Raises:
        InputError: a file cannot be written.
    """
    lay_out(figure)
    strip = _strip(figure, warning)
    image = _png(figure, strip)
    with writing(Path(f"{path}.png")) as partial:
        partial.write_bytes(image)
    with writing(Path(f"{path}.pdf")) as partial:
        figure.savefig(partial, format="pdf", bbox_inches=strip, metadata={"CreationDate": None})
    return image


def wrapped(warning: str, width: float) -> str:
    """A warning in lines of bold type that fit a width in inches."""
    return textwrap.fill(warning, max(_NARROWEST, int(width * _SIGNS_PER_INCH)))


def _strip(figure: Figure, warning: str) -> Bbox | None:
    """Part to save, in inches: the figure with a warning above it; None for the figure alone."""
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
