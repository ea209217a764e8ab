"""Figures of reports, returned as axes."""

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from contstim import plot
from contstim.errors import InputError
from contstim.evaluation.criteria import evaluate_acceptability
from contstim.experiments.analysis import figures as module
from contstim.experiments.analysis.effects import Sampling
from contstim.experiments.analysis.figures import drawings
from contstim.experiments.analysis.run import Analysis, analyze
from contstim.experiments.design.building import build_design
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Condition
from contstim.reporting.canvas import styled
from contstim.words.sentence import Sentence
from tests.evaluation.small_data import simulated
from tests.experiments import stimuli
from tests.experiments.analysis.simulation import simulate

MODELS = ("a", "b", "c")
UNSAMPLED = Sampling()


@pytest.fixture(autouse=True)
def _no_window() -> None:
    mpl.use("Agg")


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    simulation = simulate(MODELS, groups=(3, 3), each=2)
    return simulation.analyze(sampling=UNSAMPLED)


@pytest.fixture(scope="module")
def report_figures(analysis: Analysis) -> list[tuple[str, Figure]]:
    """Figures of the report with their file names."""
    with styled():
        return list(drawings(analysis))


@pytest.fixture(scope="module")
def scores() -> ScoreTable:
    values = -np.random.default_rng(0).gamma(9, 6, (30, 3))
    return ScoreTable(tuple(Sentence.parse(f"s{i}") for i in range(30)), MODELS, values)


def test_every_figure_of_the_report_can_be_drawn_by_name(
    analysis: Analysis, report_figures: list[tuple[str, Figure]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Witness: the figures of the report, drawn once for all names."""
    monkeypatch.setattr(module, "drawings", lambda *_: iter(report_figures))
    names = [name for name, _ in report_figures]
    assert len(names) > 8
    for name in names:
        axes = plot.analysis(analysis, name)
        assert axes[0].figure is plt.gcf(), "pyplot shows the figure"
        assert axes[0].has_data()
    assert len(plt.get_fignums()) == len(names), "pyplot shows no other figure"
    by_default, _significance = plot.analysis(analysis)
    assert by_default.get_title(loc="left") == "all kinds of trials together"


def test_returned_axes_can_be_changed(analysis: Analysis) -> None:
    bars, significance = plot.analysis(analysis, "accuracy-random-natural")
    bars.set_title("changed")
    assert bars.get_title() == "changed"
    # Three models, sorted by value
    assert {label.get_text() for label in bars.get_yticklabels()} == set(MODELS)
    widths = [patch.get_extents().width for patch in bars.patches]
    assert widths == sorted(widths)
    assert significance.figure is bars.figure


def test_ranks_are_in_the_order_of_scores(scores: ScoreTable) -> None:
    """Witness: the order of the scores."""
    axes, *_ = plot.ranks(scores)
    x, y = axes.lines[1].get_data()
    for coordinates, values in ((x, scores.log_probs[:, 0]), (y, scores.log_probs[:, 1])):
        np.testing.assert_array_equal(np.argsort(coordinates), np.argsort(values))
    cells, _scale = plot.agreement(scores)
    assert len(cells.texts) == 6  # two cells for each of three models


def test_ranks_need_two_models(scores: ScoreTable) -> None:
    single = ScoreTable(scores.sentences, ("a",), scores.log_probs[:, :1])
    with pytest.raises(InputError, match="at least 2 models"):
        plot.ranks(single)


def test_error_lists_the_names_of_figures(
    analysis: Analysis, report_figures: list[tuple[str, Figure]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "drawings", lambda *_: iter(report_figures))
    with pytest.raises(InputError, match=r"no figure 'rank'.*reliability"):
        plot.analysis(analysis, "rank")
    with pytest.raises(InputError, match="No trial compares 'a' with 'z'"):
        plot.analysis(analysis, "ranks", pair=("a", "z"))
    assert not plt.get_fignums()


def test_figures_of_benchmarks_and_designs() -> None:
    judgements, sentence_scores = simulated(30, 2)
    evaluation = evaluate_acceptability(judgements, sentence_scores)
    assert len(plot.acceptability(evaluation)) == 2
    assert len(plot.acceptability(evaluation, "correlations")) == 2
    natural = stimuli.natural(36)
    design = build_design((), (), natural, groups=3, random_per_group=2, catch_per_group=2)
    assert len(plot.design(design, natural)) == 5


def test_figures_label_artificial_participants(analysis: Analysis) -> None:
    """Responses of artificial participants are labelled, other responses are not."""
    plot.analysis(analysis, "accuracy-random-natural")
    assert plt.gcf().get_supxlabel() == ""
    simulation = simulate(MODELS, groups=(3, 3), conditions=(Condition.RANDOM_NATURAL,))
    responses = [replace(response, simulated=True) for response in simulation.responses]
    simulated = analyze(simulation.trials, responses, simulation.scores, sampling=UNSAMPLED)
    plot.analysis(simulated, "accuracy-random-natural")
    assert "Artificial participants" in plt.gcf().get_supxlabel()
