"""Populations of participants and items, against quadrature and simulated participants."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from contstim.experiments.analysis.measures import accuracy_lower
from contstim.experiments.design.population import Population

SIGNAL = np.array([-1.5, 0.0, 0.4, 2.0])
PEOPLE = Population("a", SIGNAL, np.array([0.0, 1.0, 0.7, 2.0]), 0.4)


def test_choice_probabilities_match_integrals() -> None:
    """Witness: nested numerical integration over the definition."""
    for signal, item_sd, p in zip(
        SIGNAL, PEOPLE.item_sd, PEOPLE.choice_probabilities(), strict=True
    ):

        def choice_probability(
            follow: float, signal: float = signal, item_sd: float = item_sd
        ) -> float:
            return float(norm.cdf(signal * (1 + follow) / np.hypot(1.0, item_sd)))

        expected = quad(
            lambda f: choice_probability(f) * norm.pdf(f, scale=PEOPLE.following),
            -4.0,
            4.0,
            epsabs=1e-10,
        )[0]
        assert p == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("raters", [2, 3, 10])
def test_ceiling_matches_simulated_groups(raters: int) -> None:
    """Witness: `accuracy_lower` of 20,000 groups; the standard error is below .003."""
    rng = np.random.default_rng(raters)
    answers = PEOPLE.answers(np.tile(np.arange(4), (20_000, 1)), raters, rng)
    # Each group rates four trials: (raters, n_groups * 4)
    ratings = np.where(answers, 1.0, -1.0).swapaxes(0, 1).reshape(raters, -1)
    assert PEOPLE.lower_ceiling(raters) == pytest.approx(accuracy_lower(ratings).mean(), abs=0.009)


def test_participants_share_items_and_vary_in_following() -> None:
    """Two participants agree more on one item than on two; responses of a participant correlate."""
    items = Population("a", np.zeros(2), np.full(2, 1.0), 0.0)
    rng = np.random.default_rng(0)
    rows = np.zeros((40_000, 2), dtype=np.int64)
    answers = items.answers(rows, 2, rng)
    # Two normal variables with correlation r have one sign with 1/2 + asin(r) / pi (Sheppard 1899).
    same_sign = 0.5 + np.arcsin(0.5) / np.pi
    assert (answers[:, 0, 0] == answers[:, 1, 0]).mean() == pytest.approx(same_sign, abs=0.01)
    assert (answers[:, 0, 0] == answers[:, 1, 1]).mean() == pytest.approx(0.5, abs=0.01)
    following = Population("a", np.full(2, 1.0), np.zeros(2), 1.0)
    answers = following.answers(rows, 2, rng)
    covariance = answers[:, 0].all(axis=1).mean() - answers[:, 0, 0].mean() ** 2
    assert covariance > 0.05
