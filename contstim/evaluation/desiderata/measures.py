"""Correlations with length, frequency and a causal model; what splitting a word does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from contstim.arrays import BoolArray, FloatArray

_FEWEST = 4  # an interval needs more than three points


@dataclass(frozen=True)
class Correlation:
    """Pearson's r with its 95 % interval (Fisher); nan where it is not defined."""

    r: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, x: FloatArray, y: FloatArray) -> Correlation:
        """Between two columns (n,); rows where one of them is not finite are left out."""
        from scipy.stats import pearsonr

        use = np.isfinite(x) & np.isfinite(y)
        x, y = np.asarray(x, np.float64)[use], np.asarray(y, np.float64)[use]
        if len(x) < _FEWEST or not np.ptp(x) or not np.ptp(y):
            return cls(math.nan, math.nan, math.nan, len(x))
        found = pearsonr(x, y)
        low, high = found.confidence_interval(0.95)
        return cls(float(found.statistic), float(low), float(high), len(x))


@dataclass(frozen=True)
class Splitting:
    """What being cut into several tokens does to a word's score.

    Attributes:
        share: of the words that are cut.
        single: mean score of the words that are one token, nats.
        several: mean score of the others, nats.
        advantage: how much higher a word of several tokens scores than one of one token that is as
            frequent, nats: its coefficient in a linear regression of score on frequency and
            splitting.
        standard_error: of the advantage.
    """

    share: float
    single: float
    several: float
    advantage: float
    standard_error: float

    @classmethod
    def of(cls, scores: FloatArray, zipfs: FloatArray, split: BoolArray) -> Splitting:
        """From words' scores, log frequencies, and whether they are cut, (n_words,) each."""
        share = float(split.mean())
        if not 0 < share < 1:
            mean = float(scores.mean())
            one, other = (math.nan, mean) if share else (mean, math.nan)
            return cls(share, one, other, math.nan, math.nan)
        single, several = float(scores[~split].mean()), float(scores[split].mean())
        return cls(share, single, several, *_advantage(scores, zipfs, split))


def _advantage(scores: FloatArray, zipfs: FloatArray, split: BoolArray) -> tuple[float, float]:
    from statsmodels.api import OLS, add_constant

    design = add_constant(np.stack([zipfs, split], axis=1), has_constant="add")
    if np.linalg.matrix_rank(design) < design.shape[1] or len(scores) <= design.shape[1]:
        return math.nan, math.nan
    fit = OLS(scores, design).fit()
    return float(fit.params[2]), float(fit.bse[2])
