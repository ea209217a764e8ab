"""Which figures an analysis has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.agreement import rivals
from contstim.experiments.analysis.evaluation import ACCURACY, COSINE
from contstim.experiments.analysis.figures.bars import consistency_figure
from contstim.experiments.analysis.figures.scatter import scatter_figure
from contstim.experiments.analysis.scopes import Scope
from contstim.reporting.heat_map import heat_map
from contstim.reporting.names import short_names
from contstim.stimuli import CONTROVERSIAL, Condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from matplotlib.figure import Figure

    from contstim.arrays import FloatArray
    from contstim.experiments.analysis.run import Analysis
    from contstim.stimuli import Trial

_NAMES = {
    Condition.RANDOM_NATURAL: "random natural pairs",
    Condition.NATURAL_CONTROVERSIAL: "natural controversial pairs",
    Condition.NATURAL_SYNTHETIC: "natural vs. synthetic",
    Condition.SYNTHETIC_SYNTHETIC: "synthetic controversial pairs",
}


def drawings(
    analysis: Analysis, pair: tuple[str, str] | None = None
) -> Iterator[tuple[str, Figure]]:
    """Names and figures: consistency by scope, pairs of models, the sentences of one pair."""
    names = names_in_figures(analysis)
    for result in analysis.results:
        measure = COSINE if result.scope is Scope.OVERALL else ACCURACY
        if result.measure is measure:
            name = f"{measure.name}-{result.scope}"
            yield name, consistency_figure(result, analysis.sampling.units, names)
    yield from _matrices(analysis)
    drawn = pair or best_rivals(analysis)
    if drawn:
        yield "ranks", scatter_figure(analysis.ratings, analysis.scores, drawn, names)


def names_in_figures(analysis: Analysis) -> dict[str, str]:
    """What figures call each model: its name, or a shorter one where it has folders or is long."""
    models = analysis.ratings.models
    return dict(zip(models, short_names(models), strict=True))


def best_rivals(analysis: Analysis) -> tuple[str, str] | None:
    """The most consistent two models that some trial sets against each other."""
    overall = {one.model: one.value for one in analysis.result(Scope.OVERALL, COSINE).models}
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


def _matrices(analysis: Analysis) -> Iterator[tuple[str, Figure]]:
    models = [*names_in_figures(analysis).values()]
    random = Condition.RANDOM_NATURAL
    if random in analysis.agreement:
        title = f"models that prefer the same sentence (%), {_NAMES[random]}"
        shares = analysis.agreement[random]
        yield f"agreement-{random}", heat_map(models, models, shares, title=title)
    for condition, shares in analysis.dominance.items():
        yield (
            f"dominance-{condition}",
            heat_map(
                models,
                models,
                shares,
                title=f"people side with the row's model (%), {_NAMES[condition]}",
                row_label="people side with",
                column_label="against",
                middle=0.5,
            ),
        )
    if analysis.roles:
        yield (
            "roles-natural-synthetic",
            heat_map(
                models,
                models,
                _role_shares(analysis),
                title="people prefer the synthetic sentence (%)",
                row_label="accepts the synthetic sentence",
                column_label="rejects it",
            ),
        )


def _role_shares(analysis: Analysis) -> FloatArray:
    models = analysis.ratings.models
    shares = np.full((len(models), len(models)), np.nan)
    for one in analysis.roles:
        shares[models.index(one.accept), models.index(one.reject)] = (
            one.prefer_synthetic / one.ratings
        )
    return shares
