"""Accuracy and signed-rank cosine, against random tie-breaking, scipy and literal resamples."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata

from contstim.experiments.analysis import measures
from contstim.experiments.analysis.measures import (
    accuracy,
    log_ratios,
    signed_rank_cosine,
    signed_ranks,
)
from contstim.files.arrays import FloatArray
from contstim.items.scale import Scale
from tests.examples import examples

INF = np.inf
MIDDLE = Scale.CONFIDENCE.middle
RATIOS = arrays(np.float64, 7, elements=st.sampled_from([-INF, -2.0, -1.0, 0.0, 0.5, 1.0, 3.0]))


def break_ties_at_random(values: FloatArray, times: int, rng: np.random.Generator) -> FloatArray:
    """Return signed ranks of the non-zero values with ties broken at random, (times, n)."""
    nonzero = np.flatnonzero(values)
    keys = rng.random((times, len(nonzero)))
    sizes = np.broadcast_to(np.abs(values[nonzero]), keys.shape)
    order = np.lexsort((keys, sizes), axis=-1)
    ranks = np.zeros((times, len(values)))
    positions = np.empty(keys.shape)
    np.put_along_axis(positions, order, np.arange(1.0, len(nonzero) + 1)[None], axis=-1)
    ranks[:, nonzero] = positions * np.sign(values[nonzero])
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
def test_closed_form_averages_random_ties(ratios: list[float], ratings: list[float]) -> None:
    """Witness: the plain cosine of 20,000 random tie-breaks on both sides."""
    rng = np.random.default_rng(0)
    model, person = np.array(ratios), np.array(ratings) - MIDDLE
    first, second = (break_ties_at_random(v, 20_000, rng) for v in (model, person))
    norms = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    cosines = (first * second).sum(axis=1) / norms
    (cosine,) = signed_rank_cosine(model[None], person[None])[0]
    assert cosine == pytest.approx(cosines.mean(), abs=5 * cosines.std() / np.sqrt(20_000) + 1e-12)


@pytest.mark.parametrize(
    ("ratios", "ratings", "cosine", "right"),
    [
        ([0.1, -7.0, 9.0], [0.5, 1.5, -2.5], (1 - 4 - 9) / 14, 1 / 3),  # ranks 1, -2, 3; 1, 2, -3
        ([0.0, 0.0, 0.0], [-2.5, 2.5, 1.5], 0.0, 0.5),  # the model ties on all trials
        ([1.0, 2.0, 3.0], [0.5, 0.5, 0.5], 2 * (1 + 2 + 3) / 14, 1.0),  # all ratings have rank 2
    ],
)
def test_measures(ratios: list[float], ratings: list[float], cosine: float, right: float) -> None:
    model, person = np.array([ratios]), np.array([ratings])
    assert signed_rank_cosine(model, person)[0, 0] == pytest.approx(cosine)
    assert accuracy(model, person)[0, 0] == pytest.approx(right)


def test_impossible_sentences_tie_and_lose_to_all_others() -> None:
    pairs = np.array([[-INF, -INF], [-INF, -3.0], [-3.0, -INF], [-5.0, -3.0]])
    assert log_ratios(pairs).tolist() == [0.0, INF, -INF, 2.0]


def test_accuracy_by_hand() -> None:
    ratios = np.array([[1.0, -1.0, 0.0, INF]])
    ratings = np.array([[4.0, 1.0, 1.0, 3.0], [1.0, 6.0, 6.0, 6.0]]) - MIDDLE
    assert accuracy(ratios, ratings)[:, 0].tolist() == [0.625, 0.375]


@given(RATIOS)
def test_signed_ranks_match_scipy_without_zeros(values: FloatArray) -> None:
    nonzero = values != 0
    expected = np.zeros(len(values))
    expected[nonzero] = rankdata(np.abs(values[nonzero])) * np.sign(values[nonzero])
    assert signed_ranks(values).tolist() == expected.tolist()


@given(RATIOS, st.integers(0, 1_000))
def test_swapping_sentences_does_not_change_measures(ratios: FloatArray, seed: int) -> None:
    ratings = np.random.default_rng(seed).integers(1, 7, (2, 7)).astype(float) - MIDDLE
    sign = np.random.default_rng(seed + 1).choice([-1.0, 1.0], 7)
    for measure in (accuracy, signed_rank_cosine):
        swapped = measure(ratios[None] * sign, ratings * sign)
        assert swapped == pytest.approx(measure(ratios[None], ratings))


@settings(max_examples=examples(12))
@given(RATIOS, st.integers(0, 1_000))
def test_samples_of_trials_equal_separate_evaluations(ratios: FloatArray, seed: int) -> None:
    """Witness: the same function, called on each sample's trials."""
    rng = np.random.default_rng(seed)
    ratings = rng.integers(1, 7, (4, 7)).astype(float) - MIDDLE
    ratings[rng.random(ratings.shape) < 0.3 * (seed % 2)] = 0
    samples = rng.integers(0, 7, (3, 9))  # drawn with replacement
    for measure in (accuracy, signed_rank_cosine):
        values = measure(ratios[samples][None], ratings[:, samples])
        for sample, indices in enumerate(samples):
            literal = measure(ratios[indices][None], ratings[:, indices])
            assert values[..., sample] == pytest.approx(literal)
    for ceiling, plain in (
        (measures.accuracy_lower, measures.accuracy_lower),
        (measures.accuracy_upper, measures.accuracy_upper),
        (measures.cosine_upper, measures.cosine_upper),
        (measures.cosine_lower, lambda sampled: literal_cosines(sampled)[0]),
    ):
        bounds = ceiling(ratings[:, samples])
        for sample, indices in enumerate(samples):
            assert bounds[:, sample] == pytest.approx(plain(ratings[:, indices]), abs=1e-9)


