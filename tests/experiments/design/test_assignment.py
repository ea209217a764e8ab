"""Assignment to groups, against all possible assignments; orders and sides of presentations."""

from collections import Counter
from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contstim.errors import InfeasibleError, InputError
from contstim.experiments.design.assignment import Item, assign_groups, presentation
from contstim.items.stimuli import Condition
from tests.examples import examples
from tests.experiments.stimuli import small_design


def is_valid(items: Sequence[Item], groups: Sequence[int], n_groups: int) -> bool:
    assignments = list(zip(items, groups, strict=True))
    text_counts = Counter((text, g) for (_, texts), g in assignments for text in texts)
    share_counts = Counter((share, g) for (share, _), g in assignments)
    sizes = Counter(share for share, _ in items)
    is_even = all(share_counts[s, g] * n_groups == sizes[s] for s in sizes for g in range(n_groups))
    return max(text_counts.values(), default=0) <= 1 and is_even


@st.composite
def small_problems(draw: st.DrawFn) -> tuple[list[Item], int]:
    n_groups = draw(st.sampled_from([2, 3]))
    shares = draw(st.sampled_from([("a",), ("a", "b")]))
    per_group = draw(st.sampled_from([1, 2])) if n_groups == 2 else 1
    texts = st.lists(st.sampled_from("pqrstuv"), min_size=1, max_size=2, unique=True)
    return [
        (share, tuple(draw(texts))) for share in shares for _ in range(n_groups * per_group)
    ], n_groups


@settings(max_examples=examples(40))
@given(small_problems())
def test_assignment_is_found_if_and_only_if_one_exists(problem: tuple[list[Item], int]) -> None:
    items, n_groups = problem
    exists = any(
        is_valid(items, groups, n_groups) for groups in product(range(n_groups), repeat=len(items))
    )
    if exists:
        assert is_valid(items, assign_groups(items, n_groups).tolist(), n_groups)
    else:
        with pytest.raises(InfeasibleError, match=r"cannot be assigned|occurs in \d+ trials"):
            assign_groups(items, n_groups)


@settings(max_examples=examples(25))
@given(small_problems(), st.lists(st.integers(0, 3), min_size=8, max_size=8))
def test_most_items_stay_in_their_groups(problem: tuple[list[Item], int], drawn: list[int]) -> None:
    """Witness: all possible assignments. A drawn group that does not exist marks a new item."""
    items, n_groups = problem
    earlier_groups = {i: g for i, g in enumerate(drawn[: len(items)]) if g < n_groups}
    kept_counts = [
        sum(groups[i] == g for i, g in earlier_groups.items())
        for groups in product(range(n_groups), repeat=len(items))
        if is_valid(items, groups, n_groups)
    ]
    if not kept_counts:
        with pytest.raises(InfeasibleError, match=r"cannot be assigned|occurs in \d+ trials"):
            assign_groups(items, n_groups, earlier_groups=[earlier_groups])
        return
    groups = assign_groups(items, n_groups, earlier_groups=[earlier_groups]).tolist()
    assert is_valid(items, groups, n_groups)
    assert sum(groups[i] == g for i, g in earlier_groups.items()) == max(kept_counts)


def test_seed_determines_the_assignment() -> None:
    items = [("a", (f"t{i}",)) for i in range(12)]
    first, second, other_seed = (assign_groups(items, 4, seed=s).tolist() for s in (1, 1, 2))
    assert first == second != other_seed


@pytest.mark.parametrize(
    ("items", "n_groups", "error", "message"),
    [
        ([("a", ("t",))], 0, InputError, "groups must be at least 1, got 0"),
        ([("a", ("t", "t"))], 1, InputError, "compared with itself"),
        ([("a", ("t",))], 2, InfeasibleError, "1 trial of a cannot be distributed evenly"),
        ([("a", ("t", f"u{i}")) for i in range(4)], 2, InfeasibleError, "'t' occurs in 4 trials"),
        ([("a", (*t,)) for t in ("pq", "qr", "pr", "s")], 2, InfeasibleError, "cannot be assigned"),
    ],
)
def test_errors_of_impossible_assignments(
    items: list[Item], n_groups: int, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        assign_groups(items, n_groups)


TRIALS = small_design().trials


@settings(max_examples=examples(25))
@given(st.integers(0, 2**31), st.integers(1, 3), st.integers(1, 40))
def test_sides_of_a_presentation_are_balanced(seed: int, group: int, number: int) -> None:
    presentation_order = presentation(TRIALS, group=group, participant=number, seed=seed)
    assert sorted(t.trial_id for t, _ in presentation_order) == sorted(
        t.trial_id for t in TRIALS if t.group == group
    )
    for condition in Condition:
        sides = Counter(left for trial, left in presentation_order if trial.condition == condition)
        assert abs(sides[1] - sides[2]) <= 1


def test_neighbours_see_mirrored_sides() -> None:
    first, second = (presentation(TRIALS, group=1, participant=p, seed=8) for p in (1, 2))
    sides = {trial.trial_id: left for trial, left in first}
    assert all(left == 3 - sides[trial.trial_id] for trial, left in second)


def test_presentation_depends_on_seed_participant_and_group() -> None:
    def list_trial_ids(seed: int, participant: int) -> list[str]:
        presentation_order = presentation(TRIALS[::-1], group=1, participant=participant, seed=seed)
        return [trial.trial_id for trial, _ in presentation_order]

    expected = [trial.trial_id for trial, _ in presentation(TRIALS, group=1, participant=1, seed=0)]
    assert list_trial_ids(0, 1) == expected
    assert expected != list_trial_ids(0, 2)
    assert expected != list_trial_ids(1, 1)


def test_sides_and_positions_are_uniform_over_participants() -> None:
    """Binomial and chi-squared limits that a fair draw misses once in a million."""
    trial = next(t for t in TRIALS if t.group == 2)
    position_and_side = [
        next(
            (position, left)
            for position, (t, left) in enumerate(presentation_order, start=1)
            if t == trial
        )
        for presentation_order in (
            presentation(TRIALS, group=2, participant=p, seed=3) for p in range(1, 401, 2)
        )
    ]
    n_left = sum(side == 1 for _, side in position_and_side)
    assert 66 <= n_left <= 134
    assert 1 <= min(position_and_side)[0] <= 5
    n = len([t for t in TRIALS if t.group == 2])
    assert n - 4 <= max(position_and_side)[0] <= n


@pytest.mark.parametrize(("group", "participant"), [(9, 1), (1, 0)])
def test_impossible_participants_are_rejected(group: int, participant: int) -> None:
    with pytest.raises(InputError, match="no participant"):
        presentation(TRIALS, group=group, participant=participant, seed=0)
