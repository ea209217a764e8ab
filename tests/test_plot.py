"""Figures of reports as axes."""

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
    made = simulate(MODELS, groups=(3, 3), each=2)
    return analyze(made.trials, made.responses, made.scores, sampling=UNSAMPLED)


@pytest.fixture(scope="module")
def drawn(analysis: Analysis) -> list[tuple[str, Figure]]:
    """Every figure of the report, with the name of its file."""
    with styled():
        return list(drawings(analysis))


@pytest.fixture(scope="module")
def scores() -> ScoreTable:
    values = -np.random.default_rng(0).gamma(9, 6, (30, 3))
    return ScoreTable(tuple(Sentence.parse(f"s{i}") for i in range(30)), MODELS, values)


def test_every_figure_of_the_report_is_there_by_the_name_of_its_file(
    analysis: Analysis, drawn: list[tuple[str, Figure]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Witness: what the report draws, once for all names."""
    monkeypatch.setattr(module, "drawings", lambda *_: iter(drawn))
    names = [name for name, _ in drawn]
    assert len(names) > 8
    for name in names:
        axes = plot.analysis(analysis, name)
        assert axes[0].figure is plt.gcf(), "pyplot shows it"
        assert axes[0].has_data()
    assert len(plt.get_fignums()) == len(names), "and no other"
    by_default, _significance = plot.analysis(analysis)
    assert by_default.get_title(loc="left") == "all kinds of trials together"


def test_what_is_changed_is_what_is_saved(analysis: Analysis) -> None:
    bars, significance = plot.analysis(analysis, "accuracy-random-natural")
    bars.set_title("changed")
    assert bars.get_title() == "changed"
    # Three models and their values, the best on top
    assert {label.get_text() for label in bars.get_yticklabels()} == set(MODELS)
    widths = [patch.get_extents().width for patch in bars.patches]
    assert widths == sorted(widths)
    assert significance.figure is bars.figure


def test_ranks_under_two_models(scores: ScoreTable) -> None:
    """Witness: the order of the scores themselves."""
    first, *_ = plot.ranks(scores)
    x, y = first.lines[1].get_data()
    for drawn, values in ((x, scores.log_probs[:, 0]), (y, scores.log_probs[:, 1])):
        np.testing.assert_array_equal(np.argsort(drawn), np.argsort(values))
    cells, _scale = plot.agreement(scores)
    assert len(cells.texts) == 6  # three models with two others


def test_a_single_model_has_no_ranks_to_compare(scores: ScoreTable) -> None:
    single = ScoreTable(scores.sentences, ("a",), scores.log_probs[:, :1])
    with pytest.raises(InputError, match="at least 2 models"):
        plot.ranks(single)


def test_a_figure_that_there_is_not_is_named_with_those_that_there_are(
    analysis: Analysis, drawn: list[tuple[str, Figure]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "drawings", lambda *_: iter(drawn))
    with pytest.raises(InputError, match=r"no figure 'rank'.*reliability"):
        plot.analysis(analysis, "rank")
    with pytest.raises(InputError, match="No trial compares 'a' with 'z'"):
        plot.analysis(analysis, "ranks", pair=("a", "z"))
    assert not plt.get_fignums()


def test_benchmarks_and_designs_have_theirs() -> None:
    judgements, sentence_scores = simulated(30, 2)
    evaluation = evaluate_acceptability(judgements, sentence_scores)
    assert len(plot.acceptability(evaluation)) == 2
    assert len(plot.acceptability(evaluation, "correlations")) == 2
    natural = stimuli.natural(36)
    design = build_design((), (), natural, groups=3, random_per_group=2, catch_per_group=2)
    assert len(plot.design(design, natural)) == 5


def test_answers_of_no_person_are_said_to_be_that(analysis: Analysis) -> None:
    """Witness: the same answers, with and without the name of who made them."""
    plot.analysis(analysis, "accuracy-random-natural")
    assert plt.gcf().get_supxlabel() == ""
    made = simulate(MODELS, groups=(3, 3), conditions=(Condition.RANDOM_NATURAL,))
    responses = [replace(response, simulated=True) for response in made.responses]
    found = analyze(made.trials, responses, made.scores, sampling=UNSAMPLED)
    plot.analysis(found, "accuracy-random-natural")
    assert "Artificial participants" in plt.gcf().get_supxlabel()