def test_planted_consistency_is_recovered() -> None:
    """Participants who follow the model with probability .8 are predicted in 80 % of trials.

    Their cosine is (2 · .8 - 1) times the cosine of participants who always follow it.
    """
    rng = np.random.default_rng(3)
    ratios = rng.normal(size=(1, 200)) * 10
    degree = 1 + np.digitize(np.abs(ratios), [5, 12])  # 1, 2 or 3 steps from the middle
    follows = np.where(rng.random((400, 200)) < 0.8, 1, -1)
    always = np.asarray((degree - 0.5) * np.sign(ratios), np.float64)
    ratings = np.asarray(always * follows, np.float64)
    assert set(np.unique(ratings + MIDDLE)) == {1, 2, 3, 4, 5, 6}
    assert accuracy(ratios, ratings).mean() == pytest.approx(0.8, abs=0.01)
    perfect = signed_rank_cosine(ratios, always)[0, 0]
    assert perfect > 0.9
    assert signed_rank_cosine(ratios, ratings).mean() == pytest.approx(0.6 * perfect, abs=0.01)


def compute_signed_ranks(values: list[float]) -> list[float]:
    """Return signed average ranks of the non-zero values."""
    nonzero = [v for v in values if v != 0]
    sizes = iter(rankdata(np.abs(nonzero)).tolist())
    return [0.0 if v == 0 else math.copysign(next(sizes), v) for v in values]


def rank_norm(values: list[float]) -> float:
    """Return the root of k(k+1)(2k+1)/6."""
    k = sum(v != 0 for v in values)
    return math.sqrt(k * (k + 1) * (2 * k + 1) / 6)


def literal_accuracy(ratings: FloatArray, *, including_self: bool) -> list[float]:
    people, trials = ratings.shape
    accuracies = []
    for person in range(people):
        points = 0.0
        for trial in range(trials):
            voters = [p for p in range(people) if including_self or p != person]
            second = sum(ratings[p, trial] > 0 for p in voters)
            if 2 * second == len(voters):
                points += 0.5
            else:
                points += (2 * second > len(voters)) == (ratings[person, trial] > 0)
        accuracies.append(points / trials)
    return accuracies


