"""Tests of differences, against scipy and by hand."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, wilcoxon
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from contstim.errors import InputError
from contstim.experiments.analysis.inference import (
    CEILING,
    Correction,
    ModelContrast,
    decision_alpha,
    every_contrast,
    false_discovery,
    family_wise,
    rank_biserial_interval,
    reach,
    read_contrasts,
    signed_rank_interval,
    signed_rank_p_values,
    signed_rank_test,
)


@pytest.mark.parametrize("n", [2, 5, 9, 11, 14, 30, 60])
@pytest.mark.parametrize("steps", [4, 1_000_000])
def test_p_values_are_those_of_scipy(n: int, steps: int) -> None:
    """With ties and zeros (few steps) and without."""
    rng = np.random.default_rng(n)
    first, second = rng.integers(-steps, steps + 1, (2, n)) / 8
    ours = signed_rank_test(first, second)
    theirs = wilcoxon(first - second, zero_method="zsplit")
    assert ours.p_value == pytest.approx(theirs.pvalue)
    assert ours.statistic == pytest.approx(theirs.statistic)
    assert ours.n == n


@pytest.mark.parametrize(("n", "steps"), [(6, 3), (13, 5), (13, 10_000), (20, 4), (20, 10_000)])
def test_many_tests_at_once_are_those_of_scipy(n: int, steps: int) -> None:
    """With pairs left out here and there; scipy takes the pairs that are left, one test a call."""
    rng = np.random.default_rng(n)
    differences = rng.integers(-steps, 2 * steps, (25, n)) / 8
    differences[rng.random((25, n)) < 0.2] = np.nan
    for row, p_value in zip(differences, signed_rank_p_values(differences), strict=True):
        assert p_value == pytest.approx(wilcoxon(row[~np.isnan(row)], zero_method="zsplit").pvalue)


def test_equal_differences_tie_whatever_their_last_bits() -> None:
    """0.3 - 0.1 and 0.2 - 0.0 differ in floating point; ranks 1.5, 1.5 and 3 by hand."""
    first, second = np.array([0.3, 0.2, 0.1]), np.array([0.1, 0.0, 0.6])
    assert signed_rank_test(first, second).rank_biserial == pytest.approx((3 - 3) / 6)


def test_ten_differences_of_one_sign_have_the_smallest_p_value() -> None:
    """By hand: 2 / 2^10."""
    test = signed_rank_test(np.arange(1.0, 11), np.zeros(10))
    assert test.p_value == 2 / 1024
    assert test.rank_biserial == 1.0


def test_the_interval_of_one_pair_is_wilsons() -> None:
    """Witness: statsmodels; the positive ranks of one pair are a share of one."""
    low, high = proportion_confint(1, 1, method="wilson")
    assert rank_biserial_interval(1, 1.0, 0.95) == pytest.approx((2 * low - 1, 2 * high - 1))


@pytest.mark.parametrize("n", [2, 6, 25, 400])
def test_intervals_of_rank_biserials_hold_them_and_mirror(n: int) -> None:
    for value in (-1.0, -0.4, 0.0, 0.7, 1.0):
        low, high = rank_biserial_interval(n, value, 0.95)
        assert -1 <= low <= value <= high <= 1
        assert low < high
        assert rank_biserial_interval(n, -value, 0.95) == pytest.approx((-high, -low), abs=1e-6)
        wide = rank_biserial_interval(n, value, 0.99)
        assert wide[0] <= low
        assert wide[1] >= high
    assert np.isnan(rank_biserial_interval(0, np.nan, 0.95)).all()


@pytest.mark.parametrize("n", [6, 10, 20])
@pytest.mark.parametrize("kind", ["normal", "skewed", "heavy tails"])
def test_intervals_of_rank_biserials_cover(n: int, kind: str) -> None:
    """Planted: of 12,000 intervals .93 to .98 have to hold the mean of all.

    Six pairs have few ranks: without a shift exactly 60 of 64 ways to give them signs are covered.
    """
    rng = np.random.default_rng(n)
    centred = {
        "normal": rng.normal(size=(12_000, n)),
        "skewed": rng.exponential(size=(12_000, n)) - 1,
        "heavy tails": rng.standard_t(3, size=(12_000, n)),
    }[kind]
    for shift in (0.0, 0.6):
        differences = centred + shift
        ranks = np.sign(differences) * rankdata(np.abs(differences), axis=1)
        values = np.round(ranks.sum(axis=1) / (n * (n + 1) / 2), 12)
        limits = {v: rank_biserial_interval(n, v, 0.95) for v in set(values.tolist())}
        covers = [limits[v][0] <= values.mean() <= limits[v][1] for v in values.tolist()]
        assert 0.93 <= np.mean(covers) <= 0.98


@pytest.mark.parametrize("n", [4, 7, 13, 20])
def test_intervals_of_shifts_invert_scipys_test(n: int) -> None:
    """Witness: the definition, untied: shifts that scipy's test does not find; limits by search."""
    differences = np.random.default_rng(n).normal(0.3, 1, n)
    low, high = signed_rank_interval(differences, 0.1)
    walsh = np.unique([(a + b) / 2 for a in differences for b in differences])
    between = np.concatenate([[walsh[0] - 1], (walsh[1:] + walsh[:-1]) / 2, [walsh[-1] + 1]])
    held = [wilcoxon(differences - shift).pvalue >= 0.1 for shift in between]
    if held[0]:
        assert (low, high) == (-np.inf, np.inf)
    else:
        first, last = np.flatnonzero(held)[[0, -1]]
        assert (low, high) == pytest.approx((walsh[first - 1], walsh[last]))


