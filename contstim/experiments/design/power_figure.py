"""Figure of what more people, and more items, would buy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contstim.files import writing
from contstim.reporting.canvas import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    lay_out,
    new_figure,
    styled,
)

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from contstim.experiments.design.design_power import DesignPower

_FACTORS = (0.25, 0.5, 1, 2, 4, 8)
_ACROSS = 3
_DIFFERENCES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_SHOWN = (0.008, 1.0)
ALTERNATIVE = (
    "The smallest difference of accuracies that is found in 80 % of experiments, by participants: "
    "where these rate the items that there are, and where they rate new items in new groups"
)


def draw_power(power: DesignPower, path: Path | str) -> None:
    """Write `power_figure`; the kind of image follows from the file's name (.png, .pdf, .svg).

    Raises:
        InputError: the file cannot be written.
    """
    with styled(), writing(path) as partial:
        figure = power_figure(power)
        lay_out(figure)
        figure.savefig(partial, dpi=200, format=str(path).rpartition(".")[2])


def power_figure(power: DesignPower) -> Figure:
    """For each scope, the smallest difference found, by participants and what they rate."""
    from matplotlib.ticker import NullLocator

    rows = -(-len(power.scopes) // _ACROSS)
    figure = new_figure(2.9 * _ACROSS, 2.2 * rows + 0.6)
    panels = figure.subplots(rows, _ACROSS, squeeze=False, sharex=True, sharey=True).ravel()
    each, groups = power.participants, power.groups
    # Whole people and whole groups; as planned stands in both lines.
    people = sorted({max(1, round(factor * each)) for factor in _FACTORS})
    more = sorted({max(1, round(factor * groups)) for factor in _FACTORS})
    for panel, (scope, of_scope) in zip(panels, power.scopes.items(), strict=False):
        precision = of_scope.precision
        # Before anything is drawn: limits cannot be found where no difference can be
        panel.set(title=str(scope), xscale="log", yscale="log", ylim=_SHOWN)
        for sizes, colour, label in (
            ([(groups, n) for n in people], ORANGE, "more people for the same items"),
            ([(n, each) for n in more], BLUE, "more groups, with items of their own"),
        ):
            panel.plot(
                [g * n for g, n in sizes],
                [precision.detectable(*size) for size in sizes],
                "o-",
                color=colour,
                label=label,
                markersize=3,
            )
        planned = precision.detectable(groups, each)
        panel.plot(
            groups * each, planned, "o", color=BLACK, markersize=6, zorder=3, label="as planned"
        )
        panel.axhline(
            power.smallest_effect,
            color=GREY,
            linestyle="--",
            label=f"smallest effect of interest, {power.smallest_effect:g}",
        )
        if not np.isfinite(planned):
            panel.text(0.5, 0.5, "none can be found", ha="center", transform=panel.transAxes)
        for axis, places in ((panel.xaxis, [each * n for n in more]), (panel.yaxis, _DIFFERENCES)):
            axis.set_ticks(places, [f"{place:,g}" for place in places])
            axis.set_minor_locator(NullLocator())
    for panel in panels[len(power.scopes) :]:
        panel.set_visible(False)
    figure.supxlabel("participants in all")
    figure.supylabel("smallest difference of accuracies\nfound in 80 % of experiments")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False)
    return figure