def literal_cosines(ratings: FloatArray) -> tuple[list[float], list[float]]:
    """Return the lower and upper ceilings."""
    people, trials = ratings.shape
    signed = [compute_signed_ranks(row.tolist()) for row in ratings]
    unit = [[r / (rank_norm(row) or 1) for r in row] for row in signed]
    lower, upper = [], []
    for person in range(people):
        units = [row for p, row in enumerate(unit) if p != person]
        # Rounded, so that ties are equal
        mean = [round(sum(row[t] for row in units) / len(units), 9) for t in range(trials)]
        ranks_of_mean = compute_signed_ranks(mean)
        product = sum(a * b for a, b in zip(ranks_of_mean, unit[person], strict=True))
        lower.append(product / rank_norm(mean) if any(mean) else 0.0)
        mean_unit = [sum(row[t] for row in unit) / people for t in range(trials)]
        length = math.sqrt(sum(v * v for v in mean_unit))
        product = sum(a * b for a, b in zip(mean_unit, unit[person], strict=True))
        upper.append(product / length if any(mean_unit) else 0.0)
    return lower, upper


@pytest.mark.parametrize(("people", "trials"), [(2, 5), (3, 12), (10, 40), (7, 1)])
@pytest.mark.parametrize("seed", [0, 1])
def test_ceilings_match_their_definitions(people: int, trials: int, seed: int) -> None:
    ratings = np.random.default_rng(seed).integers(1, 7, (people, trials)).astype(float) - 3.5
    for is_upper, ceiling in enumerate((measures.accuracy_lower, measures.accuracy_upper)):
        expected = literal_accuracy(ratings, including_self=bool(is_upper))
        assert ceiling(ratings).tolist() == pytest.approx(expected)
    lower, upper = literal_cosines(ratings)
    assert measures.cosine_lower(ratings).tolist() == pytest.approx(lower)
    assert measures.cosine_upper(ratings).tolist() == pytest.approx(upper)


def test_ceilings_with_unequal_numbers_of_neutral_ratings() -> None:
    """Witness: vectors divided by each participant's own norm, and one case by hand."""
    example = np.array([[1.0, 2, 3, 4], [-4, 3, -2, 1], [0, 0, 5, -9]])
    assert measures.cosine_lower(example) == pytest.approx([-0.300, -0.267, -0.490], abs=5e-4)
    assert measures.cosine_upper(example) == pytest.approx([0.478, 0.544, 0.214], abs=5e-4)
    rng = np.random.default_rng(6)
    for _ in range(40):
        ratings = rng.integers(-50, 51, (5, 12)).astype(float)
        ratings[rng.random(ratings.shape) < rng.random((5, 1))] = 0
        lower, upper = literal_cosines(ratings)
        assert measures.cosine_lower(ratings) == pytest.approx(lower)
        assert measures.cosine_upper(ratings) == pytest.approx(upper)


@pytest.mark.parametrize("middle", [0, 0.3])
@pytest.mark.parametrize("trials", [8, 40])
@pytest.mark.parametrize("ceiling", [measures.cosine_lower, measures.cosine_upper])
def test_order_of_participants_and_trials_does_not_matter(
    ceiling: Callable[[FloatArray], FloatArray], trials: int, middle: float
) -> None:
    """Property. With few trials, one tie missed by rounding moved a ceiling by .015."""
    rng = np.random.default_rng(8)
    for _ in range(20):
        ratings = rng.integers(1, 7, (10, trials)).astype(float) - 3.5
        ratings[rng.random(ratings.shape) < middle] = 0
        order = rng.permutation(10)
        reordered = ceiling(ratings[order][:, rng.permutation(trials)])
        assert reordered.tolist() == pytest.approx(ceiling(ratings)[order].tolist(), abs=1e-12)


def test_constant_ratings_agree_fully() -> None:
    """By hand for the cosine: every rank is 2, so 3 · 2 · 2 / 14 of the ranks 1, 2, 3."""
    ratings = np.full((4, 3), -1.5)
    assert measures.accuracy_lower(ratings).tolist() == [1.0] * 4
    assert measures.accuracy_upper(ratings).tolist() == [1.0] * 4
    assert measures.cosine_lower(ratings) == pytest.approx(12 / 14)
    assert measures.cosine_upper(ratings) == pytest.approx(6 / math.sqrt(14 * 3))
