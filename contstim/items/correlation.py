"""Correlations of two columns; nan where they are not defined.

Only rows with two finite values are used. A correlation is not defined if there are too few such
rows, or if a column is constant over them.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from contstim.files.arrays import FloatArray

_MIN_ROWS = 2  # two points are on a line: r is 1 or -1
_MIN_ROWS_FOR_INTERVAL = 4  # the standard error of Fisher's z is 1 / sqrt(n - 3)


@dataclass(frozen=True)
class Correlation:
    """Pearson's r with its 95 % interval.

    Attributes:
        r: correlation, -1 to 1; nan if it or its interval is not defined.
        low: lower end of the interval by Fisher's transformation, or nan.
        high: upper end of the interval, or nan.
        n: number of rows with two finite values.
    """

    r: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, x: FloatArray, y: FloatArray) -> Correlation:
        """Correlate two columns, (n_rows,) each; defined for at least four rows."""
        from scipy.stats import pearsonr

        x, y = _select_finite(x, y)
        if not _is_defined(x, y, _MIN_ROWS_FOR_INTERVAL):
            return cls(math.nan, math.nan, math.nan, len(x))
        with warnings.catch_warnings(category=RuntimeWarning, action="ignore"):
            result = pearsonr(x, y)  # warns if a column is nearly constant
            low, high = result.confidence_interval(0.95)
        return cls(float(result.statistic), float(low), float(high), len(x))


def pearson(x: FloatArray, y: FloatArray, *, fewest: int = _MIN_ROWS) -> float:
    """Compute Pearson's r between two columns, (n_rows,) each; nan below `fewest` rows."""
    from scipy.stats import pearsonr

    x, y = _select_finite(x, y)
    if not _is_defined(x, y, fewest):
        return math.nan
    with warnings.catch_warnings(category=RuntimeWarning, action="ignore"):
        return float(pearsonr(x, y).statistic)


def spearman(x: FloatArray, y: FloatArray, *, fewest: int = _MIN_ROWS) -> float:
    """Compute Pearson's r between the average ranks of two columns; nan below `fewest` rows."""
    from scipy.stats import rankdata

    # Before ranking, so that rows that are left out do not shift the other ranks
    x, y = _select_finite(x, y)
    return pearson(rankdata(x), rankdata(y), fewest=fewest)


def pearson_matrix(columns: FloatArray, *, fewest: int = _MIN_ROWS) -> FloatArray:
    """Compute Pearson's r between every two columns, over the rows where both are finite.

    Args:
        columns: columns, (n_rows, n_columns).
        fewest: minimum number of rows; a cell with fewer is nan.

    Returns:
        Correlations, (n_columns, n_columns), symmetric.
    """
    n = columns.shape[1]
    matrix = np.full((n, n), np.nan)
    for i in range(n):
        # Also with itself, since a constant column has no correlation
        for j in range(i, n):
            matrix[i, j] = matrix[j, i] = pearson(columns[:, i], columns[:, j], fewest=fewest)
    return matrix


def _select_finite(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    both = np.isfinite(x) & np.isfinite(y)
    return x[both], y[both]


def _is_defined(x: FloatArray, y: FloatArray, fewest: int) -> bool:
    return len(x) >= fewest and bool(np.ptp(x) and np.ptp(y))
