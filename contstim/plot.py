"""The figures of reports, as axes of matplotlib that you can change.

Every function returns all axes of one figure, from the upper left; a heat map's are the map and
its scale. Notebooks show the figure by themselves, other programs by `matplotlib.pyplot.show`;
`axes[0].figure.savefig` writes it. Where a report has several figures, they are asked for by the
names that their files have in its folder `figures/`. Titles stand at the left::

    bars, significance = contstim.plot.analysis(result, "accuracy-random-natural")
    bars.set_title("Random pairs", loc="left")
    bars.figure.savefig("random.pdf")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.reporting.canvas import ORANGE, SIZE, styled, wrapped

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
    """The share of pairs of sentences that two models order alike, a cell for each two models.

    Args:
        scores: what `score_sentences` returned, or `ScoreTable.read` read.
    """
    from contstim.reporting.heat_map import agreement_map

    return _by_pyplot(lambda: agreement_map(scores))


def ranks(scores: ScoreTable) -> list[Axes]:
    """Every sentence at its ranks under two models, a panel for each two (the first twelve).

    Args:
        scores: of two models or more.

    Raises:
        InputError: the scores are of a single model.
    """
    from contstim.evaluation.comparison import ranks_figure

    if len(scores.models) < 2:
        raise InputError("Ranks are drawn under two models or more; the scores are of one.")
    return _by_pyplot(lambda: ranks_figure(scores))


def design(design: Design, text: Iterable[Sentence]) -> list[Axes]:
    """Trials by group and condition, sentences by source, and the balance between sides.

    Args:
        design: what `build_design` returned.
        text: sentences in which word frequencies are counted, such as the training text.
    """
    from contstim.experiments.design.summary import summarise, summary_figure
    from contstim.words.frequencies import WordFrequencies

    return _by_pyplot(lambda: summary_figure(summarise(design, WordFrequencies.of(text))))


def power(power: DesignPower) -> list[Axes]:
    """For each scope, the smallest difference of accuracies found, by participants.

    Args:
        power: what `design_power` returned.
    """
    from contstim.experiments.design.power_report import power_figure

    return _by_pyplot(lambda: power_figure(power))


def analysis(
    analysis: Analysis,
    name: str = "",
    *,
    pair: tuple[str, str] | None = None,
) -> list[Axes]:
    """A figure of an analysis; answers of artificial participants are said to be that below it.

    Args:
        analysis: what `analyze` returned.
        name: `accuracy-` and any scope but `overall`, for which it is `signed-rank-cosine-overall`
            (of choices `accuracy-overall`), the default;
            `agreement-random-natural`; `dominance-` and a condition; `roles-natural-synthetic`;
            `ranks`; `reliability`.
        pair: the two models of `ranks`; by default the two rivals most consistent with people.

    Raises:
        InputError: the analysis has no such figure, or no trial sets the pair against each other.
    """
    from contstim.experiments.analysis.figures import drawings, require_rivals
    from contstim.experiments.analysis.measures import measures_of

    if pair:
        require_rivals(analysis.ratings.trials, pair)
    overall = f"{measures_of(analysis.ratings.scale)[-1].name}-overall"

    def drawn() -> Figure:
        figure = _named(name or overall, drawings(analysis, pair))
        if analysis.origin.warning:
            text = wrapped(analysis.origin.warning, figure.get_figwidth())
            figure.supxlabel(text, color=ORANGE, weight="bold", size=SIZE)
        return figure

    return _by_pyplot(drawn)


def minimal_pairs(evaluation: MinimalPairEvaluation, name: str) -> list[Axes]:
    """A figure of an evaluation on minimal pairs.

    Args:
        evaluation: what `evaluate_minimal_pairs` returned.
        name: `phenomena-full-sentence`, or another way to compare pairs than by full sentences;
            `correlations`; `profile`.

    Raises:
        InputError: the evaluation has no such figure.
    """
    from contstim.evaluation.minimal_pair_report import minimal_pair_figures

    return _by_pyplot(lambda: _named(name, minimal_pair_figures(evaluation).items()))


def acceptability(evaluation: AcceptabilityEvaluation, name: str = "scatter") -> list[Axes]:
    """A figure of an evaluation on judgements of acceptability.

    Args:
        evaluation: what `evaluate_acceptability` returned.
        name: `scatter`, judgements against scores; or `correlations` of differences within pairs.

    Raises:
        InputError: there is no such figure.
    """
    from contstim.evaluation.acceptability_report import acceptability_figures

    return _by_pyplot(lambda: _named(name, acceptability_figures(evaluation).items()))


def desiderata(desiderata: Desiderata) -> list[Axes]:
    """Scores against length, frequency and, where there is one, the reference, for each model.

    Args:
        desiderata: what `evaluate_desiderata` returned.
    """
    from contstim.evaluation.desiderata_report import desiderata_figure

    return _by_pyplot(lambda: desiderata_figure(desiderata))


def _named(name: str, figures: Iterable[tuple[str, Figure]]) -> Figure:
    """The first figure of a name; what would follow it is not drawn."""
    others = []
    for other, figure in figures:
        if other == name:
            return figure
        others.append(other)
    raise InputError(f"There is no figure {name!r} here; there are {', '.join(others)}.")


def _by_pyplot(make: Callable[[], Figure]) -> list[Axes]:
    """The axes of a figure that is made in the style of reports, and that pyplot shows."""
    from matplotlib import pyplot as plt

    with styled():
        figure = make()
        figure.draw_without_rendering()  # ticks get the style's type only while it is in force
        plt.figure(figure)
    return figure.axes
