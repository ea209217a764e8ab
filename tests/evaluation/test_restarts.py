"""Matthews correlations and majorities of several classifiers.

Witnesses: Pearson's r of two binary variables, which Matthews correlation is; SciPy's contingency
table; and votes counted by hand.
"""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import contingency

from contstim.evaluation.restarts import majority, matthews

CELLS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=60)


@given(CELLS)
def test_matthews_is_pearsons_r_of_two_classes(cells: list[tuple[bool, bool]]) -> None:
    labels, predicted = np.array(cells, np.bool_).T
    assume(0 < labels.sum() < len(labels) and 0 < predicted.sum() < len(labels))
    assert matthews(labels, predicted) == pytest.approx(np.corrcoef(labels, predicted)[0, 1])
    table = contingency.crosstab(labels, predicted).count
    assert abs(matthews(labels, predicted)) == pytest.approx(
        contingency.association(table, method="cramer")
    )


def test_matthews_by_hand() -> None:
    labels = np.array([1, 1, 1, 1, 0, 0, 0, 0], np.bool_)
    predicted = np.array([1, 1, 1, 0, 1, 1, 0, 0], np.bool_)
    assert matthews(labels, predicted) == pytest.approx((3 * 2 - 2 * 1) / math.sqrt(5 * 4 * 4 * 3))
    assert matthews(labels, labels) == 1
    assert matthews(labels, ~labels) == -1
    assert matthews(labels, np.ones(8, np.bool_)) == 0


@given(st.lists(st.lists(st.floats(0.01, 0.99), min_size=3, max_size=3), min_size=1))
def test_an_odd_number_of_classifiers_votes(rows: list[list[float]]) -> None:
    expected = [Counter(p > 0.5 for p in row).most_common(1)[0][0] for row in rows]
    assert majority(np.array(rows)).tolist() == expected


def test_classifiers_that_tie_say_what_they_are_surer_of() -> None:
    probabilities = np.array([[0.9, 0.2], [0.6, 0.1], [0.7, 0.8], [0.1, 0.4]])
    assert majority(probabilities).tolist() == [True, False, True, False]
