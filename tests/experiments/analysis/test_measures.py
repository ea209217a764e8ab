"""The two measures, against random tie-breaking, scipy and literally repeated trials."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata

from contstim.arrays import FloatArray
from contstim.experiments.analysis import measures
from contstim.experiments.analysis.measures import (
    accuracy,
    log_ratios,
    signed_rank_cosine,
    signed_ranks,
)
from contstim.scale import Scale

INF = np.inf
MIDDLE = Scale.CONFIDENCE.middle
RATIOS = arrays(np.float64, 7, elements=st.sampled_from([-INF, -2.0, -1.0, 0.0, 0.5, 1.0, 3.0]))


def broken_at_random(values: FloatArray, times: int, rng: np.random.Generator) -> FloatArray:
    """Signed ranks of the non-zero values with ties broken at random, (times, n)."""
    known = np.flatnonzero(values)
    keys = rng.random((times, len(known)))
    sizes = np.broadcast_to(np.abs(values[known]), keys.shape)
    order = np.lexsort((keys, sizes), axis=-1)
    ranks = np.zeros((times, len(values)))
    places = np.empty(keys.shape)
    np.put_along_axis(places, order, np.arange(1.0, len(known) + 1)[None], axis=-1)
    ranks[:, known] = places * np.sign(values[known])
    return ranks


@pytest.mark.parametrize(
    ("ratios", "ratings"),
    [
        ([1.0, 1.0, -1.0, 2.0, 2.0, -3.0], [6, 4, 1, 4, 3, 2]),
        ([0.0, 0.0, 5.0, -5.0, 1.0, 1.0, 1.0], [4, 4, 4, 4, 3, 3, 6]),
        ([INF, INF, -INF, 2.0, -1.0], [5, 1, 1, 2, 2]),
        ([4.0, -4.0], [1, 1]),
    ],
)
def test_closed_form_is_the_average_over_random_tie_breaks(
    ratios: list[float], ratings: list[float]
) -> None:
    """Witness: 20,000 random tie-breaks of both sides, and the plain cosine of each."""
    rng = np.random.default_rng(0)
    model, person = np.array(ratios), np.array(ratings) - MIDDLE
    first, second = (broken_at_random(v, 20_000, rng) for v in (model, person))
    norms = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    drawn = (first * second).sum(axis=1) / norms
    (found,) = signed_rank_cosine(model[None], person[None])[0]
    assert found == pytest.approx(drawn.mean(), abs=5 * drawn.std() / np.sqrt(20_000) + 1e-12)


def test_the_cosine_of_two_rankings_without_ties_is_their_cosine() -> None:
    """By hand: ranks (1, -2, 3) and (1, 2, -3) give (1 - 4 - 9) / 14."""
    ratios, ratings = np.array([[0.1, -7.0, 9.0]]), np.array([[0.5, 1.5, -2.5]])
    assert signed_rank_cosine(ratios, ratings)[0, 0] == pytest.approx(-12 / 14)


def test_a_model_that_always_ties_has_cosine_0_and_accuracy_one_half() -> None:
    ratings = np.array([[-2.5, 2.5, 1.5]])
    assert signed_rank_cosine(np.zeros((1, 3)), ratings)[0, 0] == 0
    assert accuracy(np.zeros((1, 3)), ratings)[0, 0] == 0.5


def test_a_person_who_gives_one_rating_only_has_a_finite_cosine() -> None:
    """By hand: all ranks are 2, so the model 1, 2, 3 gives 2 (1 + 2 + 3) / 14."""
    assert signed_rank_cosine(np.array([[1.0, 2.0, 3.0]]), np.full((1, 3), 0.5))[0, 0] == (
        pytest.approx(12 / 14)
    )


def test_impossible_sentences_tie_with_each_other_and_lose_to_all_others() -> None:
    pairs = np.array([[-INF, -INF], [-INF, -3.0], [-3.0, -INF], [-5.0, -3.0]])
    assert log_ratios(pairs).tolist() == [0.0, INF, -INF, 2.0]


def test_accuracy_by_hand() -> None:
    ratios = np.array([[1.0, -1.0, 0.0, INF]])
    ratings = np.array([[4.0, 1.0, 1.0, 3.0], [1.0, 6.0, 6.0, 6.0]]) - MIDDLE
    assert accuracy(ratios, ratings)[:, 0].tolist() == [0.625, 0.375]


@given(RATIOS)
def test_signed_ranks_are_those_of_scipy_without_zeros(values: FloatArray) -> None:
    known = values != 0
    expected = np.zeros(len(values))
    expected[known] = rankdata(np.abs(values[known])) * np.sign(values[known])
    assert signed_ranks(values).tolist() == expected.tolist()


@given(RATIOS, st.integers(0, 1_000))
def test_exchanging_the_sentences_changes_nothing(ratios: FloatArray, seed: int) -> None:
    ratings = np.random.default_rng(seed).integers(1, 7, (2, 7)).astype(float) - MIDDLE
    flip = np.random.default_rng(seed + 1).choice([-1.0, 1.0], 7)
    turned = ratings * flip
    for measure in (accuracy, signed_rank_cosine):
        before, after = measure(ratios[None], ratings), measure(ratios[None] * flip, turned)
        assert after == pytest.approx(before)


@settings(max_examples=25)
@given(RATIOS, st.integers(0, 1_000))
def test_weights_are_how_often_a_trial_stands_there(ratios: FloatArray, seed: int) -> None:
    """Witness: the same function on trials that are repeated, without weights."""
    rng = np.random.default_rng(seed)
    ratings = rng.integers(1, 7, (4, 7)).astype(float) - MIDDLE
    weights = rng.integers(0, 3, (3, 7))
    weights[:, 0] += 1
    for measure in (accuracy, signed_rank_cosine):
        found = measure(ratios[None], ratings, weights.astype(float))
        for sample, times in enumerate(weights):
            literal = measure(np.repeat(ratios, times)[None], np.repeat(ratings, times, axis=1))
            assert found[..., sample] == pytest.approx(literal)
    for ceiling, plain in (
        (measures.accuracy_lower, measures.accuracy_lower),
        (measures.accuracy_upper, measures.accuracy_upper),
        (measures.cosine_upper, measures.cosine_upper),
        (measures.cosine_lower, exact_cosine_lower),
    ):
        bounds = ceiling(ratings, weights.astype(float))
        for sample, times in enumerate(weights):
            literal = plain(np.repeat(ratings, times, axis=1))
            assert bounds[:, sample] == pytest.approx(literal, abs=1e-9)


def exact_cosine_lower(ratings: FloatArray) -> FloatArray:
    """The others' sums of ranks are halves, exact in floating point: the model is their sum."""
    ranks = signed_ranks(ratings)
    others = ranks.sum(axis=0) - ranks
    pairs = zip(others, ratings, strict=True)
    return np.array([signed_rank_cosine(one[None], own[None])[0, 0] for one, own in pairs])


