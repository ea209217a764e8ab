"""The sentences that set two models against each other, by their ranks under both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis.agreement import rated_trials, rivals
from contstim.reporting.canvas import BLACK, BLUE, GREY, ORANGE, new_figure, widest
from contstim.stimuli import CONTROVERSIAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from contstim.experiments.analysis.ratings import Ratings
    from contstim.scores import ScoreTable
    from contstim.stimuli import Condition


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

    conditions = [
        condition
        for condition in CONTROVERSIAL
        if set(pair) in map(set, rivals(ratings, condition))
    ]
    ranks = [f"rank under {(names or {}).get(model, model)}" for model in pair]
    labels = ("preferred by most people", "the other sentence")
    side = max(2.3, 0.3 + widest(ranks))
    across = max(0.5 + side * max(1, len(conditions)), 1.2 + widest(["".join(labels)]))
    figure = new_figure(across, 0.6 + side)
    panels = figure.subplots(1, max(1, len(conditions)), squeeze=False)[0]
    for axes, condition in zip(panels, conditions, strict=False):
        _draw_trials(axes, ratings, scores, pair, condition)
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


def _draw_trials(
    axes: Axes, ratings: Ratings, scores: ScoreTable, pair: tuple[str, str], condition: Condition
) -> None:
    """A line for each trial that sets the pair against each other, a sentence at either end."""
    # (n_sentences, 2): fractional ranks under both models, which are both axes
    ranks = scores.ranks()[:, [scores.models.index(model) for model in pair]]
    for trial, rated in rated_trials(ratings, condition):
        if {trial.model_1, trial.model_2} != set(pair):
            continue
        places = ranks[scores.rows_of((trial.sentence_1, trial.sentence_2))]  # (2, 2)
        axes.plot(*places.T, color=GREY, lw=0.6, zorder=1)
        # 1 for sentence_2, 0 for a draw
        majority = np.sign(np.sign(rated - ratings.scale.middle).sum())
        for place, side in zip(places, (-1, 1), strict=True):
            colour = GREY if majority == 0 else BLUE if majority == side else ORANGE
            marker = "o" if majority == side else "s"
            axes.plot(*place, marker, ms=4, color=colour, mec=BLACK, mew=0.4, clip_on=False)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set_xticks((0, 0.5, 1))
    axes.set_yticks((0, 0.5, 1))
