"""Calibration, compared with closed forms; costs and batch sizes, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from contstim.files.arrays import FloatArray
from contstim.optimization.search.evaluator import Evaluator
from contstim.optimization.search.objectives import Objective, PairObjective
from contstim.optimization.search.screening import (
    Calibration,
    SearchState,
    expected_improvement,
    most_improving,
)
from tests.optimization.search.toys import TableModel, published_objective


def test_a_calibration_is_ridge_regression_towards_the_diagonal() -> None:
    """Witness: least squares with the prior as four and a hundred pseudo-equations."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=200) * 3
    y = 0.5 + 1.4 * x + rng.normal(size=200)
    calibration = Calibration(2.0)
    for part in np.split(np.arange(200), 10):
        calibration.update(x[part], y[part])
    design = np.vstack([np.stack([np.ones(200), x], axis=1), [[2.0, 0.0], [0.0, 10.0]]])
    fit, *_ = np.linalg.lstsq(design, np.append(y, [0.0, 10.0]))
    np.testing.assert_allclose(calibration.predict(x), fit[0] + fit[1] * x)
    assert calibration.spread == pytest.approx(1.0, abs=0.2)


def test_calibrations_without_data_return_the_estimates() -> None:
    calibration = Calibration(2.0)
    np.testing.assert_allclose(calibration.predict(np.array([-3.0, 5.0])), [-3.0, 5.0])
    assert calibration.spread == pytest.approx(2.0)
    calibration.update(np.array([np.nan, np.inf, 1.0]), np.array([0.0, 0.0, -np.inf]))
    assert calibration.spread == pytest.approx(2.0)


def test_costs_and_batch_sizes_follow_the_records() -> None:
    """Witness: by hand."""
    state = SearchState(2, np.random.default_rng(0))
    assert state.expected_cost(0, 16.0) == 16.0
    state.record_cost(0, 120, 4)
    assert state.expected_cost(0, 16.0) == pytest.approx((120 + 64) / 8)
    assert state.expected_cost(1, 0.1) == 1.0
    assert state.batch_size(8) == 1
    for improved in (False, False, False, False, True):
        state.record_batch(improved=improved)
    assert state.batch_size(8) == round(7 / 3)


PUBLISHED = published_objective(TableModel(1), TableModel(2), -20.0)


def expected_improvement_by_hand(loss: float, mean: FloatArray, sd: FloatArray) -> FloatArray:
    z = (loss - mean[1]) / sd[1]
    improvement = sd[1] * (z * norm.cdf(z) + norm.pdf(z))
    expected: FloatArray = improvement * norm.cdf((mean[0] - PUBLISHED.limits[0]) / sd[0])
    return expected


def test_the_expected_improvement_is_constrained() -> None:
    """Witness: its closed form for independent normal errors (Gardner et al. 2014)."""
    mean = np.array([[-19.5, -17.0, -21.0], [-22.0, -20.5, -30.0]])
    sd = np.array([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]])
    expected = expected_improvement_by_hand(-20.0, mean, sd)
    computed = expected_improvement(PUBLISHED, -20.0, mean, sd)
    np.testing.assert_allclose(computed, expected, rtol=0.35)
    assert (np.argsort(computed) == np.argsort(expected)).all()


def test_expected_improvement_of_exact_scores_is_the_improvement() -> None:
    """Witness: by hand."""
    mean = np.array([[-19.0, -21.0, -20.0], [-25.0, -30.0, -19.0]])
    computed = expected_improvement(PUBLISHED, -20.0, mean, np.zeros((2, 3)))
    assert computed.tolist() == [5.0, 0.0, 0.0]


A, B, C = TableModel(1), TableModel(2), TableModel(3)
OBJECTIVES: list[Objective] = [
    PUBLISHED,
    Objective(Evaluator((A, B, C)), (True, False, True), (-20.0, 0.0, -21.0)),
    Objective(Evaluator((A, B, C)), (True, True, False), (-20.0, -20.5, -19.0)),
    PairObjective(Evaluator((A, B)), (True, False), (-21.0, -19.0)),
]


@given(
    objective=st.sampled_from(OBJECTIVES),
    n_words=st.sampled_from([0, 1, 100, 2_500, 6_000]),
    scale=st.sampled_from([0.01, 1.0, 5.0]),
    share_refined=st.sampled_from([0.0, 0.1]),
    share_eligible=st.sampled_from([0.01, 0.6, 1.0]),
    ties=st.booleans(),
    limit=st.sampled_from([1, 8, 40]),
    min_improvement=st.sampled_from([0.0, 0.5]),
    seed=st.integers(0, 1_000),
)
def test_the_most_improving_words_are_the_first_when_sorted(
    objective: Objective,
    n_words: int,
    scale: float,
    share_refined: float,
    share_eligible: float,
    ties: bool,
    limit: int,
    min_improvement: float,
    seed: int,
) -> None:
    """Witness: the stably sorted expected improvements of all words."""
    rng = np.random.default_rng(seed)
    shape = (len(objective.evaluator.models), n_words)
    mean = rng.normal(-20, scale, shape)
    mean[rng.random(shape) < 0.02] = -np.inf  # impossible words
    if ties:
        mean = np.round(mean, 1)
    sd = np.where(rng.random(shape) < share_refined, rng.random(shape), 2.0)
    sd[:, rng.random(n_words) < share_refined] = 0.0  # words with exact scores
    eligible = rng.random(n_words) < share_eligible
    improvement = expected_improvement(objective, -18.0, mean, sd)
    columns = np.flatnonzero(eligible)
    order = columns[np.argsort(-improvement[columns], kind="stable")][:limit]
    expected = order[improvement[order] > min_improvement]
    selected = most_improving(objective, -18.0, mean, sd, eligible, limit, min_improvement)
    np.testing.assert_array_equal(selected, expected)
