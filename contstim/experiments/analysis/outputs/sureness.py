"""Figure of how sure people are of each trial: a row for each condition, a dot for each trial."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contstim.experiments.analysis.agreement import rated_trials
from contstim.experiments.analysis.reliability import item_reliabilities
from contstim.reporting.canvas import BLACK, BLUE, GREY, new_figure, widest
from contstim.stimuli import Condition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

    from contstim.arrays import FloatArray
    from contstim.experiments.analysis.ratings import Ratings
    from contstim.experiments.analysis.reliability import ItemReliability
    from contstim.stimuli import Trial

RatedTrial: TypeAlias = "tuple[Trial, FloatArray, ItemReliability]"
"""A trial, its ratings (n_people,), and what these tell of people in general."""

SURE = 0.95  # how likely a preference of people in general is, from which a trial counts as sure


def judged_trials(ratings: Ratings) -> dict[Condition, list[RatedTrial]]:
    """Trials, ratings and what these tell, by condition; conditions that tell nothing are left out.

    Catch trials are left out too: they ask whether people attend.
    """
    reliabilities = item_reliabilities(ratings)
    by_condition = {
        condition: [
            (trial, rated, reliability)
            for trial, rated in rated_trials(ratings, condition)
            if (reliability := reliabilities[trial.trial_id]) is not None
        ]
        for condition in Condition
        if condition is not Condition.CATCH
    }
    return {condition: trials for condition, trials in by_condition.items() if trials}


def by_sureness(judged: Mapping[Condition, list[RatedTrial]]) -> list[RatedTrial]:
    """The trials of all conditions, those that people are least sure of first."""
    # Where likelihoods are equal to the last digit, the rating farther from the middle is surer
    return sorted(
        (row for trials in judged.values() for row in trials),
        key=lambda row: (row[2].sureness, abs(row[2].shrunken_rating - row[0].scale.middle)),
    )


def mean_reliability(trials: list[RatedTrial]) -> float:
    """Over the trials of a condition, which numbers of people may differ for."""
    return float(np.mean([reliability.reliability for *_, reliability in trials]))


def sureness_figure(ratings: Ratings) -> Figure | None:
    """Shrunken ratings of all trials by condition, beside the reliability of mean ratings.

    Filled dots are trials that people in general surely have a preference on (`SURE`); dots are
    spread over the height of a row in the order of the trials. None where nothing can be told.
    """
    from matplotlib.lines import Line2D

    judged = judged_trials(ratings)
    if not judged:
        return None
    names = [condition.replace("-", " ") for condition in judged]
    heading = "reliability"
    legend = f"a preference is at least {SURE:.0%} likely", "less likely"
    across = max(3.4, widest(["  ".join(legend)]) - widest(names))
    figure = new_figure(0.6 + widest(names) + across + widest([heading]), 1.5 + 0.42 * len(judged))
    axes = figure.subplots()
    axes.axvline(ratings.scale.middle, color=BLACK, lw=0.6, ls=(0, (4, 3)))
    for row, trials in enumerate(judged.values()):
        shrunken = np.array([reliability.shrunken_rating for *_, reliability in trials])
        sure = np.array([reliability.sureness >= SURE for *_, reliability in trials])
        # Neighbours in the table stand apart: steps of the golden ratio fill the row evenly
        heights = row + 0.56 * ((np.arange(len(trials)) * 0.618034) % 1 - 0.5)
        axes.plot(shrunken[~sure], heights[~sure], "o", ms=2.5, mfc="white", mec=GREY, mew=0.7)
        axes.plot(shrunken[sure], heights[sure], "o", ms=2.5, color=BLUE, mew=0)
        # To the right of the axes, at the height of the row
        axes.annotate(
            f"{mean_reliability(trials):.2f}",
            (1.02, row),
            xycoords=("axes fraction", "data"),
            va="center",
        )
    axes.annotate(
        heading, (1.02, -0.75), xycoords=("axes fraction", "data"), va="center", style="italic"
    )
    answers = ratings.scale.answers
    first, last = answers[0], answers[-1]
    margin = (last - first) / 25
    axes.set(xlim=(first - margin, last + margin), ylim=(len(judged) - 0.4, -0.6))
    axes.set_xticks(answers)
    axes.set_yticks(range(len(judged)), names)
    axes.set_xlabel(f"shrunken mean rating ({first}: surely sentence 1, {last}: surely sentence 2)")
    figure.legend(
        handles=[
            Line2D([], [], marker="o", ls="", ms=4, mec=edge, mfc=face, label=label)
            for (edge, face), label in zip(((BLUE, BLUE), (GREY, "white")), legend, strict=True)
        ],
        loc="outside lower center",
        ncols=2,
        frameon=False,
    )
    return figure
