"""Whether all of a figure is on the paper, and can be read."""

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from contstim.reporting.canvas import lay_out

_SMALLEST = 5.5  # points, where 8 is the usual size
_TOUCH = 1.0  # pixels by which boxes may overlap: they are rounded up


def _is_on_the_paper(figure: Figure) -> bool:
    width, height = figure.get_size_inches()
    box = figure.get_tightbbox()
    return bool(min(box.x0, box.y0) >= 0 and box.x1 <= width and box.y1 <= height)


def faults(figure: Figure) -> list[str]:
    """What is cut off, too small, or printed over another text; outside witness: matplotlib.

    Texts of matrices' cells and inside of axes may lie upon what is drawn, but not on one another.
    """
    lay_out(figure)
    page = figure.bbox
    texts = [(text, text.get_window_extent()) for text in _texts(figure)]
    found = [
        f"{text.get_text()!r} is cut off: {box} of {page}"
        for text, box in texts
        if box.x0 < page.x0 - _TOUCH
        or box.y0 < page.y0 - _TOUCH
        or box.x1 > page.x1 + _TOUCH
        or box.y1 > page.y1 + _TOUCH
    ]
    found += [
        f"{text.get_text()!r} is of {text.get_fontsize()} points"
        for text, _ in texts
        if float(text.get_fontsize()) < _SMALLEST
    ]
    found += [
        f"{one.get_text()!r} lies on {other.get_text()!r}"
        for one, other in _overlapping(texts)
        if not (one.get_rotation() % 90 and other.get_rotation() % 90)
    ]
    found += [
        f"the legend lies on {axes.get_title('left')!r}"
        for legend in figure.legends
        for axes in figure.findobj(Axes)
        if isinstance(axes, Axes) and _overlap(legend.get_window_extent(), axes.bbox)
    ]
    return found if _is_on_the_paper(figure) else [*found, "something is cut off"]


def _texts(figure: Figure) -> Iterator[Text]:
    """Every text that is printed; labels of ticks beyond the axis are not."""
    unused: set[int] = set()
    for axes in figure.findobj(Axes):
        assert isinstance(axes, Axes)
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            slack = 1e-9 * (high - low)
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not low - slack <= tick.get_loc() <= high + slack or not axes.axison:
                    unused |= {id(tick.label1), id(tick.label2)}
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        shown = text.get_visible() and text.get_text().strip() and id(text) not in unused
        if shown and (text.axes is None or text.axes.get_visible()):
            yield text


def _overlapping(texts: list[tuple[Text, Bbox]]) -> Iterator[tuple[Text, Text]]:
    """Any two texts whose boxes overlap: all pairs at once, of which there are 100,000 and more."""
    x0, y0, x1, y1 = np.array([box.extents for _, box in texts]).reshape(-1, 4).T
    across = np.minimum.outer(x1, x1) - np.maximum.outer(x0, x0)
    up = np.minimum.outer(y1, y1) - np.maximum.outer(y0, y0)
    for i, j in np.argwhere(np.triu((across > _TOUCH) & (up > _TOUCH), k=1)):
        yield texts[i][0], texts[j][0]


def _overlap(one: Bbox, other: Bbox) -> bool:
    across = min(one.x1, other.x1) - max(one.x0, other.x0)
    up = min(one.y1, other.y1) - max(one.y0, other.y0)
    return bool(across > _TOUCH and up > _TOUCH)
