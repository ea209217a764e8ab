"""Results of two rival models on the trials that were made to tell them apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis.agreement import rivals
from contstim.experiments.analysis.evaluation import evaluate
from contstim.experiments.analysis.scopes import pair_mask

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contstim.arrays import FloatArray
    from contstim.experiments.analysis.evaluation import Measure
    from contstim.experiments.analysis.ratings import Ratings
    from contstim.stimuli import Condition


@dataclass(frozen=True)
class PairResult:
    """Means over the participants who saw such trials; ceilings are on the same trials."""

    condition: Condition
    model_1: str
    model_2: str
    measure: str
    value_1: float
    value_2: float
    lower: float
    upper: float
    n_trials: int
    n_ratings: int


def pair_results(ratings: Ratings, condition: Condition, measure: Measure) -> Iterator[PairResult]:
    """A row for each pair of models that a condition sets against each other."""
    for pair in rivals(ratings, condition):
        masks = [pair_mask(g.trials, condition, pair, ratings.models) for g in ratings.groups]
        scores = evaluate(ratings, measure, masks)
        first, second = (ratings.models.index(model) for model in pair)
        # Both models have the same trials here, so the ceilings of the first are those of both.
        yield PairResult(
            condition,
            *pair,
            measure.name,
            _mean(scores.values[:, first]),
            _mean(scores.values[:, second]),
            _mean(scores.lower[:, first]),
            _mean(scores.upper[:, first]),
            sum(int(mask.any(axis=0).sum()) for mask in masks),
            int(scores.n_trials[:, first].sum()),
        )


def _mean(values: FloatArray) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else np.nan
