"""Families of contrasts, against statsmodels, brute force and results by hand."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from contstim.errors import InputError
from contstim.experiments.analysis import families
from contstim.experiments.analysis.signed_ranks import signed_rank_p_values
from tests.examples import examples


@settings(max_examples=examples(60))
@given(
    st.lists(
        st.one_of(st.floats(0, 1), st.sampled_from((0.001953125, 0.03125))), min_size=1, max_size=50
    ),
    st.sampled_from(("bh", "holm")),
    st.integers(1, 5),
)
def test_decision_alpha_matches_statsmodels(
    p_values: list[float], correction: families.Correction, needed: int
) -> None:
    """Property: the p-values below alpha, and no others, are significant. Witness: statsmodels."""
    values = np.array([*p_values, np.nan])
    alpha = families.decision_alpha(values, 0.05, correction, needed)
    method = {"bh": "fdr_bh", "holm": "holm"}[correction]
    expected = multipletests(p_values, method=method)[1]
    is_clear = abs(expected - 0.05) > 1e-9
    assert ((values < alpha)[:-1] == (expected < 0.05))[is_clear].all()


def test_alpha_of_benjamini_and_yekutieli() -> None:
    """By hand (2005): three of six are significant at .05, so levels are 1 - .05 * 3 / 6."""
    values = np.array([0.001, 0.002, 0.02, 0.2, 0.3, 0.9])
    assert families.decision_alpha(values, 0.05, "bh", 1) == pytest.approx([0.025] * 6)
    assert families.decision_alpha(values, 0.05, "holm", 1) == pytest.approx([0.05 / 5] * 6)
    assert families.decision_alpha(values[3:], 0.05, "bh", 1) == pytest.approx([0.05 / 3] * 3)
    one_clear = np.array([0.02, 0.5, 0.6])  # two must be this clear
    levels = families.decision_alpha(one_clear, 0.05, "bh", 2)
    assert levels == pytest.approx([0.02, 0.1 / 3, 0.1 / 3])


@pytest.mark.parametrize(("correction", "method"), [("bh", "fdr_bh"), ("holm", "holm")])
def test_many_families_match_statsmodels(correction: families.Correction, method: str) -> None:
    """Statsmodels adjusts one family a call. NaN belongs to no family; one family is empty."""
    rng = np.random.default_rng(0)
    p_values = rng.random((20, 30)) ** 3
    p_values[rng.random(p_values.shape) < 0.2] = np.nan
    p_values[:, 4] = p_values[7] = np.nan
    for row, adjusted in zip(p_values, families.adjust(p_values, correction), strict=True):
        tested = ~np.isnan(row)
        assert np.isnan(adjusted[~tested]).all()
        if tested.any():
            assert adjusted[tested] == pytest.approx(multipletests(row[tested], method=method)[1])


def test_contrasts_are_read_from_csv(tmp_path: Path) -> None:
    path = tmp_path / "contrasts.csv"
    path.write_text("first,second,why\na,b,rules\nb,ceiling,\n")
    assert families.read_contrasts(path, ("a", "b")) == (("a", "b"), ("b", "ceiling"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("first,second\n", "a header but no rows"),
        ("model,second\na,b\n", "lacks the columns first; its columns are model"),
        ("first,second\na,c\n", "compares 'a' with 'c'.*The models are a, b"),
        ("first,second\nceiling,a\n", "compares 'ceiling'"),
        ("first,second\na,a\n", "compares 'a' with 'a'"),
        ("first,second\na,b\nb,a\n", "contains a contrast twice"),
    ],
)
def test_invalid_contrasts_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "contrasts.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        families.read_contrasts(path, ("a", "b"))


@pytest.mark.parametrize(("units", "needed"), [(6, 29), (7, 15), (8, 8), (9, 4), (10, 2), (11, 1)])
def test_detectability_of_45_tests(units: int, needed: int) -> None:
    """Brute force: `clear` tests with differences of one sign, all others with no difference."""
    assert families.detectability([units] * 45, 0.05).needed == needed
    for clear in range(46):
        differences = np.zeros((45, units))
        differences[:clear] = np.arange(1, units + 1)
        significant = families.adjust(signed_rank_p_values(differences)) < 0.05
        assert significant.any() == (clear >= needed)


@pytest.mark.parametrize("units", [(5, 5, 6), (6, 6, 9), (12, 2, 2), (4, 4), (6, 0)])
def test_detectability_of_unequal_tests(units: tuple[int, ...]) -> None:
    """Brute force over the sets of tests with the smallest possible p; 0 units: no test."""
    n_fewest = None
    for clear in product([False, True], repeat=len(units)):
        p_values = [
            np.nan if not n else 2 / 2**n if is_clear else 1.0
            for n, is_clear in zip(units, clear, strict=True)
        ]
        if (families.adjust(np.array(p_values)) < 0.05).any():
            n_fewest = min(n_fewest or 99, sum(clear))
    detectability = families.detectability(units, 0.05)
    assert detectability.needed == n_fewest
    assert detectability.tests == sum(n > 0 for n in units)
    assert bool(detectability.cannot("groups")) == (n_fewest is None)


@pytest.mark.parametrize("units", [(5, 6), (6, 6), (6, 2), (7, 7, 7), (9,) * 6, (7,) * 6])
def test_holm_needs_one_clear_test_or_is_impossible(units: tuple[int, ...]) -> None:
    """Brute force: all tests have the smallest possible p."""
    p_values = np.array([2 / 2**n for n in units])
    possible = (families.adjust(p_values, "holm") < 0.05).any()
    assert families.detectability(units, 0.05, "holm").needed == (1 if possible else None)
    caution = families.detectability(units, 0.05, "holm").caution("groups", 0.05)
    assert ("family-wise error rate" in caution) == (not possible)
