"""Figures show what the results say: marks are counted and placed."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from contstim.experiments.analysis.effects import Result, Sampling, compare
from contstim.experiments.analysis.families import every_contrast
from contstim.experiments.analysis.figures import consistency_figure
from contstim.experiments.analysis.measures import ACCURACY
from contstim.experiments.analysis.ratings import Ratings, Scope, gather
from tests.experiments.analysis.simulation import Experiment, simulate


@pytest.fixture(scope="module")
def made() -> Experiment:
    return simulate(groups=(5,) * 10, each=6)


@pytest.fixture(scope="module")
def ratings(made: Experiment) -> Ratings:
    return gather(made.trials, made.responses, made.scores)


@pytest.fixture(scope="module")
def result(ratings: Ratings) -> Result:
    family = every_contrast(ratings.models)
    return compare(ratings, Scope.NATURAL, ACCURACY, family, Sampling("groups"))


def marks(axes: Axes, kind: str) -> list[Line2D]:
    return [line for line in axes.lines if line.get_marker() == kind]


def test_bars_dots_and_ceiling_are_the_results(result: Result) -> None:
    bars, _ = consistency_figure(result, "groups").axes
    names = [label.get_text() for label in bars.get_yticklabels()]
    assert names[-1] == "a"
    by_name = {one.model: one for one in result.models}
    widths = [patch.get_width() for patch in bars.patches]  # type: ignore[attr-defined]
    assert widths == [by_name[name].value for name in names]
    bands = [band.get_paths()[0].get_extents() for band in bars.collections]
    assert [(b.x0, b.x1) for b in bands] == [
        pytest.approx((by_name[n].lower, by_name[n].upper)) for n in names
    ]
    dots = marks(bars, "o")
    groups = result.evaluation.of_groups(result.evaluation.values)
    for name, dot in zip(names, dots, strict=True):
        assert np.asarray(dot.get_xdata()).tolist() == groups[:, "abc".index(name)].tolist()
