"""Figures of an analysis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.agreement import rivals
from contstim.experiments.analysis.evaluation import ACCURACY, measures_of
from contstim.experiments.analysis.outputs.bars import consistency_figure
from contstim.experiments.analysis.outputs.scatter import scatter_figure
from contstim.experiments.analysis.outputs.sureness import sureness_figure
from contstim.experiments.analysis.scopes import Scope
from contstim.reporting.heat_map import heat_map
from contstim.reporting.names import short_names
from contstim.stimuli import CONTROVERSIAL, Condition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from matplotlib.figure import Figure

    from contstim.experiments.analysis.effects import Result
    from contstim.experiments.analysis.run import Analysis
    from contstim.stimuli import Trial

Pair: TypeAlias = "tuple[str, str] | None"
"""Two models whose sentences to draw; None: the most consistent rivals."""

_NAMES = {
    Condition.RANDOM_NATURAL: "random natural pairs",
    Condition.NATURAL_CONTROVERSIAL: "natural controversial pairs",
    Condition.NATURAL_SYNTHETIC: "natural vs. synthetic",
    Condition.SYNTHETIC_SYNTHETIC: "synthetic controversial pairs",
}


@dataclass(frozen=True)
class FigureKind:
    """A kind of figure.

    Attributes:
        name: heading on the page; the names of its figures begin with it and a hyphen, or are it.
        about: what it shows, said under the heading; empty where the page shows it elsewhere.
        draw: figures by the names of their files, from an analysis and two models to look at.
    """

    name: str
    about: str
    draw: Callable[[Analysis, Pair], Iterator[tuple[str, Figure]]]


def drawings(
    analysis: Analysis, pair: tuple[str, str] | None = None
) -> Iterator[tuple[str, Figure]]:
    """Names and figures of all kinds that there are trials for.

    Args:
        analysis: what `analyze` returned.
        pair: two models whose sentences to draw; by default the most consistent rivals.
    """
    for kind in FIGURES:
        yield from kind.draw(analysis, pair)


def names_in_figures(analysis: Analysis) -> dict[str, str]:
    """Names of models in figures: their own, or shorter where these have folders or are long."""
    models = analysis.ratings.models
    return dict(zip(models, short_names(models), strict=True))


def shown(analysis: Analysis) -> list[Result]:
    """First results: accuracy by condition and, over all trials, the last measure there is."""
    overall = measures_of(analysis.ratings.scale)[-1]
    return [
        result
        for result in analysis.results
        if result.measure is (overall if result.scope is Scope.OVERALL else ACCURACY)
    ]


def best_rivals(analysis: Analysis) -> tuple[str, str] | None:
    """The most consistent two models that some trial sets against each other."""
    overall = {
        row.model: row.value
        for row in analysis.result(Scope.OVERALL, measures_of(analysis.ratings.scale)[-1]).models
    }
    pairs = [pair for c in analysis.dominance for pair in rivals(analysis.ratings, c)]
    return max(pairs, key=lambda pair: sum(overall[m] for m in pair), default=None)


def require_rivals(trials: Iterable[Trial], pair: tuple[str, str]) -> None:
    """Make sure that there is something to draw.

    Raises:
        InputError: no trial sets the pair against each other.
    """
    met = {frozenset((t.model_1, t.model_2)) for t in trials if t.condition in CONTROVERSIAL}
    if frozenset(pair) not in met:
        raise InputError(
            f"No trial sets {pair[0]!r} against {pair[1]!r}; those that were are "
            f"{'; '.join(sorted(' and '.join(sorted(other)) for other in met)) or 'none'}."
        )


def _consistency(analysis: Analysis, _pair: Pair) -> Iterator[tuple[str, Figure]]:
    names = names_in_figures(analysis)
    for result in shown(analysis):
        name = f"{result.measure.name}-{result.scope}"
        yield name, consistency_figure(result, analysis.sampling.units, names)


def _agreement(analysis: Analysis, _pair: Pair) -> Iterator[tuple[str, Figure]]:
    models, random = [*names_in_figures(analysis).values()], Condition.RANDOM_NATURAL
    if random in analysis.agreement:
        title = f"models that prefer the same sentence (%), {_NAMES[random]}"
        yield (
            f"agreement-{random}",
            heat_map(models, models, analysis.agreement[random], title=title),
        )


def _dominance(analysis: Analysis, _pair: Pair) -> Iterator[tuple[str, Figure]]:
    models = [*names_in_figures(analysis).values()]
    for condition, shares in analysis.dominance.items():
        title = f"people side with the row's model (%), {_NAMES[condition]}"
        figure = heat_map(
            models,
            models,
            shares,
            title=title,
            middle=0.5,
            row_label="people side with",
            column_label="against",
        )
        yield f"dominance-{condition}", figure


def _roles(analysis: Analysis, _pair: Pair) -> Iterator[tuple[str, Figure]]:
    if not analysis.roles:
        return
    models, places = [*names_in_figures(analysis).values()], analysis.ratings.models
    shares = np.full((len(models), len(models)), np.nan)  # (accepting, rejecting)
    for role in analysis.roles:
        cell = places.index(role.accept), places.index(role.reject)
        shares[cell] = role.prefer_synthetic / role.ratings
    title = "people prefer the synthetic sentence (%)"
    rows, columns = "accepts the synthetic sentence", "rejects it"
    yield (
        "roles-natural-synthetic",
        heat_map(models, models, shares, title=title, row_label=rows, column_label=columns),
    )


def _ranks(analysis: Analysis, pair: Pair) -> Iterator[tuple[str, Figure]]:
    drawn = pair or best_rivals(analysis)
    if drawn:
        names = names_in_figures(analysis)
        yield "ranks", scatter_figure(analysis.ratings, analysis.scores, drawn, names)


def _reliability(analysis: Analysis, _pair: Pair) -> Iterator[tuple[str, Figure]]:
    if figure := sureness_figure(analysis.ratings):
        yield "reliability", figure


FIGURES = (
    FigureKind("consistency", "", _consistency),
    FigureKind(
        "agreement",
        "How often two models prefer the same sentence. Where models agree, people cannot tell "
        "which is better.",
        _agreement,
    ),
    FigureKind(
        "dominance",
        "Trials made to set two models against each other: how often people side with the row's.",
        _dominance,
    ),
    FigureKind(
        "roles",
        "How often people prefer a synthetic sentence to the natural one it came from.",
        _roles,
    ),
    FigureKind(
        "ranks",
        "The sentences of two rival models, by rank under each. A line joins the two sentences of "
        "a trial; blue circles: preferred by most people; orange squares: the other.",
        _ranks,
    ),
    FigureKind("reliability", "", _reliability),
)
"""All kinds of figures, in their order on the page."""