def test_without_trials_there_is_no_consistency() -> None:
    weights = np.zeros((1, 3))
    ratings = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]) - MIDDLE
    for measure in (accuracy, signed_rank_cosine):
        assert np.isnan(measure(np.ones((1, 3)), ratings, weights)).all()
    assert np.isnan(measures.cosine_lower(ratings, weights)).all()


def test_planted_consistency_is_recovered() -> None:
    """People who follow the model with probability .8 are predicted in 80 % of trials.

    Their cosine is (2 · .8 - 1) times that of people who always follow it.
    """
    rng = np.random.default_rng(3)
    ratios = rng.normal(size=(1, 200)) * 10
    sure = 1 + np.digitize(np.abs(ratios), [5, 12])  # 1, 2 or 3 steps from the middle
    follows = np.where(rng.random((400, 200)) < 0.8, 1, -1)
    always = np.asarray((sure - 0.5) * np.sign(ratios), np.float64)
    ratings = np.asarray(always * follows, np.float64)
    assert set(np.unique(ratings + MIDDLE)) == {1, 2, 3, 4, 5, 6}
    assert accuracy(ratios, ratings).mean() == pytest.approx(0.8, abs=0.01)
    perfect = signed_rank_cosine(ratios, always)[0, 0]
    assert perfect > 0.9
    assert signed_rank_cosine(ratios, ratings).mean() == pytest.approx(0.6 * perfect, abs=0.01)
