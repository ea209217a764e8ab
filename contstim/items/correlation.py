"""Correlations of two columns.

All functions use only rows in which both values are finite. A correlation is nan if there are too
few such rows, or if a column is constant in these rows.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from contstim.files.arrays import FloatArray

_MIN_ROWS = 2  # r of one row is undefined; r of two rows is always 1 or -1
_MIN_ROWS_FOR_INTERVAL = 4  # Fisher's z has the standard error 1 / sqrt(n - 3), so n must exceed 3


def pearson_with_interval(x: FloatArray, y: FloatArray) -> dict[str, float]:
    """Compute Pearson's r between two columns, (n_rows,) each, and its 95 % confidence interval.

    Returns:
        `r`; `low` and `high`, the ends of the interval by Fisher's transformation; and `n`, the
        number of rows used. `r`, `low` and `high` are nan if n < 4 or a column is constant.
    """
    x, y = _select_finite(x, y)
    r = low = high = math.nan
    if result := _correlate(x, y, _MIN_ROWS_FOR_INTERVAL):
        r, (low, high) = float(result.statistic), map(float, result.confidence_interval(0.95))
    return {"r": r, "low": low, "high": high, "n": len(x)}


def pearson(x: FloatArray, y: FloatArray, *, fewest: int = _MIN_ROWS) -> float:
    """Compute Pearson's r between two columns, (n_rows,) each; nan for fewer rows than `fewest`."""
    result = _correlate(*_select_finite(x, y), fewest)
    return float(result.statistic) if result else math.nan


def spearman(x: FloatArray, y: FloatArray) -> float:
    """Compute Pearson's r between the average ranks of two columns."""
    from scipy.stats import rankdata

    # Select rows before ranking, because omitted rows must not change the ranks of other rows
    x, y = _select_finite(x, y)
    return pearson(rankdata(x), rankdata(y))


def pearson_matrix(columns: FloatArray, *, fewest: int = _MIN_ROWS) -> FloatArray:
    """Compute Pearson's r between every two columns of (n_rows, n_columns).

    The result is (n_columns, n_columns). Pairs of columns with fewer than `fewest` usable rows have
    the value nan.
    """
    n = columns.shape[1]
    matrix = np.full((n, n), np.nan)
    for i in range(n):
        # The diagonal is not always 1: it is nan for a constant column
        for j in range(i, n):
            matrix[i, j] = matrix[j, i] = pearson(columns[:, i], columns[:, j], fewest=fewest)
    return matrix


def _select_finite(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    both = np.isfinite(x) & np.isfinite(y)
    return x[both], y[both]


def _correlate(x: FloatArray, y: FloatArray, fewest: int) -> Any:
    from scipy.stats import pearsonr

    if len(x) < fewest or not (np.ptp(x) and np.ptp(y)):
        return None
    with warnings.catch_warnings(category=RuntimeWarning, action="ignore"):
        return pearsonr(x, y)  # warns if a column is nearly constant
