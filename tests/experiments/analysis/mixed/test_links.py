"""Probabilities of ratings and their derivatives: scipy's distributions, and differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import logistic, norm

from contstim.arrays import FloatArray
from contstim.experiments.analysis.mixed.links import Link, cell_derivatives

THRESHOLDS = np.array([-np.inf, -1.2, -0.5, 0.1, 0.8, 1.9, np.inf])
LEVELS = np.arange(6)
LINKS: tuple[Link, ...] = ("probit", "logit")


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("eta", [-3.0, 0.2, 2.5])
def test_probabilities_are_those_of_the_distribution(link: Link, eta: float) -> None:
    noise = norm if link == "probit" else logistic
    cells = cell_derivatives(link, LEVELS, np.full(6, eta), THRESHOLDS)
    expected = np.diff(noise.cdf(THRESHOLDS - eta))
    assert np.exp(cells.log_prob) == pytest.approx(expected, rel=1e-10)
    assert np.exp(cells.log_prob).sum() == pytest.approx(1)


@pytest.mark.parametrize("link", LINKS)
def test_derivatives_are_the_limits_of_differences(link: Link) -> None:
    eta, step = np.linspace(-2, 2, 6), 1e-5

    def at(name: str, shift: float, upper: float, lower: float) -> FloatArray:
        # A level's own thresholds move, each for itself
        places = np.arange(7)
        rows = [
            cell_derivatives(
                link,
                np.array([level]),
                np.array([eta[level] + shift]),
                THRESHOLDS + upper * (places == level + 1) + lower * (places == level),
            )
            for level in LEVELS
        ]
        return np.array([getattr(row, name)[0] for row in rows])

    def slope(name: str, *change: float) -> FloatArray:
        ahead, behind = at(name, *change), at(name, *(-value for value in change))
        return (ahead - behind) / (2 * step)

    cells = cell_derivatives(link, LEVELS, eta, THRESHOLDS)
    for name, of, change in (
        ("eta", "log_prob", (step, 0.0, 0.0)),
        ("eta_2", "eta", (step, 0.0, 0.0)),
        ("eta_3", "eta_2", (step, 0.0, 0.0)),
        ("upper", "log_prob", (0.0, step, 0.0)),
        ("lower", "log_prob", (0.0, 0.0, step)),
        ("upper_eta", "eta", (0.0, step, 0.0)),
        ("lower_eta", "eta", (0.0, 0.0, step)),
        ("upper_eta_2", "eta_2", (0.0, step, 0.0)),
        ("lower_eta_2", "eta_2", (0.0, 0.0, step)),
    ):
        assert getattr(cells, name) == pytest.approx(slope(of, *change), rel=1e-6, abs=1e-7), name


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("eta", [-60.0, -30.0, 30.0, 60.0])
def test_the_least_likely_ratings_have_finite_logarithms(link: Link, eta: float) -> None:
    """Witness: the tail's own logarithm, the lower end a factor exp(-20) or less beside it."""
    noise = norm if link == "probit" else logistic
    cells = cell_derivatives(link, LEVELS, np.full(6, eta), THRESHOLDS)
    for field in vars(cells).values():
        assert np.isfinite(field).all()
    last = noise.logcdf(THRESHOLDS[1] - eta) if eta > 0 else noise.logsf(THRESHOLDS[-2] - eta)
    assert cells.log_prob[0 if eta > 0 else 5] == pytest.approx(last, rel=1e-10)
    assert (cells.eta_2 < 1e-12).all()  # log-concave
