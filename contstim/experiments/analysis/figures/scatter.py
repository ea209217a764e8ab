"""The sentences that set two models against each other, by their ranks under both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis.measures import MIDDLE
from contstim.reporting.canvas import BLACK, BLUE, GREY, ORANGE, new_figure, widest
from contstim.stimuli import Condition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from contstim.arrays import FloatArray
    from contstim.experiments.analysis.ratings import Ratings
    from contstim.scores import ScoreTable

_CONDITIONS = (
    Condition.NATURAL_CONTROVERSIAL,
    Condition.NATURAL_SYNTHETIC,
    Condition.SYNTHETIC_SYNTHETIC,
)


def scatter_figure(
    ratings: Ratings,
    scores: ScoreTable,
    pair: tuple[str, str],
    names: Mapping[str, str] | None = None,
) -> Figure:
    """A panel for each condition that sets the pair against each other.

    A sentence stands at its fractional ranks among all scored sentences; a line joins the two
    sentences of a trial. Blue: the one that most people prefer; orange: the other; grey: neither.

    Args:
        ratings: who chose what.
        scores: of all sentences.
        pair: two models that trials set against each other.
        names: what to call models, where other than by their names.
    """
    from matplotlib.lines import Line2D

    by_condition = {
        condition: _points(ratings, scores, pair, condition) for condition in _CONDITIONS
    }
    by_condition = {
        condition: points for condition, points in by_condition.items() if len(points[0])
    }
    ranks = [f"rank under {(names or {}).get(model, model)}" for model in pair]
    labels = ("preferred by most people", "the other sentence")
    side = max(2.3, 0.3 + widest(ranks))
    across = max(0.5 + side * max(1, len(by_condition)), 1.2 + widest(["".join(labels)]))
    figure = new_figure(across, 0.6 + side)
    panels = figure.subplots(1, max(1, len(by_condition)), squeeze=False)[0]
    for axes, (condition, (points, preferred)) in zip(panels, by_condition.items(), strict=False):
        _draw(axes, points, preferred)
        axes.set_title(condition.replace("-", " "), loc="left", fontsize="medium")
        axes.set_xlabel(ranks[0])
    panels[0].set_ylabel(ranks[1])
    figure.legend(
        handles=[
            Line2D(
                [], [], color=colour, marker=marker, ls="", ms=4, mec=BLACK, mew=0.4, label=label
            )
            for colour, marker, label in zip((BLUE, ORANGE), "os", labels, strict=True)
        ],
        loc="outside lower center",
        ncols=2,
        frameon=False,
    )
    return figure


def _points(
    ratings: Ratings, scores: ScoreTable, pair: tuple[str, str], condition: Condition
) -> tuple[FloatArray, FloatArray]:
    """Ranks (n_trials, 2 sentences, 2 models); the sign of the majority, 1 for sentence_2."""
    ranks = scores.ranks()[:, [scores.models.index(m) for m in pair]]
    points, preferred = [], []
    for group in ratings.groups:
        for column, trial in enumerate(group.trials):
            if trial.condition is condition and {trial.model_1, trial.model_2} == set(pair):
                both = (trial.sentence_1, trial.sentence_2)
                points.append(ranks[scores.rows_of(both)])
                preferred.append(np.sign(np.sign(group.ratings[:, column] - MIDDLE).sum()))
    return np.array(points), np.array(preferred)


def _draw(axes: Axes, points: FloatArray, preferred: FloatArray) -> None:
    for both, majority in zip(points, preferred, strict=True):
        axes.plot(*both.T, color=GREY, lw=0.6, zorder=1)
        for place, side in zip(both, (-1, 1), strict=True):
            colour = GREY if majority == 0 else BLUE if majority == side else ORANGE
            marker = "o" if majority == side else "s"
            axes.plot(*place, marker, ms=4, color=colour, mec=BLACK, mew=0.4, clip_on=False)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set_xticks((0, 0.5, 1))
    axes.set_yticks((0, 0.5, 1))