@settings(max_examples=400)
@given(
    st.lists(st.integers(-4, 8), min_size=1, max_size=30),
    st.sampled_from((1, 7, 1_000)),
    st.floats(1e-4, 0.5),
)
def test_an_interval_of_shifts_leaves_out_zero_where_the_test_is_significant(
    steps: list[int], finer: int, alpha: float
) -> None:
    """Property, with ties and zeros (steps) and without, exact and by normal approximation."""
    rng = np.random.default_rng(len(steps))
    differences = (np.array(steps) * finer + rng.integers(0, finer, len(steps))) / finer
    low, high = signed_rank_interval(differences, alpha)
    p_value = signed_rank_p_values(differences[None])[0]
    if abs(p_value - alpha) > 1e-9:
        assert (low <= 0 <= high) == (p_value > alpha)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-2, 3), min_size=6, max_size=12), st.sampled_from((0.05, 0.02, 0.005)))
def test_zeros_do_not_make_an_interval_of_shifts_infinite(steps: list[int], alpha: float) -> None:
    """By hand: a shift beyond all n differences leaves one sign, with the p-value 2 / 2^n."""
    differences = np.array(steps) / 8
    low, high = signed_rank_interval(differences, alpha)
    if 2 * 0.5 ** len(steps) >= alpha:
        assert (low, high) == (-np.inf, np.inf)
    else:
        assert min(0, differences.min()) <= low <= high <= max(0, differences.max()) + 1e-12


@settings(max_examples=300)
@given(
    st.lists(st.one_of(st.floats(0, 1), st.sampled_from((0.001953125, 0.03125))), max_size=50),
    st.sampled_from(("bh", "holm")),
    st.integers(1, 5),
)
def test_the_familys_alpha_decides_as_its_correction(
    p_values: list[float], correction: Correction, needed: int
) -> None:
    """Property: significant are the p-values below it, and only these. Witness: statsmodels."""
    values = np.array([*p_values, np.nan])
    alpha = decision_alpha(values, 0.05, correction, needed)
    if p_values:
        method = {"bh": "fdr_bh", "holm": "holm"}[correction]
        adjusted = multipletests(p_values, method=method)[1]
        sure = abs(adjusted - 0.05) > 1e-9
        assert ((values < alpha)[:-1] == (adjusted < 0.05))[sure].all()


def test_the_alpha_of_benjamini_and_yekutieli() -> None:
    """By hand (2005): three of six significant at .05, so intervals at 1 - .05 * 3 / 6."""
    values = np.array([0.001, 0.002, 0.02, 0.2, 0.3, 0.9])
    assert decision_alpha(values, 0.05, "bh", 1) == pytest.approx([0.025] * 6)
    assert decision_alpha(values, 0.05, "holm", 1) == pytest.approx([0.05 / 5] * 6)
    assert decision_alpha(values[3:], 0.05, "bh", 1) == pytest.approx([0.05 / 3] * 3)
    alone = np.array([0.02, 0.5, 0.6])  # where two had to be as clear
    assert decision_alpha(alone, 0.05, "bh", 2) == pytest.approx([0.02, 0.1 / 3, 0.1 / 3])


def test_no_differences_and_no_pairs() -> None:
    assert signed_rank_test(np.ones(10), np.ones(10)).p_value == 1.0
    assert signed_rank_test(np.ones(20), np.ones(20)).p_value == 1.0
    empty = signed_rank_test(np.array([np.nan]), np.array([1.0]))
    assert (empty.n, np.isnan(empty.p_value)) == (0, True)


def test_false_discovery_by_hand() -> None:
    """Benjamini & Hochberg (1995): p m / rank, made monotone; nan is no part of the family."""
    adjusted = false_discovery(np.array([0.01, np.nan, 0.04, 0.03, 0.5]))
    assert adjusted[[0, 2, 3, 4]] == pytest.approx([0.04, 0.16 / 3, 0.16 / 3, 0.5])
    assert np.isnan(adjusted[1])
    assert np.isnan(false_discovery(np.array([np.nan]))).all()


