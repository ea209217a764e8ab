"""What participants see: every trial once, sides balanced, orders of their own."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contstim.errors import InputError
from contstim.experiments.design.assignment import presentation
from contstim.items.stimuli import Condition
from tests.examples import examples
from tests.experiments.stimuli import small_design

TRIALS = small_design().trials


@settings(max_examples=examples(50))
@given(st.integers(0, 2**31), st.integers(1, 3), st.integers(1, 40))
def test_each_trial_once_in_places_of_their_own_with_balanced_sides(
    seed: int, group: int, participant: int
) -> None:
    shown = presentation(TRIALS, group=group, participant=participant, seed=seed)
    assert [s.position for s in shown] == list(range(1, len(shown) + 1))
    assert {s.trial for s in shown} == {t for t in TRIALS if t.group == group}
    for condition in Condition:
        sides = Counter(s.left for s in shown if s.trial.condition == condition)
        assert abs(sides[1] - sides[2]) <= 1


def test_neighbours_see_mirrored_sides() -> None:
    one, two = (presentation(TRIALS, group=1, participant=p, seed=8) for p in (1, 2))
    sides = {s.trial.trial_id: s.left for s in one}
    assert all(s.left == 3 - sides[s.trial.trial_id] for s in two)


def test_seed_participant_and_group_decide_and_nothing_else() -> None:
    def orders(seed: int, participant: int) -> list[str]:
        shown = presentation(TRIALS[::-1], group=1, participant=participant, seed=seed)
        return [s.trial.trial_id for s in shown]

    same = [s.trial.trial_id for s in presentation(TRIALS, group=1, participant=1, seed=0)]
    assert orders(0, 1) == same
    assert same != orders(0, 2)
    assert same != orders(1, 1)


def test_sides_and_places_are_uniform_over_participants() -> None:
    """Binomial and chi-squared limits that a fair draw passes but once in a million."""
    trial = next(t for t in TRIALS if t.group == 2)
    seen = [
        next(s for s in presentation(TRIALS, group=2, participant=p, seed=3) if s.trial == trial)
        for p in range(1, 401, 2)
    ]
    left = sum(s.left == 1 for s in seen)
    assert 66 <= left <= 134
    assert 1 <= min(s.position for s in seen) <= 5
    n = len([t for t in TRIALS if t.group == 2])
    assert n - 4 <= max(s.position for s in seen) <= n


@pytest.mark.parametrize(("group", "participant"), [(9, 1), (1, 0)])
def test_participants_that_cannot_be_are_refused(group: int, participant: int) -> None:
    with pytest.raises(InputError, match="no participant"):
        presentation(TRIALS, group=group, participant=participant, seed=0)
