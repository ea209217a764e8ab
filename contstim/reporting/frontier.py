"""Figure of the effect of each new word in synthetic sentences, by pair of models."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.reporting.canvas import BLUE, GREY, ORANGE, panels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

ALTERNATIVE = "drop in log-probability under the rejecting model (nats), by number of new words"
"""Alternative text of the figure."""

_ACROSS = 3  # maximum number of panels next to each other


def frontier_figure(table: Mapping[str, Sequence[Any]], enough: float) -> Figure:
    """Plot the drop in log-probability against the number of new words, with a line per search.

    A panel contains the searches of a pair of models. The dot at the end of a line is the sentence
    that the search selected.

    Args:
        table: columns of `contstim triplets --frontier`.
        enough: required drop in log-probability, nats.
    """
    from matplotlib.ticker import MaxNLocator

    by_pair: defaultdict[tuple[str, ...], defaultdict[tuple[str, str], list[tuple[int, float]]]]
    by_pair = defaultdict(lambda: defaultdict(lambda: [(0, 0.0)]))
    names = ("triplet_id", "accept", "reject", "changed", "drop")
    for triplet, accept, reject, changed, drop in zip(*(table[n] for n in names), strict=True):
        by_pair[tuple(sorted((accept, reject)))][triplet, reject].append((changed, drop))
    figure, grid = panels(max(1, len(by_pair)), _ACROSS, 2.6, 2.2, sharex=True, sharey=True)
    for axis, (pair, searches) in zip(grid[0], by_pair.items(), strict=False):
        for points in searches.values():
            changed, drops = zip(*points, strict=True)
            axis.plot(changed, drops, color=GREY, linewidth=0.6, zorder=1)
        last = np.array([points[-1] for points in searches.values()])  # (n_searches, 2)
        reach = last[:, 1] >= enough
        for color, chosen, name in ((BLUE, reach, "enough"), (ORANGE, ~reach, "not enough")):
            axis.plot(*last[chosen].T, "o", color=color, markersize=3, alpha=0.6, label=name)
        axis.axhline(enough, color=ORANGE, linewidth=0.8, linestyle="--", label=f"{enough:g} nats")
        axis.set_title(" × ".join(pair))
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.supxlabel("new words")
    figure.supylabel("nats less likely")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure
