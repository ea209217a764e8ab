"""What a search learns: calibration against closed forms, costs and batch sizes by hand."""

from __future__ import annotations

import numpy as np
import pytest

from contstim.optimization.search.screening import Calibration, SearchState


def test_a_calibration_is_ridge_regression_towards_the_diagonal() -> None:
    """Witness: least squares on the data with the prior as four and a hundred pseudo-equations."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=200) * 3
    y = 0.5 + 1.4 * x + rng.normal(size=200)
    learned = Calibration(2.0)
    for part in np.split(np.arange(200), 10):
        learned.update(x[part], y[part])
    design = np.vstack([np.stack([np.ones(200), x], axis=1), [[2.0, 0.0], [0.0, 10.0]]])
    fit, *_ = np.linalg.lstsq(design, np.append(y, [0.0, 10.0]))
    np.testing.assert_allclose(learned.predict(x), fit[0] + fit[1] * x)
    assert learned.spread == pytest.approx(1.0, abs=0.2)


def test_before_anything_is_seen_an_estimate_is_taken_at_its_word() -> None:
    fresh = Calibration(2.0)
    np.testing.assert_allclose(fresh.predict(np.array([-3.0, 5.0])), [-3.0, 5.0])
    assert fresh.spread == pytest.approx(2.0)
    fresh.update(np.array([np.nan, np.inf, 1.0]), np.array([0.0, 0.0, -np.inf]))
    assert fresh.spread == pytest.approx(2.0)


def test_costs_and_batches_follow_what_was_spent_and_gained() -> None:
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
