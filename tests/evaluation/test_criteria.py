"""Criteria of acceptability, their correlations, and the pairs that separate them.

Witnesses: SciPy, NumPy and counts by hand.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from contstim.errors import InputError
from contstim.evaluation.acceptability import AcceptabilitySettings
from contstim.evaluation.criteria import (
    AcceptabilityEvaluation,
    criteria_apart,
    criterion_met,
    delta_correlations,
    evaluate_acceptability,
    fits,
    z_scores,
)
from contstim.evaluation.judged_scores import JudgedScores
from tests.evaluation.small_data import simulated


def test_z_scores_are_scipys() -> None:
    values = np.random.default_rng(3).normal(-40, 12, size=(50, 3))
    values[4, 1] = np.nan
    expected = stats.zscore(values, axis=0, ddof=0, nan_policy="omit")
    np.testing.assert_allclose(z_scores(values), expected)
    with pytest.raises(InputError, match="All values are the same"):
        z_scores(np.full((3, 2), 1.5))


@pytest.mark.parametrize(
    ("human_delta", "model_delta", "meets_blimp", "meets_half", "meets_full"),
    [
        (1.0, 1.2, True, True, True),
        (1.0, 1.5, True, False, True),  # strictly less than δ
        (1.0, 2.0, True, False, False),
        (0.2, -0.1, False, False, False),  # near, but in the other direction
        (-0.2, 0.1, True, False, False),  # participants disagree with the experts
        (-0.2, -0.3, False, True, True),
        (0.0, 0.0, False, True, True),  # a tie fails the BLiMP criterion
        (0.0, 0.1, True, False, False),
        (0.1, 0.0, False, False, False),
    ],
)
def test_criteria_by_hand(
    human_delta: float, model_delta: float, meets_blimp: bool, meets_half: bool, meets_full: bool
) -> None:
    deltas = np.array([human_delta]), np.array([model_delta])
    assert [bool(criterion_met(delta, *deltas)[0]) for delta in (None, 0.5, 1)] == [
        meets_blimp,
        meets_half,
        meets_full,
    ]


@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(0.01, 9))
def test_adc_is_symmetric_and_grows(human_delta: float, model_delta: float, delta: float) -> None:
    first, second = np.array([human_delta]), np.array([model_delta])
    met = criterion_met(delta, first, second)
    assert met == criterion_met(delta, second, first) == criterion_met(delta, -first, -second)
    assert criterion_met(2 * delta, first, second) or not met


def test_criteria_are_named_and_bad_deltas_are_refused() -> None:
    settings = AcceptabilitySettings(delta=(0.5, 1))
    assert [*evaluate_acceptability(*simulated(6, 1), settings).met] == [
        *("blimp", "adc-0.5", "adc-1")
    ]
    for delta in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="`delta` must be above 0"):
            criterion_met(delta, np.zeros(1), np.zeros(1))


@pytest.fixture(scope="module")
def evaluation() -> AcceptabilityEvaluation:
    return evaluate_acceptability(*simulated(60, 3))


def test_deltas_are_differences_of_z_scores(evaluation: AcceptabilityEvaluation) -> None:
    judgements, scores = simulated(60, 3)
    z = stats.zscore(scores.values, axis=0)
    np.testing.assert_allclose(evaluation.deltas, z[::2] - z[1::2])
    ratings = judgements.values
    np.testing.assert_allclose(evaluation.people, ratings[::2] - ratings[1::2])
    standardized = evaluate_acceptability(
        judgements, scores, AcceptabilitySettings(human_z_scores=True)
    )
    z_ratings = stats.zscore(ratings)
    np.testing.assert_allclose(standardized.people, z_ratings[::2] - z_ratings[1::2])


def test_correlations_and_fits_are_scipys(evaluation: AcceptabilityEvaluation) -> None:
    names, matrix = delta_correlations(evaluation)
    columns = [evaluation.people, *evaluation.deltas.T]
    for i, first in enumerate(columns):
        for j, second in enumerate(columns):
            assert matrix[i, j] == pytest.approx(stats.pearsonr(first, second).statistic)
    assert names == ("people", "m0", "m1", "m2")
    for column, fit in enumerate(fits(evaluation)):
        x, y = evaluation.sentence_scores[:, column], evaluation.sentence_judgements
        assert (fit["slope"], fit["intercept"]) == pytest.approx(tuple(np.polyfit(x, y, 1)))
        assert fit["pearson"] == pytest.approx(np.corrcoef(x, y)[0, 1])
        ranks = stats.rankdata(x), stats.rankdata(y)
        assert fit["spearman"] == pytest.approx(np.corrcoef(*ranks)[0, 1])


def test_pairs_passing_only_the_adc_are_disputed(evaluation: AcceptabilityEvaluation) -> None:
    """The ADC requires equal signs, so human deltas are negative where it accepts negative ones."""
    rows_by_criteria = criteria_apart(evaluation)
    assert {model for model, _, _ in rows_by_criteria} == set(evaluation.models)
    assert any(len(rows) for rows in rows_by_criteria.values())
    for (model, passes, fails), rows in rows_by_criteria.items():
        deltas = evaluation.deltas[rows, evaluation.models.index(model)]
        assert ((deltas > 0) == (passes == "blimp")).all()
        if fails == "blimp":
            assert evaluation.disputed[rows].all()


def test_pairs_without_scores_are_excluded_and_counted() -> None:
    judgements, scores = simulated(6, 2)
    values = scores.values.copy()
    values[3, 1] = np.nan
    evaluation = evaluate_acceptability(judgements, JudgedScores(scores.models, values))
    assert list(evaluation.excluded_for().values()) == [0, 0, 1]
    assert len(evaluation.pairs) == 5
    values[::2] = np.nan
    with pytest.raises(InputError, match=r"None of 6 pairs can be evaluated \(6: a score"):
        evaluate_acceptability(judgements, JudgedScores(scores.models, values))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("people", None, "must not be named 'people'"),
        ("", None, "must not be named ''"),
        ("m1", 2.5, "m1 has no scores, or the same score"),
        ("m1", np.nan, "m1 has no scores, or the same score"),
    ],
)
def test_models_without_a_name_or_distinct_scores_are_refused(
    name: str, value: float | None, message: str
) -> None:
    judgements, scores = simulated(6, 2)
    values = scores.values.copy()
    if value is not None:
        values[:, 1] = value
    with pytest.raises(InputError, match=message):
        evaluate_acceptability(judgements, JudgedScores(("m0", name), values))
