"""Correlations with length, frequency and a causal model; what splitting a word does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.correlation import Correlation
from contstim.tables import columns_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import BoolArray, FloatArray


def correlation_columns(name: str, correlations: Sequence[Correlation]) -> dict[str, list[Any]]:
    """The columns NAME_r, NAME_low, NAME_high and NAME_n of a table."""
    columns = columns_of(Correlation, correlations)
    return {f"{name}_{field}": cells for field, cells in columns.items()}


@dataclass(frozen=True)
class Splitting:
    """Effect on a word's score of being cut into several tokens.

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
        if not 0 < share < 1:  # all words are alike: there is nothing to compare
            mean = float(scores.mean())
            single, several = (math.nan, mean) if share else (mean, math.nan)
            return cls(share, single, several, math.nan, math.nan)
        from statsmodels.api import OLS, add_constant

        single, several = float(scores[~split].mean()), float(scores[split].mean())
        # (n_words, 3): constant, frequency, 1 for a word that is cut
        design = add_constant(np.stack([zipfs, split], axis=1), has_constant="add")
        # splitting may follow from frequency alone; and three coefficients need a fourth word
        if np.linalg.matrix_rank(design) < 3 or len(scores) <= 3:
            return cls(share, single, several, math.nan, math.nan)
        fit = OLS(scores, design).fit()
        return cls(share, single, several, float(fit.params[2]), float(fit.bse[2]))
