"""Losses and constraints by hand, and pruning, which never loses a successful sentence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from contstim.optimization.search.evaluator import Evaluator
from contstim.optimization.search.objectives import Objective, PairObjective
from tests.optimization.search.toys import TableModel, published_objective

A, B, C = TableModel(1), TableModel(2), TableModel(3)
OBJECTIVES: dict[str, Objective] = {
    "published": published_objective(A, B, -20.0),
    "two accept": Objective(Evaluator((A, B, C)), (True, True, False), (-20.0, -25.0, -30.0)),
    "two reject": Objective(Evaluator((A, B, C)), (True, False, False), (-20.0, -25.0, -30.0)),
    "against another": PairObjective(Evaluator((A, B)), (True, False), (-25.0, -15.0)),
    "fluent": Objective(Evaluator((A, B, C)), (True, False, True), (-20.0, 0.0, -40.0)),
}
SCORES = arrays(np.float64, (3, 12), elements=st.floats(-50, 0))


@pytest.mark.parametrize(
    ("name", "log_probs", "loss", "feasible"),
    [
        ("published", [-20.0, -33.0], -33.0, True),
        ("published", [-20.1, -33.0], -33.0, False),
        ("two accept", [-20.0, -25.0, -33.0], -3.0, True),
        ("two accept", [-19.0, -25.1, -33.0], -3.0, False),
        ("two reject", [-20.0, -35.0, -33.0], -3.0, True),
        ("two reject", [-20.0, -26.0, -50.0], -1.0, True),
        ("two reject", [-20.1, -35.0, -33.0], -3.0, False),
        ("against another", [-21.0, -31.0], -10.0, True),
        ("against another", [-25.1, -31.0], -5.9, False),
        ("against another", [-10.0, -14.0], -4.0, False),
        ("fluent", [-20.0, -33.0, -40.0], -33.0, True),
        ("fluent", [-20.0, -33.0, -40.1], -33.0, False),
    ],
)
def test_losses_and_limits(name: str, log_probs: list[float], loss: float, feasible: bool) -> None:
    """Witness: by hand from the definitions."""
    column = np.array(log_probs)[:, None]
    assert OBJECTIVES[name].loss(column)[0] == pytest.approx(loss)
    assert OBJECTIVES[name].feasible(column)[0] == feasible
    assert len(OBJECTIVES[name].accepting) == len(log_probs)


@pytest.mark.parametrize("name", OBJECTIVES)
@given(truth=SCORES, slack=SCORES, hidden=arrays(np.bool_, (3, 12)), loss=st.floats(-60, 40))
def test_pruning_keeps_all_successful_sentences(
    name: str,
    truth: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    slack: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    hidden: np.ndarray[tuple[int, int], np.dtype[np.bool_]],
    loss: float,
) -> None:
    """Property: whichever scores are hidden, a successful sentence stays promising."""
    objective = OBJECTIVES[name]
    n_models = len(objective.evaluator.models)
    truth, slack, hidden = truth[:n_models], slack[:n_models], hidden[:n_models]
    succeeds = objective.feasible(truth) & (objective.loss(truth) < loss)
    scores = np.where(hidden, np.nan, truth)
    promising = objective.promising(scores, truth - slack, loss)
    assert (promising | ~succeeds).all()
    certain = objective.promising(truth, truth, loss)
    np.testing.assert_array_equal(certain, succeeds)


def test_impossible_sentences_have_no_difference() -> None:
    objective = OBJECTIVES["against another"]
    log_probs = np.array([[-np.inf], [-np.inf]])
    assert objective.loss(log_probs)[0] == np.inf
    assert not objective.feasible(log_probs)[0]
    assert objective.slack(log_probs)[0] == -np.inf
