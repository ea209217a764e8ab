"""Signed-rank tests and intervals, against scipy, statsmodels and results by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, wilcoxon
from statsmodels.stats.proportion import proportion_confint

from contstim.experiments.analysis.signed_ranks import (
    rank_biserial_interval,
    signed_rank_interval,
    signed_rank_p_values,
    signed_rank_test,
)
from tests.examples import examples


@pytest.mark.parametrize("n", [2, 5, 9, 14, 30, 60])
@pytest.mark.parametrize("steps", [4, 1_000_000])
def test_p_values_match_scipy(n: int, steps: int) -> None:
    """A small `steps` produces ties and zeros, a large one does not."""
    rng = np.random.default_rng(n)
    first, second = rng.integers(-steps, steps + 1, (2, n)) / 8
    result = signed_rank_test(first, second)
    expected = wilcoxon(first - second, zero_method="zsplit")
    assert result["p_value"] == pytest.approx(expected.pvalue)
    assert result["statistic"] == pytest.approx(expected.statistic)
    assert result["n_units"] == n


@pytest.mark.parametrize(("n", "steps"), [(6, 3), (11, 5), (13, 10_000), (20, 4), (20, 10_000)])
def test_many_p_values_at_once_match_scipy(n: int, steps: int) -> None:
    """Some pairs are missing; scipy runs one test a call on the remaining pairs."""
    rng = np.random.default_rng(n)
    differences = rng.integers(-steps, 2 * steps, (8, n)) / 8
    differences[rng.random((8, n)) < 0.2] = np.nan
    for row, p_value in zip(differences, signed_rank_p_values(differences), strict=True):
        assert p_value == pytest.approx(wilcoxon(row[~np.isnan(row)], zero_method="zsplit").pvalue)


def test_differences_equal_up_to_rounding_tie() -> None:
    """0.3 - 0.1 and 0.2 - 0.0 differ in floating point; ranks 1.5, 1.5 and 3 by hand."""
    first, second = np.array([0.3, 0.2, 0.1]), np.array([0.1, 0.0, 0.6])
    assert signed_rank_test(first, second)["rank_biserial"] == pytest.approx((3 - 3) / 6)


def test_ten_differences_of_one_sign_have_the_smallest_p() -> None:
    """By hand: 2 / 2^10."""
    test = signed_rank_test(np.arange(1.0, 11), np.zeros(10))
    assert test["p_value"] == 2 / 1024
    assert test["rank_biserial"] == 1.0


def test_interval_of_one_pair_is_wilsons() -> None:
    """Witness: statsmodels; the positive ranks of one pair are a proportion of one."""
    low, high = proportion_confint(1, 1, method="wilson")
    assert rank_biserial_interval(1, 1.0, 0.95) == pytest.approx((2 * low - 1, 2 * high - 1))


@pytest.mark.parametrize("n", [2, 6, 25, 400])
def test_rank_biserial_intervals_contain_the_value_and_mirror(n: int) -> None:
    for value in (-1.0, -0.4, 0.0, 0.7, 1.0):
        low, high = rank_biserial_interval(n, value, 0.95)
        assert -1 <= low <= value <= high <= 1
        assert low < high
        assert rank_biserial_interval(n, -value, 0.95) == pytest.approx((-high, -low), abs=1e-6)
        wide = rank_biserial_interval(n, value, 0.99)
        assert wide[0] <= low
        assert wide[1] >= high
    assert np.isnan(rank_biserial_interval(0, np.nan, 0.95)).all()


@pytest.mark.parametrize(
    ("n", "kind"),
    [*((n, kind) for n in (6, 10) for kind in ("normal", "skewed", "heavy tails")), (20, "skewed")],
)
def test_rank_biserial_intervals_have_nominal_coverage(n: int, kind: str) -> None:
    """Planted: of 6,000 intervals .93 to .98 must contain the mean of all.

    Six pairs have few ranks: without a shift, intervals cover exactly 60 of the 64 sign
    assignments.
    """
    rng = np.random.default_rng(n)
    centred = {
        "normal": rng.normal(size=(6_000, n)),
        "skewed": rng.exponential(size=(6_000, n)) - 1,
        "heavy tails": rng.standard_t(3, size=(6_000, n)),
    }[kind]
    for shift in (0.0, 0.6):
        differences = centred + shift
        ranks = np.sign(differences) * rankdata(np.abs(differences), axis=1)
        values = np.round(ranks.sum(axis=1) / (n * (n + 1) / 2), 12)
        limits = {v: rank_biserial_interval(n, v, 0.95) for v in set(values.tolist())}
        covers = [limits[v][0] <= values.mean() <= limits[v][1] for v in values.tolist()]
        assert 0.93 <= np.mean(covers) <= 0.98


@pytest.mark.parametrize("n", [4, 7, 13, 20])
def test_shift_intervals_invert_scipys_test(n: int) -> None:
    """Witness: the definition without ties: the shifts that scipy's test does not reject."""
    differences = np.random.default_rng(n).normal(0.3, 1, n)
    low, high = signed_rank_interval(differences, 0.1)
    walsh = np.unique([(a + b) / 2 for a in differences for b in differences])
    candidates = np.concatenate([[walsh[0] - 1], (walsh[1:] + walsh[:-1]) / 2, [walsh[-1] + 1]])
    accepted = [wilcoxon(differences - shift).pvalue >= 0.1 for shift in candidates]
    if accepted[0]:
        assert (low, high) == (-np.inf, np.inf)
    else:
        first, last = np.flatnonzero(accepted)[[0, -1]]
        assert (low, high) == pytest.approx((walsh[first - 1], walsh[last]))


@settings(max_examples=examples(75))
@given(
    st.lists(st.integers(-4, 8), min_size=1, max_size=30),
    st.sampled_from((1, 7, 1_000)),
    st.floats(1e-4, 0.5),
)
def test_shift_interval_agrees_with_the_test(steps: list[int], unit: int, alpha: float) -> None:
    """Property, with ties and zeros and without, for exact and approximate p-values."""
    rng = np.random.default_rng(len(steps))
    values = (np.array(steps) * unit + rng.integers(0, unit, len(steps))) / unit
    low, high = signed_rank_interval(values, alpha)
    p_value = signed_rank_p_values(values[None])[0]
    if abs(p_value - alpha) > 1e-9:
        assert (low <= 0 <= high) == (p_value > alpha)


@settings(max_examples=examples(50))
@given(st.lists(st.integers(-2, 3), min_size=6, max_size=12), st.sampled_from((0.05, 0.02, 0.005)))
def test_zeros_do_not_make_shift_intervals_infinite(steps: list[int], alpha: float) -> None:
    """By hand: a shift beyond all n differences leaves one sign, with the p-value 2 / 2^n."""
    differences = np.array(steps) / 8
    low, high = signed_rank_interval(differences, alpha)
    if 2 * 0.5 ** len(steps) >= alpha:
        assert (low, high) == (-np.inf, np.inf)
    else:
        assert min(0, differences.min()) <= low <= high <= max(0, differences.max()) + 1e-12


def test_zero_differences_and_empty_samples() -> None:
    assert signed_rank_test(np.ones(10), np.ones(10))["p_value"] == 1.0
    assert signed_rank_test(np.ones(20), np.ones(20))["p_value"] == 1.0
    empty = signed_rank_test(np.array([np.nan]), np.array([1.0]))
    assert (empty["n_units"], np.isnan(empty["p_value"])) == (0, True)
