"""Assignment against every assignment there is; orders and sides that participants see."""

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


def holds(items: Sequence[Item], groups: Sequence[int], n_groups: int) -> bool:
    dealt_to = list(zip(items, groups, strict=True))
    met = Counter((text, g) for (_, texts), g in dealt_to for text in texts)
    dealt = Counter((share, g) for (share, _), g in dealt_to)
    each = {dealt[share, g] for share in {share for share, _ in items} for g in range(n_groups)}
    sizes = Counter(share for share, _ in items)
    even = all(dealt[s, g] * n_groups == sizes[s] for s in sizes for g in range(n_groups))
    return max(met.values(), default=0) <= 1 and even and bool(each)


@st.composite
def small_problems(draw: st.DrawFn) -> tuple[list[Item], int]:
    n_groups = draw(st.sampled_from([2, 3]))
    shares = draw(st.sampled_from([("a",), ("a", "b")]))
    each = draw(st.sampled_from([1, 2])) if n_groups == 2 else 1
    texts = st.lists(st.sampled_from("pqrstuv"), min_size=1, max_size=2, unique=True)
    return [
        (share, tuple(draw(texts))) for share in shares for _ in range(n_groups * each)
    ], n_groups


@settings(max_examples=examples(40))
@given(small_problems())
def test_an_assignment_is_found_exactly_where_there_is_one(problem: tuple[list[Item], int]) -> None:
    items, n_groups = problem
    exists = any(
        holds(items, groups, n_groups) for groups in product(range(n_groups), repeat=len(items))
    )
    if exists:
        assert holds(items, assign_groups(items, n_groups).tolist(), n_groups)
    else:
        with pytest.raises(InfeasibleError, match=r"cannot be assigned|occurs in \d+ trials"):
            assign_groups(items, n_groups)


@settings(max_examples=examples(25))
@given(small_problems(), st.lists(st.integers(0, 3), min_size=8, max_size=8))
def test_most_items_stay_in_their_groups(problem: tuple[list[Item], int], drawn: list[int]) -> None:
    """Witness: every assignment there is. A group that is too high stands for a new item."""
    items, n_groups = problem
    before = {i: g for i, g in enumerate(drawn[: len(items)]) if g < n_groups}
    kept = [
        sum(groups[i] == g for i, g in before.items())
        for groups in product(range(n_groups), repeat=len(items))
        if holds(items, groups, n_groups)
    ]
    if not kept:
        with pytest.raises(InfeasibleError, match=r"cannot be assigned|occurs in \d+ trials"):
            assign_groups(items, n_groups, earlier_groups=[before])
        return
    groups = assign_groups(items, n_groups, earlier_groups=[before]).tolist()
    assert holds(items, groups, n_groups)
    assert sum(groups[i] == g for i, g in before.items()) == max(kept)


def test_seeds_give_different_assignments_and_the_same_one_again() -> None:
    items = [("a", (f"t{i}",)) for i in range(12)]
    first, second, other = (assign_groups(items, 4, seed=s).tolist() for s in (1, 1, 2))
    assert first == second != other


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
def test_errors(items: list[Item], n_groups: int, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        assign_groups(items, n_groups)


TRIALS = small_design().trials


@settings(max_examples=examples(25))
@given(st.integers(0, 2**31), st.integers(1, 3), st.integers(1, 40))
def test_each_trial_once_with_balanced_sides(seed: int, group: int, participant: int) -> None:
    shown = presentation(TRIALS, group=group, participant=participant, seed=seed)
    assert sorted(t.trial_id for t, _ in shown) == sorted(
        t.trial_id for t in TRIALS if t.group == group
    )
    for condition in Condition:
        sides = Counter(left for trial, left in shown if trial.condition == condition)
        assert abs(sides[1] - sides[2]) <= 1


def test_neighbours_see_mirrored_sides() -> None:
    one, two = (presentation(TRIALS, group=1, participant=p, seed=8) for p in (1, 2))
    sides = {trial.trial_id: left for trial, left in one}
    assert all(left == 3 - sides[trial.trial_id] for trial, left in two)


def test_seed_participant_and_group_decide_and_nothing_else() -> None:
    def orders(seed: int, participant: int) -> list[str]:
        shown = presentation(TRIALS[::-1], group=1, participant=participant, seed=seed)
        return [trial.trial_id for trial, _ in shown]

    same = [trial.trial_id for trial, _ in presentation(TRIALS, group=1, participant=1, seed=0)]
    assert orders(0, 1) == same
    assert same != orders(0, 2)
    assert same != orders(1, 1)


def test_sides_and_places_are_uniform_over_participants() -> None:
    """Binomial and chi-squared limits that a fair draw passes but once in a million."""
    trial = next(t for t in TRIALS if t.group == 2)
    seen = [
        next((place, left) for place, (t, left) in enumerate(shown, start=1) if t == trial)
        for shown in (
            presentation(TRIALS, group=2, participant=p, seed=3) for p in range(1, 401, 2)
        )
    ]
    left = sum(side == 1 for _, side in seen)
    assert 66 <= left <= 134
    assert 1 <= min(seen)[0] <= 5
    n = len([t for t in TRIALS if t.group == 2])
    assert n - 4 <= max(seen)[0] <= n


@pytest.mark.parametrize(("group", "participant"), [(9, 1), (1, 0)])
def test_participants_that_cannot_be_are_refused(group: int, participant: int) -> None:
    with pytest.raises(InputError, match="no participant"):
        presentation(TRIALS, group=group, participant=participant, seed=0)
