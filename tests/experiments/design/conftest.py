"""A study of power that several tests look at."""

from __future__ import annotations

import pytest

from contstim.experiments.design.power import DesignPower, design_power
from tests.experiments.design.test_power import DESIGN, scores


@pytest.fixture(scope="session")
def power() -> DesignPower:
    """Four groups of five, three models, all kinds of trials."""
    return design_power(DESIGN.trials, scores(), simulations=2, participants=5)
