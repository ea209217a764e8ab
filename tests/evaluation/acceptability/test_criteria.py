"""z-scores and criteria. Witnesses: scipy, and cases worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from contstim.errors import InputError
from contstim.evaluation.acceptability.criteria import Criterion, z_scores

BLIMP, HALF, ONE = Criterion(), Criterion(0.5), Criterion(1)


def test_z_scores_are_those_of_scipy() -> None:
    values = np.random.default_rng(3).normal(-40, 12, size=(50, 3))
    values[4, 1] = np.nan
    expected = stats.zscore(values, axis=0, ddof=0, nan_policy="omit")
    np.testing.assert_allclose(z_scores(values), expected)


def test_constant_values_have_no_z_scores() -> None:
    with pytest.raises(InputError, match="All values are the same"):
        z_scores(np.full((3, 2), 1.5))


@pytest.mark.parametrize(
    ("people", "model", "blimp", "half", "one"),
    [
        (1.0, 1.2, True, True, True),
        (1.0, 1.5, True, False, True),  # strictly less than δ
        (1.0, 2.0, True, False, False),
        (0.2, -0.1, False, False, False),  # near, but in the other direction
        (-0.2, 0.1, True, False, False),  # people dispute the experts
        (-0.2, -0.3, False, True, True),
        (0.0, 0.0, False, True, True),  # a tie fails the BLiMP criterion
        (0.0, 0.1, True, False, False),
        (0.1, 0.0, False, False, False),
    ],
)
def test_criteria_by_hand(people: float, model: float, blimp: bool, half: bool, one: bool) -> None:
    deltas = np.array([people]), np.array([model])
    assert [bool(c.met(*deltas)[0]) for c in (BLIMP, HALF, ONE)] == [blimp, half, one]


@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(0.01, 9))
def test_the_adc_is_symmetric_and_grows_with_delta(
    people: float, model: float, delta: float
) -> None:
    first, second = np.array([people]), np.array([model])
    met = Criterion(delta).met(first, second)
    assert met == Criterion(delta).met(second, first) == Criterion(delta).met(-first, -second)
    assert Criterion(2 * delta).met(first, second) or not met


def test_names_and_bad_deltas() -> None:
    assert [c.name for c in (BLIMP, HALF, ONE)] == ["blimp", "adc-0.5", "adc-1"]
    for delta in (0.0, -1.0, float("nan")):
        with pytest.raises(InputError, match="--delta must be above 0"):
            Criterion(delta)
