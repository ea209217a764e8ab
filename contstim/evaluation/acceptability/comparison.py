"""How models and people compare: correlations, fits, and the pairs that set them apart."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import TYPE_CHECKING

import numpy as np

from contstim.evaluation.acceptability.evaluation import PEOPLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contstim.arrays import BoolArray, FloatArray
    from contstim.evaluation.acceptability.criteria import Criterion
    from contstim.evaluation.acceptability.evaluation import Evaluation


@dataclass(frozen=True)
class Share:
    """How many pairs of a group meet a criterion under a model.

    Attributes:
        source: the collection; empty where there is one only.
        phenomenon: what the pairs are about; empty for all.
        model: whose deltas.
        criterion: what is asked.
        pairs: how many there are.
        met: how many meet the criterion.
        disputed: how many of them people judge the other way round than experts.
    """

    source: str
    phenomenon: str
    model: str
    criterion: str
    pairs: int
    met: int
    disputed: int

    @property
    def share(self) -> float:
        """Met / pairs."""
        return self.met / self.pairs


@dataclass(frozen=True)
class Fit:
    """A model's scores of sentences against people's judgements of them.

    Attributes:
        model: whose scores.
        sentences: how many have both.
        slope: of the line by least squares, judgement units for a unit of score.
        intercept: of that line.
        pearson: the correlation, nan where one of the two does not vary.
        spearman: the correlation of ranks.
    """

    model: str
    sentences: int
    slope: float
    intercept: float
    pearson: float
    spearman: float


@dataclass(frozen=True)
class Apart:
    """A pair that one side passes and the other fails.

    Attributes:
        pair: its number among the evaluated pairs.
        passes: the model or criterion that it passes.
        fails: the model or criterion that it fails.
        at: the criterion under which models differ, or the model under which criteria do.
    """

    pair: int
    passes: str
    fails: str
    at: str


def shares(found: Evaluation, by: str = "") -> list[Share]:
    """How often each criterion is met.

    Args:
        found: an evaluation.
        by: `phenomenon` or `source` for a row each, in the order of their first pair; else all.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for row, pair in enumerate(found.pairs):
        name = (pair.source if by else "", pair.phenomenon if by == "phenomenon" else "")
        groups.setdefault(name, []).append(row)
    met = {criterion.name: found.met(criterion) for criterion in found.criteria}
    return [
        Share(
            *name,
            model,
            criterion,
            len(rows),
            int(passed[rows, column].sum()),
            int(found.disputed[rows].sum()),
        )
        for name, rows in groups.items()
        for column, model in enumerate(found.models)
        for criterion, passed in met.items()
    ]


def delta_correlations(found: Evaluation) -> tuple[tuple[str, ...], FloatArray]:
    """Names, people first, and Pearson's r of their deltas over pairs, (n, n).

    It is nan where deltas are constant, and where there are fewer than two pairs.
    """
    names = (PEOPLE, *found.models)
    if len(found.pairs) < 2:
        return names, np.full((len(names), len(names)), np.nan)
    columns = np.column_stack([found.people, found.deltas])
    with np.errstate(divide="ignore", invalid="ignore"):
        matrix: FloatArray = np.atleast_2d(np.corrcoef(columns, rowvar=False))
    return names, matrix


def fits(found: Evaluation) -> list[Fit]:
    """A least-squares line and correlations for each model, over all sentences that have both."""
    return [
        _fit(model, found.sentence_scores[:, column], found.sentence_judgements)
        for column, model in enumerate(found.models)
    ]


def _fit(model: str, scores: FloatArray, judgements: FloatArray) -> Fit:
    from scipy.stats import linregress, spearmanr

    both = ~(np.isnan(scores) | np.isnan(judgements))
    x, y = scores[both], judgements[both]
    if len(x) < 2 or not np.ptp(x) or not np.ptp(y):
        return Fit(model, len(x), *[float("nan")] * 4)
    line, ranks = linregress(x, y), spearmanr(x, y)
    values = (line.slope, line.intercept, line.rvalue, ranks.statistic)
    return Fit(model, len(x), *map(float, values))


def models_apart(found: Evaluation) -> Iterator[Apart]:
    """Pairs that meet a criterion under one model and not under another, for every two models."""
    for criterion in found.criteria:
        met = found.met(criterion)
        for (i, first), (j, second) in permutations(enumerate(found.models), 2):
            yield from _apart(met[:, i] & ~met[:, j], first, second, criterion.name)


def criteria_apart(found: Evaluation) -> Iterator[Apart]:
    """Pairs that meet the BLiMP criterion and fail the ADC at a δ, or the other way round.

    Where there is no BLiMP criterion, each δ is compared with each other one.
    """
    for column, model in enumerate(found.models):
        for first, second in _rivals(found.criteria):
            one, other = (found.met(criterion)[:, column] for criterion in (first, second))
            yield from _apart(one & ~other, first.name, second.name, model)
            yield from _apart(other & ~one, second.name, first.name, model)


def _rivals(criteria: tuple[Criterion, ...]) -> list[tuple[Criterion, Criterion]]:
    blimp = [one for one in criteria if one.delta is None]
    adc = [one for one in criteria if one.delta is not None]
    return [(blimp[0], one) for one in adc] if blimp else list(combinations(adc, 2))


def _apart(rows: BoolArray, passes: str, fails: str, at: str) -> Iterator[Apart]:
    for row in np.flatnonzero(rows):
        yield Apart(int(row), passes, fails, at)


def counted(apart: list[Apart], found: Evaluation) -> list[tuple[str, str, str, int, int]]:
    """Rows of (at, passes, fails, pairs, of these disputed)."""
    kinds = [(one.at, one.passes, one.fails) for one in apart]
    disputed = Counter(
        kind for kind, one in zip(kinds, apart, strict=True) if found.disputed[one.pair]
    )
    return [(*kind, n, disputed[kind]) for kind, n in Counter(kinds).items()]
