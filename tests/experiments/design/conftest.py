"""A power analysis shared by several tests."""

import pytest

from contstim.experiments.design import power as module
from contstim.experiments.design.power import DesignPower, design_power
from tests.experiments.design.scored_design import DESIGN, scores


@pytest.fixture(scope="session")
def power() -> DesignPower:
    """Four groups of five, three models, all kinds of trials, and smaller experiments."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_DIVISORS", (2,))
        return design_power(DESIGN.trials, scores(), simulations=2, participants=5)
