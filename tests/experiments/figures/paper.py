"""Whether all of a figure is on the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def is_whole(figure: Figure) -> bool:
    """Nothing that is drawn reaches beyond the figure's edges; outside witness: matplotlib."""
    figure.draw_without_rendering()
    width, height = figure.get_size_inches()
    box = figure.get_tightbbox()
    return bool(min(box.x0, box.y0) >= 0 and box.x1 <= width and box.y1 <= height)
