"""Derivations that several test files inspect."""

import random

import pytest

from contstim.english import Derivation, sample_tree


@pytest.fixture(scope="session")
def derivations() -> list[Derivation]:
    """Two thousand derivations of all lengths, including repeats."""
    rng = random.Random(20)
    return [sample_tree(rng) for _ in range(2000)]
