"""Assignment of trials against exhaustive search over every assignment there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contstim.errors import InfeasibleError, InputError
from contstim.experiments.design.assignment import Item, assign_groups
from tests.examples import examples


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


@settings(max_examples=examples(80))
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


@settings(max_examples=examples(50))
@given(small_problems(), st.lists(st.integers(0, 3), min_size=8, max_size=8))
def test_as_many_items_stay_in_their_groups_as_in_any_assignment(
    problem: tuple[list[Item], int], drawn: list[int]
) -> None:
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


def test_there_is_no_way_if_three_items_exclude_each_other_in_two_groups() -> None:
    items = [("a", ("p", "q")), ("a", ("q", "r")), ("a", ("p", "r")), ("a", ("s",))]
    with pytest.raises(InfeasibleError, match="cannot be assigned"):
        assign_groups(items, 2)


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
    ],
)
def test_what_cannot_be_is_named(
    items: list[Item], n_groups: int, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        assign_groups(items, n_groups)
