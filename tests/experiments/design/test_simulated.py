"""Noise of simulated participants against brute force."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from contstim.errors import InputError
from contstim.experiments.design.simulated import calibrate_noise, lower_ceiling


@pytest.mark.parametrize("raters", [2, 3, 4, 5])
def test_lower_ceiling_is_the_mean_over_all_possible_answers(raters: int) -> None:
    """Every pattern of answers, weighted by its probability; a tied majority counts one half."""
    differences, noise = np.array([-3.0, 0.0, 0.5, 7.0]), 4.0
    total = 0.0
    for p in norm.cdf(differences / noise):
        for answers in product((0, 1), repeat=raters):
            weight = np.prod([p if a else 1 - p for a in answers])
            for person in range(raters):
                others = np.delete(answers, person)
                majority = (np.sign(others.mean() - 0.5) + 1) / 2
                agrees = 0.5 if majority == 0.5 else float(majority == answers[person])
                total += weight * agrees / raters / len(differences)
    assert lower_ceiling(differences, noise, raters) == pytest.approx(total, abs=1e-12)


@settings(max_examples=30)
@given(st.floats(0.55, 0.95), st.integers(2, 12), st.integers(0, 99))
def test_calibrated_noise_gives_the_stated_ceiling(ceiling: float, raters: int, seed: int) -> None:
    differences = np.random.default_rng(seed).normal(0, 9, 300)
    noise = calibrate_noise(differences, ceiling, raters=raters)
    assert lower_ceiling(differences, noise, raters) == pytest.approx(ceiling, abs=1e-9)


@pytest.mark.parametrize(("ceiling", "raters"), [(0.5, 10), (1.0, 10), (0.2, 10), (0.7, 1)])
def test_ceilings_that_no_noise_gives_are_refused(ceiling: float, raters: int) -> None:
    with pytest.raises(InputError, match="noise"):
        calibrate_noise(np.array([1.0, -2.0]), ceiling, raters=raters)
