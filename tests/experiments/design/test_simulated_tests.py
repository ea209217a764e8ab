"""Precision of differences, against other distributions and simulated experiments."""

import numpy as np
import pytest
from scipy.stats import nct
from scipy.stats import t as student

from contstim.experiments.design.population import Population
from contstim.experiments.design.simulated_tests import Precision, measure_precision
from tests.experiments.design.scored_design import evaluate_all


def build_precision(
    items: float, people: float, answers: float, trials: float = 19.0, *, widest: float = 1.0
) -> Precision:
    return Precision(*(np.array([x]) for x in (items, people, answers, trials, 1.0, widest)))


PRECISION = build_precision(0.02, 0.004, 0.03)


def test_power_matches_the_noncentral_t() -> None:
    """Witness: scipy's noncentral t."""
    for effect in (0.0, 0.05, 0.15):
        for groups, people in ((1, 12), (4, 10), (30, 1)):
            freedom = PRECISION.freedom(groups, people)[0]
            limit = student.isf(0.025, freedom)
            shift = effect / PRECISION.standard_error(groups, people)
            expected = nct.sf(limit, freedom, shift) + nct.cdf(-limit, freedom, shift)
            power = PRECISION.power(effect, groups, people)
            assert power == pytest.approx(expected, abs=1e-3)


def test_equivalence_matches_two_one_sided_tests() -> None:
    """Brute force: a million estimates and standard errors of models without a difference."""
    rng = np.random.default_rng(0)
    error, freedom = PRECISION.standard_error(6, 8), PRECISION.freedom(6, 8)[0]
    estimates = error * rng.standard_normal(1_000_000)
    estimated = error * np.sqrt(rng.chisquare(freedom, 1_000_000) / freedom)
    for margin in (0.05, 0.1, 0.2):
        is_equivalent = np.abs(estimates) + student.isf(0.05, freedom) * estimated < margin
        assert PRECISION.equivalence(margin, 6, 8) == pytest.approx(is_equivalent.mean(), abs=3e-3)


def test_detectable_difference_has_the_stated_power() -> None:
    for rate in (0.5, 0.8, 0.95):
        least = PRECISION.detectable(3, 10, rate)
        assert PRECISION.power(least, 3, 10) == pytest.approx(rate, abs=1e-3)


@pytest.mark.parametrize(
    ("trials", "following", "planned", "sizes"),
    [
        (1, 0.3, 5, [(120, 5)]),
        (2, 0.3, 5, [(60, 5)]),
        (12, 0.3, 5, [(10, 5)]),
        (40, 0.6, 6, [(3, 6), (3, 20), (9, 2)]),
    ],
)
def test_standard_errors_match_the_sd_of_differences(
    trials: int, following: float, planned: int, sizes: list[tuple[int, int]]
) -> None:
    """Witness: agreement in 3,000 experiments of each size, with new participants and items.

    This also holds with few trials in a group. `sizes` are groups and participants.
    """
    rng = np.random.default_rng(trials)
    ratios = rng.normal(size=(120, 2))
    comparisons = evaluate_all(ratios, np.arange(120) // trials)
    people = Population("a", 0.8 * ratios[:, 0], np.full(120, 0.9), following)
    precision = measure_precision(comparisons, [people], participants=planned)
    for groups, participants in sizes:
        rows = rng.integers(120, size=(3000 * groups, trials))
        answers = np.where(people.answers(rows, participants, rng), 1.0, -1.0).mean(axis=1)
        sides = np.sign(ratios)[rows]
        difference = ((sides[..., 0] - sides[..., 1]) * answers).mean(axis=1) / 2
        sd = difference.reshape(3000, groups).mean(axis=1).std()
        assert precision.standard_error(groups, participants) == pytest.approx(sd, rel=0.08)


def test_new_items_reduce_errors_more_than_participants() -> None:
    """By the formula: participants divide their own variance only, groups divide all variance."""
    items = build_precision(0.02, 0.0, 0.0)
    assert items.standard_error(1, 20) == items.standard_error(1, 10)
    assert items.standard_error(4, 10) == pytest.approx(items.standard_error(1, 10) / 2)
    people = build_precision(0.0, 0.02, 0.0)
    assert people.standard_error(1, 20) == pytest.approx(people.standard_error(2, 10))
