"""What a search learns: calibration against closed forms, prices and batch sizes by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from contstim.optimization.search.belief import Belief
from contstim.optimization.search.experience import Calibration, SearchState, Stage
from contstim.optimization.search.objectives import AcceptReject
from tests.optimization.search.toys import TableModel, search_for


def test_a_calibration_is_ridge_regression_towards_the_diagonal() -> None:
    """Witness: least squares on the data with the prior as four and a hundred pseudo-equations."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=200) * 3
    y = 0.5 + 1.4 * x + rng.normal(size=200)
    learned = Calibration(2.0)
    for part in np.split(np.arange(200), 10):
        learned.calibrate(x[part], y[part])
    design = np.vstack([np.stack([np.ones(200), x], axis=1), [[2.0, 0.0], [0.0, 10.0]]])
    fit, *_ = np.linalg.lstsq(design, np.append(y, [0.0, 10.0]))
    np.testing.assert_allclose(learned.predict(x), fit[0] + fit[1] * x)
    assert learned.spread == pytest.approx(1.0, abs=0.2)


def test_before_anything_is_seen_an_estimate_is_taken_at_its_word() -> None:
    fresh = Calibration(2.0)
    np.testing.assert_allclose(fresh.predict(np.array([-3.0, 5.0])), [-3.0, 5.0])
    assert fresh.spread == pytest.approx(2.0)
    fresh.calibrate(np.array([np.nan, np.inf, 1.0]), np.array([0.0, 0.0, -np.inf]))
    assert fresh.spread == pytest.approx(2.0)


def test_prices_and_batches_follow_what_was_paid_and_gained() -> None:
    """Witness: by hand."""
    experience = SearchState()
    assert experience.expected_cost(0, 16.0) == 16.0
    experience.record_cost(0, 120, 4)
    assert experience.expected_cost(0, 16.0) == pytest.approx((120 + 64) / 8)
    assert experience.expected_cost(1, 0.1) == 1.0
    assert experience.batch(8) == 1
    for gained in (False, False, False, False, True):
        experience.remember(gained=gained)
    assert experience.batch(8) == round(7 / 3)
    assert experience.calibration(0, Stage.DRAFT) is experience.calibration(0, Stage.DRAFT)


def test_a_promise_is_the_constrained_expected_improvement() -> None:
    """Witness: its closed form for independent normal errors (Gardner et al. 2014)."""
    search = search_for(TableModel(1), TableModel(2))
    objective, loss = search.objective, -20.0
    assert isinstance(objective, AcceptReject)
    belief = Belief(2, 3)
    belief.mean[0] = objective.floor + np.array([0.5, 3.0, -1.0])
    belief.mean[1] = np.array([-22.0, -20.5, -30.0])
    belief.spread[:] = [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
    z = (loss - belief.mean[1]) / 2
    expected = 2 * (z * norm.cdf(z) + norm.pdf(z))
    expected *= norm.cdf(belief.mean[0] - objective.floor)
    found = belief.expected_improvement(objective, loss, np.arange(3))
    np.testing.assert_allclose(found, expected, rtol=0.35)
    assert (np.argsort(found) == np.argsort(expected)).all()


def test_a_promise_of_exact_scores_is_the_improvement_itself() -> None:
    """Witness: by hand."""
    search = search_for(TableModel(1), TableModel(2))
    assert isinstance(search.objective, AcceptReject)
    belief = Belief(2, 3)
    belief.mean[0] = search.objective.floor + np.array([1.0, -1.0, 0.0])
    belief.mean[1] = [-25.0, -30.0, -19.0]
    assert belief.expected_improvement(search.objective, -20.0, np.arange(3)).tolist() == [
        5.0,
        0.0,
        0.0,
    ]
