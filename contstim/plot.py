"""Figures of reports, as editable axes of matplotlib.

Every function returns the axes of one figure, in reading order. A heat map has two axes:
the map and its colour scale. Notebooks display the figure. In a script, call
`matplotlib.pyplot.show`. To write the figure, call `axes[0].figure.savefig`. If a report has
several figures, the argument `name` selects a figure by the name of its file, without the suffix.
To replace the title of a figure, set a new title on the left::

    bars, significance = contstim.plot.analysis(result, "accuracy-random-natural")
    bars.set_title("Random pairs", loc="left")
    bars.figure.savefig("random.pdf")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.reporting.canvas import ORANGE, SIZE, agreement_map, styled, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from contstim.evaluation.accuracies import MinimalPairEvaluation
    from contstim.evaluation.criteria import AcceptabilityEvaluation
    from contstim.evaluation.desiderata import Desiderata
    from contstim.experiments.analysis.run import Analysis
    from contstim.experiments.design.building import Design
    from contstim.experiments.design.power import DesignPower
    from contstim.items.scores import ScoreTable
    from contstim.words.sentence import Sentence

__all__ = [
    "acceptability",
    "agreement",
    "analysis",
    "desiderata",
    "design",
    "minimal_pairs",
    "power",
    "ranks",
]


def agreement(scores: ScoreTable) -> list[Axes]:
    """For every two models, plot the share of sentence pairs that both order in the same way."""
    return _draw(lambda: agreement_map(scores))


def ranks(scores: ScoreTable) -> list[Axes]:
    """Plot ranks of sentences; each panel compares two models (at most twelve panels).

    Raises:
        InputError: if there are fewer than two models.
    """
    from contstim.evaluation.comparison import ranks_figure

    if len(scores.models) < 2:
        raise InputError(f"The scores must be of at least 2 models, got {len(scores.models)}.")
    return _draw(lambda: ranks_figure(scores))


def design(design: Design, text: Iterable[Sentence]) -> list[Axes]:
    """Plot trials by group and condition, sentences by source, and the balance of trials.

    The balance compares the mean lengths and word frequencies of the two sentences of a trial. Word
    frequencies are counted in `text`, such as the training text.
    """
    from contstim.experiments.design.summary import summarise, summary_figure
    from contstim.words.frequencies import WordFrequencies

    return _draw(lambda: summary_figure(summarise(design, WordFrequencies.of(text))))


def power(power: DesignPower) -> list[Axes]:
    """Plot the smallest detectable difference of accuracies by number of participants.

    There is a panel for each scope, a set of trials on which models are compared.
    """
    from contstim.experiments.design.power_report import power_figure

    return _draw(lambda: power_figure(power))


def analysis(
    analysis: Analysis, name: str = "", *, pair: tuple[str, str] | None = None
) -> list[Axes]:
    """Plot a figure of an analysis, with a warning below it if participants were artificial.

    Args:
        analysis: analysis from `analyze`.
        name: name of a figure. The default is `signed-rank-cosine-overall`, or for choices
            `accuracy-overall`. Other names are `accuracy-SCOPE` for a set of trials,
            `agreement-random-natural`, `dominance-CONDITION`, `roles-natural-synthetic`, `ranks`
            and `reliability`.
        pair: two models for the figure `ranks`. By default, the two models that are most consistent
            with participants, among the models that trials compare.

    Raises:
        InputError: if the analysis has no such figure, or no trial compares the two models.
    """
    from contstim.experiments.analysis.figures import drawings, require_rivals
    from contstim.experiments.analysis.measures import measures_of

    if pair:
        require_rivals(analysis.ratings.trials, pair)
    overall = f"{measures_of(analysis.ratings.scale)[-1].name}-overall"

    def draw() -> Figure:
        figure = _select_figure(name or overall, drawings(analysis, pair))
        if analysis.origin.warning:
            text = wrapped(analysis.origin.warning, figure.get_figwidth())
            figure.supxlabel(text, color=ORANGE, weight="bold", size=SIZE)
        return figure

    return _draw(draw)


def minimal_pairs(evaluation: MinimalPairEvaluation, name: str) -> list[Axes]:
    """Plot a figure of an evaluation on minimal pairs.

    `name` is `correlations`, `profile`, or `phenomena-METHOD`, such as `phenomena-full-sentence`.

    Raises:
        InputError: if the evaluation has no such figure.
    """
    from contstim.evaluation.minimal_pair_report import minimal_pair_figures

    return _draw(lambda: _select_figure(name, minimal_pair_figures(evaluation).items()))


def acceptability(evaluation: AcceptabilityEvaluation, name: str = "scatter") -> list[Axes]:
    """Plot a figure of an evaluation on acceptability judgements.

    `name` is `scatter` (judgements against scores) or `correlations` (of differences within pairs).

    Raises:
        InputError: if there is no such figure.
    """
    from contstim.evaluation.criteria import acceptability_figures

    return _draw(lambda: _select_figure(name, acceptability_figures(evaluation).items()))


def desiderata(desiderata: Desiderata) -> list[Axes]:
    """Plot the scores of each model against sentence length, word frequency and reference scores.

    Reference scores are scores under a causal model. If the evaluation has no reference scores, the
    panels that compare scores with them are omitted.
    """
    from contstim.evaluation.desiderata import desiderata_figure

    return _draw(lambda: desiderata_figure(desiderata))


def _select_figure(name: str, figures: Iterable[tuple[str, Figure]]) -> Figure:
    """Return the first figure with this name, without drawing later figures."""
    names = []
    for figure_name, figure in figures:
        if figure_name == name:
            return figure
        names.append(figure_name)
    raise InputError(f"There is no figure {name!r}; the figures are {', '.join(names)}.")


def _draw(make: Callable[[], Figure]) -> list[Axes]:
    """Draw a figure in the style of reports, and register it with pyplot."""
    from matplotlib import pyplot as plt

    with styled():
        figure = make()
        figure.draw_without_rendering()  # ticks use the style's font only inside this context
        plt.figure(figure)
    return figure.axes
