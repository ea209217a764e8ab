"""Checks that a figure is complete and legible."""

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from contstim.reporting.canvas import lay_out

_SMALLEST = 5.5  # points; the usual size is 8
_TOUCH = 1.0  # pixels of overlap that are due to rounding


def _is_within_page(figure: Figure) -> bool:
    width, height = figure.get_size_inches()
    box = figure.get_tightbbox()
    return bool(min(box.x0, box.y0) >= 0 and box.x1 <= width and box.y1 <= height)


def find_faults(figure: Figure) -> list[str]:
    """List texts that are cut off, too small, or printed over other texts. Witness: matplotlib.

    Texts in cells and axes may overlap drawings, but not each other.
    """
    lay_out(figure)
    page = figure.bbox
    texts = [(text, text.get_window_extent()) for text in _visible_texts(figure)]
    messages = [
        f"{text.get_text()!r} is cut off: {box} of {page}"
        for text, box in texts
        if box.x0 < page.x0 - _TOUCH
        or box.y0 < page.y0 - _TOUCH
        or box.x1 > page.x1 + _TOUCH
        or box.y1 > page.y1 + _TOUCH
    ]
    messages += [
        f"{text.get_text()!r} is of {text.get_fontsize()} points"
        for text, _ in texts
        if float(text.get_fontsize()) < _SMALLEST
    ]
    messages += [
        f"{first.get_text()!r} lies on {second.get_text()!r}"
        for first, second in _overlapping_texts(texts)
        if not (first.get_rotation() % 90 and second.get_rotation() % 90)
    ]
    messages += [
        f"the legend lies on {axes.get_title('left')!r}"
        for legend in figure.legends
        for axes in figure.findobj(Axes)
        if isinstance(axes, Axes) and _boxes_overlap(legend.get_window_extent(), axes.bbox)
    ]
    return messages if _is_within_page(figure) else [*messages, "something is cut off"]


def _visible_texts(figure: Figure) -> Iterator[Text]:
    """Yield all printed texts, without tick labels beyond the axis."""
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
        is_shown = text.get_visible() and text.get_text().strip() and id(text) not in unused
        if is_shown and (text.axes is None or text.axes.get_visible()):
            yield text


def _overlapping_texts(texts: list[tuple[Text, Bbox]]) -> Iterator[tuple[Text, Text]]:
    """Yield pairs of overlapping texts. Vectorised, because there are over 100,000 pairs."""
    x0, y0, x1, y1 = np.array([box.extents for _, box in texts]).reshape(-1, 4).T
    width = np.minimum.outer(x1, x1) - np.maximum.outer(x0, x0)
    height = np.minimum.outer(y1, y1) - np.maximum.outer(y0, y0)
    for i, j in np.argwhere(np.triu((width > _TOUCH) & (height > _TOUCH), k=1)):
        yield texts[i][0], texts[j][0]


def _boxes_overlap(box: Bbox, other_box: Bbox) -> bool:
    width = min(box.x1, other_box.x1) - max(box.x0, other_box.x0)
    height = min(box.y1, other_box.y1) - max(box.y0, other_box.y0)
    return bool(width > _TOUCH and height > _TOUCH)