def test_family_wise_p_values_are_those_of_statsmodels() -> None:
    """Holm (1979); nan is no part of the family."""
    p_values = np.random.default_rng(0).random(30) ** 3
    expected = multipletests(p_values, method="holm")[1]
    with_nan = np.insert(p_values, 7, np.nan)
    assert np.delete(family_wise(with_nan), 7) == pytest.approx(expected)
    assert np.isnan(family_wise(with_nan)[7])


def test_nine_models_make_a_family_of_45() -> None:
    """36 pairs and nine ceilings, as in the paper."""
    family = every_contrast("abcdefghi")
    assert len(set(family)) == 45
    assert sum(one.second == CEILING for one in family) == 9


def test_contrasts_are_read_as_stated(tmp_path: Path) -> None:
    path = tmp_path / "contrasts.csv"
    path.write_text("first,second,why\na,b,rules\nb,ceiling,\n")
    assert read_contrasts(path, ("a", "b")) == (
        ModelContrast("a", "b"),
        ModelContrast("b", "ceiling"),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("first,second\n", "a header and no rows"),
        ("model,second\na,b\n", "states no contrasts"),
        ("first,second\na,c\n", "compares 'a' with 'c'.*There are a, b"),
        ("first,second\nceiling,a\n", "compares 'ceiling'"),
        ("first,second\na,a\n", "compares 'a' with 'a'"),
        ("first,second\na,b\nb,a\n", "states a contrast twice"),
    ],
)
def test_impossible_contrasts_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "contrasts.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_contrasts(path, ("a", "b"))


@pytest.mark.parametrize(("units", "needed"), [(6, 29), (7, 15), (8, 8), (9, 4), (10, 2), (11, 1)])
def test_how_many_of_45_tests_must_be_as_clear_as_they_can(units: int, needed: int) -> None:
    """Brute force: so many tests of one sign everywhere, all others without any difference."""
    assert reach([units] * 45, 0.05).needed == needed
    for clear in range(46):
        differences = np.zeros((45, units))
        differences[:clear] = np.arange(1, units + 1)
        significant = false_discovery(signed_rank_p_values(differences)) < 0.05
        assert significant.any() == (clear >= needed)


@pytest.mark.parametrize("units", [(5, 5, 6), (6, 6, 9), (12, 2, 2), (4, 4), (6, 0)])
def test_families_of_unequal_tests_reach_what_the_clearest_data_reach(
    units: tuple[int, ...],
) -> None:
    """Brute force over which tests are as clear as they can be; 0 units: no test."""
    fewest = None
    for clear in product([False, True], repeat=len(units)):
        p_values = [
            np.nan if not n else 2 / 2**n if plain else 1.0
            for n, plain in zip(units, clear, strict=True)
        ]
        if (false_discovery(np.array(p_values)) < 0.05).any():
            fewest = min(fewest or 99, sum(clear))
    found = reach(units, 0.05)
    assert found.needed == fewest
    assert found.tests == sum(n > 0 for n in units)
    assert bool(found.cannot("groups")) == (fewest is None)


@pytest.mark.parametrize("units", [(5, 6), (6, 6), (6, 2), (7, 7, 7), (9,) * 6, (7,) * 6])
def test_holm_needs_one_clear_test_or_finds_nothing(units: tuple[int, ...]) -> None:
    """Brute force: all tests as clear as they can be."""
    p_values = np.array([2 / 2**n for n in units])
    possible = (family_wise(p_values) < 0.05).any()
    assert reach(units, 0.05, "holm").needed == (1 if possible else None)
    caution = reach(units, 0.05, "holm").caution("groups", 0.05)
    assert ("family-wise error rate" in caution) == (not possible)


def test_participants_find_differences_that_items_drawn_at_random_make() -> None:
    """Models that know nothing: tests of 20 people who saw the same 90 items find differences.

    Items vary by .8 and people by .08, log odds, as in the 2023 study. Ten groups with items of
    their own find hardly any.
    """
    chance = np.random.default_rng(0)

    def share(groups: int, people: int) -> float:
        found = []
        for _ in range(40):
            odds = chance.normal(0, 0.8, (groups, 1, 90)) + chance.normal(0, 0.08, (people, 1))
            chosen = np.sign(chance.random(odds.shape) - 1 / (1 + np.exp(odds)))
            models = chance.choice([-1, 1], (6, groups, 90))
            agreed = np.einsum("gpt,mgt->mgp", chosen, models)
            values = agreed.mean(axis=2) if groups > 1 else agreed[:, 0]
            one, two = np.triu_indices(6, 1)
            found.append(false_discovery(signed_rank_p_values(values[one] - values[two])) < 0.05)
        return float(np.mean(found))

    assert share(1, 20) > 0.08
    assert share(10, 2) < 0.01
