"""Results of an evaluation: criteria met, correlations, fits, and pairs that set models apart."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import TYPE_CHECKING

import numpy as np

from contstim.correlation import pearson, pearson_matrix, spearman
from contstim.evaluation.acceptability.evaluation import PEOPLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import FloatArray
    from contstim.evaluation.acceptability.evaluation import AcceptabilityEvaluation


@dataclass(frozen=True)
class CriterionShare:
    """Number of pairs of a group that meet a criterion under a model.

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
class Discordant:
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


@dataclass(frozen=True)
class DiscordantCount:
    """Number of pairs that one side passes and the other fails.

    Attributes:
        at: as of `Discordant`.
        passes: as of `Discordant`.
        fails: as of `Discordant`.
        pairs: how many.
        disputed: how many of them people judge the other way round than experts.
    """

    at: str
    passes: str
    fails: str
    pairs: int
    disputed: int


def criterion_shares(
    evaluation: AcceptabilityEvaluation, by: str = ""
) -> tuple[CriterionShare, ...]:
    """Shares of pairs that meet each criterion.

    Args:
        evaluation: of pairs.
        by: `phenomenon` or `source` for a row each, in the order of their first pair; else all.
    """
    groups: dict[tuple[str, str], list[int]] = {}  # (source, phenomenon) -> rows of pairs
    for row, pair in enumerate(evaluation.pairs):
        name = (pair.source if by else "", pair.phenomenon if by == "phenomenon" else "")
        groups.setdefault(name, []).append(row)
    # by criterion, (n_pairs, n_models)
    met = {criterion.name: evaluation.met(criterion) for criterion in evaluation.criteria}
    return tuple(
        CriterionShare(
            *name,
            model,
            criterion,
            len(rows),
            int(passed[rows, column].sum()),
            int(evaluation.disputed[rows].sum()),
        )
        for name, rows in groups.items()
        for column, model in enumerate(evaluation.models)
        for criterion, passed in met.items()
    )


def delta_correlations(
    evaluation: AcceptabilityEvaluation,
) -> tuple[tuple[str, ...], FloatArray]:
    """Names, people first, and Pearson's r of their deltas over pairs, (n, n).

    It is nan where deltas are constant, and where there are fewer than two pairs.
    """
    names = (PEOPLE, *evaluation.models)
    return names, pearson_matrix(np.column_stack([evaluation.people, evaluation.deltas]))


def fits(evaluation: AcceptabilityEvaluation) -> tuple[Fit, ...]:
    """A least-squares line and correlations for each model, over all sentences that have both."""
    from scipy.stats import linregress

    judgements = evaluation.sentence_judgements
    lines = []
    for model, scores in zip(evaluation.models, evaluation.sentence_scores.T, strict=True):
        both = ~(np.isnan(scores) | np.isnan(judgements))  # (n_sentences,)
        x, y = scores[both], judgements[both]
        r, slope, intercept = pearson(x, y), math.nan, math.nan
        if not math.isnan(r):  # else a column does not vary, and no line is the best
            line = linregress(x, y)
            slope, intercept = float(line.slope), float(line.intercept)
        lines.append(Fit(model, len(x), slope, intercept, r, spearman(x, y)))
    return tuple(lines)


def discordant_models(evaluation: AcceptabilityEvaluation) -> tuple[Discordant, ...]:
    """Pairs that meet a criterion under one model and not under another, for every two models."""
    return tuple(
        Discordant(int(row), passes, fails, criterion.name)
        for criterion in evaluation.criteria
        for met in [evaluation.met(criterion)]  # (n_pairs, n_models)
        for (i, passes), (j, fails) in permutations(enumerate(evaluation.models), 2)
        for row in np.flatnonzero(met[:, i] & ~met[:, j])
    )


def discordant_criteria(evaluation: AcceptabilityEvaluation) -> tuple[Discordant, ...]:
    """Pairs that meet the BLiMP criterion and fail the ADC at a δ, or the other way round.

    Where there is no BLiMP criterion, each δ is compared with each other one.
    """
    blimp = [criterion for criterion in evaluation.criteria if criterion.delta is None]
    adc = [criterion for criterion in evaluation.criteria if criterion.delta is not None]
    rivals = [(blimp[0], rival) for rival in adc] if blimp else list(combinations(adc, 2))
    met = {criterion: evaluation.met(criterion) for criterion in evaluation.criteria}
    return tuple(
        Discordant(int(row), passes.name, fails.name, model)
        for column, model in enumerate(evaluation.models)
        for pair in rivals
        for passes, fails in (pair, pair[::-1])
        for row in np.flatnonzero(met[passes][:, column] & ~met[fails][:, column])
    )


def count_discordant(
    discordant: Sequence[Discordant], evaluation: AcceptabilityEvaluation
) -> tuple[DiscordantCount, ...]:
    """Number of pairs of each kind, in the order of the first of each."""
    # a counter remembers the order in which its keys came
    kinds = [(pair.at, pair.passes, pair.fails) for pair in discordant]
    disputed = Counter(
        kind for kind, pair in zip(kinds, discordant, strict=True) if evaluation.disputed[pair.pair]
    )
    return tuple(DiscordantCount(*kind, n, disputed[kind]) for kind, n in Counter(kinds).items())
