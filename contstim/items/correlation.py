"""Correlations of two columns, with one answer where they are not defined: nan.

A row counts where both columns are finite. There is no correlation where fewer rows count than
asked for, or where a column is constant over them.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from contstim.files.arrays import FloatArray

_FEWEST = 2  # rows; two lie on a line, so that r is 1 or -1
_FEWEST_FOR_INTERVAL = 4  # rows: the standard error of Fisher's z is 1 / sqrt(n - 3)


@dataclass(frozen=True)
class Correlation:
    """Pearson's r with its 95 % interval.

    Attributes:
        r: -1 to 1; nan where it, or the interval, is not defined.
        low: lower end of the interval by Fisher's transformation; nan likewise.
        high: its upper end.
        n: rows that count.
    """

    r: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, x: FloatArray, y: FloatArray) -> Correlation:
        """Between two columns, (n_rows,) each; defined from four rows on."""
        from scipy.stats import pearsonr

        x, y = _finite(x, y)
        if not _is_defined(x, y, _FEWEST_FOR_INTERVAL):
            return cls(math.nan, math.nan, math.nan, len(x))
        with warnings.catch_warnings(category=RuntimeWarning, action="ignore"):
            result = pearsonr(x, y)  # warns of columns that are nearly constant
            low, high = result.confidence_interval(0.95)
        return cls(float(result.statistic), float(low), float(high), len(x))


def pearson(x: FloatArray, y: FloatArray, *, fewest: int = _FEWEST) -> float:
    """Pearson's r between two columns, (n_rows,) each; nan below `fewest` rows."""
    from scipy.stats import pearsonr

    x, y = _finite(x, y)
    if not _is_defined(x, y, fewest):
        return math.nan
    with warnings.catch_warnings(category=RuntimeWarning, action="ignore"):
        return float(pearsonr(x, y).statistic)


def spearman(x: FloatArray, y: FloatArray, *, fewest: int = _FEWEST) -> float:
    """Pearson's r between the average ranks of two columns; nan below `fewest` rows."""
    from scipy.stats import rankdata

    # Before ranking: a row that does not count may not shift the ranks of the others
    x, y = _finite(x, y)
    return pearson(rankdata(x), rankdata(y), fewest=fewest)


def pearson_matrix(columns: FloatArray, *, fewest: int = _FEWEST) -> FloatArray:
    """Pearson's r between every two columns, each over the rows that count for these two.

    Args:
        columns: (n_rows, n_columns).
        fewest: rows below which a cell is nan.

    Returns:
        (n_columns, n_columns), symmetric.
    """
    n = columns.shape[1]
    matrix = np.full((n, n), np.nan)
    for i in range(n):
        # i too: a constant column has no correlation, not even with itself
        for j in range(i, n):
            matrix[i, j] = matrix[j, i] = pearson(columns[:, i], columns[:, j], fewest=fewest)
    return matrix


def _finite(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    both = np.isfinite(x) & np.isfinite(y)
    return x[both], y[both]


def _is_defined(x: FloatArray, y: FloatArray, fewest: int) -> bool:
    return len(x) >= fewest and bool(np.ptp(x) and np.ptp(y))
