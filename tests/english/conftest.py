"""Derivations that several test files look at."""

import random

import pytest

from contstim.english import Derivation, sample_tree


@pytest.fixture(scope="session")
def derivations() -> list[Derivation]:
    """Two thousand derivations of every length, repeats included."""
    rng = random.Random(20)
    return [sample_tree(rng) for _ in range(2000)]
