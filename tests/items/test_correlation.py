"""Correlations against NumPy and SciPy, and undefined correlations."""

import math

import numpy as np
import pytest
from scipy import stats

from contstim.items.correlation import pearson, pearson_matrix, pearson_with_interval, spearman

X = np.array([1.0, 4.0, 2.0, np.nan, 3.0, 9.0, -np.inf])
Y = np.array([2.0, 3.0, 2.0, 7.0, 5.0, 5.0, 1.0])
FINITE_ROWS = [0, 1, 2, 4, 5]


def test_correlations_use_rows_with_two_finite_values() -> None:
    """External witnesses: numpy.corrcoef and scipy.stats.spearmanr on these rows."""
    assert pearson(X, Y) == pytest.approx(
        np.corrcoef(X[FINITE_ROWS], Y[FINITE_ROWS])[0, 1], abs=1e-14
    )
    assert spearman(X, Y) == pytest.approx(
        stats.spearmanr(X[FINITE_ROWS], Y[FINITE_ROWS]).statistic, abs=1e-14
    )
    result = pearson_with_interval(X, Y)
    assert (result["r"], result["n"]) == (pearson(X, Y), 5)


def test_interval_is_fishers() -> None:
    """External witness: the inverse hyperbolic tangent of r has standard error 1 / sqrt(n - 3)."""
    r, low, high, n = pearson_with_interval(X, Y).values()
    half_width = stats.norm.ppf(0.975) / math.sqrt(n - 3)
    ends = [math.tanh(math.atanh(r) + side * half_width) for side in (-1, 1)]
    assert (low, high) == pytest.approx(ends, abs=1e-12)


def test_matrix_contains_the_correlation_of_all_pairs_of_columns() -> None:
    columns = np.stack([X, Y, -X, np.ones(7)], axis=1)
    matrix = pearson_matrix(columns)
    assert matrix[0, 1] == matrix[1, 0] == pearson(X, Y)
    assert matrix[0, 2] == pytest.approx(-1, abs=1e-15)
    assert np.isnan(matrix[3]).all()


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([], []),
        ([1.0], [2.0]),
        ([1.0, 2.0, np.nan], [2.0, np.nan, 1.0]),
        ([1.0, 1.0, 1.0, 1.0], [2.0, 3.0, 1.0, 1.0]),
        ([1.0, 2.0, 3.0, np.inf], [4.0, 4.0, 4.0, 1.0]),
    ],
)
def test_too_few_or_constant_values_have_no_correlation(x: list[float], y: list[float]) -> None:
    columns = np.array(x), np.array(y)
    assert math.isnan(pearson(*columns))
    assert math.isnan(spearman(*columns))
    assert math.isnan(pearson_with_interval(*columns)["r"])


def test_fewer_rows_than_the_minimum_have_no_correlation() -> None:
    """Two rows are on a line; an interval needs four."""
    x, y = np.array([1.0, 2.0, 4.0]), np.array([5.0, 3.0, 2.0])
    assert pearson(x[:2], y[:2]) == -1
    assert math.isnan(pearson(x[:2], y[:2], fewest=3))
    assert math.isnan(pearson_with_interval(x, y)["low"])
