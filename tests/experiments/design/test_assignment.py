"""Assignment of trials against exhaustive search over every assignment there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contstim.errors import InfeasibleError, InputError
from contstim.experiments.design import assignment
from contstim.experiments.design.assignment import Item, assign_groups
from contstim.optimization.selection.programs import assign
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
def test_an_assignment_is_found_exactly_where_there_is_one(
    problem: tuple[list[Item], int],
) -> None:
    items, n_groups = problem
    exists = any(
        holds(items, groups, n_groups) for groups in product(range(n_groups), repeat=len(items))
    )
    if exists:
        assert holds(items, assign_groups(items, n_groups)[0].groups.tolist(), n_groups)
    else:
        with pytest.raises(InfeasibleError, match=r"no way|stands in \d+ trials"):
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
        with pytest.raises(InfeasibleError, match=r"no way|stands in \d+ trials"):
            assign_groups(items, n_groups, before=before)
        return
    after, _ = assign_groups(items, n_groups, before=before)
    groups = after.groups.tolist()
    assert holds(items, groups, n_groups)
    assert sum(groups[i] == g for i, g in before.items()) == max(kept)
    if before:
        assert after.kept == after.kept_bound == max(kept)


def test_the_search_takes_over_where_matching_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignment, "_deal", lambda *_: None)
    items = [("a", (f"t{i}", f"t{(i + 1) % 6}")) for i in range(6)]
    found, how = assign_groups(items, 3, seed=5)
    assert holds(items, found.groups.tolist(), 3)
    assert "CP-SAT" in how["solver"]
    again, _ = assign_groups(items, 3, seed=5)
    np.testing.assert_array_equal(found.groups, again.groups)


def test_the_search_proves_that_there_is_no_way() -> None:
    """Three items that pairwise share a text do not fit into two groups."""
    apart = [[0, 1], [1, 2], [0, 2]]
    assert assign(2, [[0, 1, 2, 3]], apart, n_items=4, seed=0, seconds=9) is None


def test_seeds_give_different_assignments_and_the_same_one_again() -> None:
    items = [("a", (f"t{i}",)) for i in range(12)]
    first, second, other = (assign_groups(items, 4, seed=s)[0].groups.tolist() for s in (1, 1, 2))
    assert first == second != other


@pytest.mark.parametrize(
    ("items", "n_groups", "error", "message"),
    [
        ([("a", ("t",))], 0, InputError, "at least one group, not 0"),
        ([("a", ("t", "t"))], 1, InputError, "compared with itself"),
        ([("a", ("t",))], 2, InfeasibleError, "1 trial of a cannot be dealt out evenly"),
        (
            [("a", ("t", f"u{i}")) for i in range(4)],
            2,
            InfeasibleError,
            "'t' stands in 4 trials",
        ),
    ],
)
def test_what_cannot_be_is_named(
    items: list[Item], n_groups: int, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        assign_groups(items, n_groups)
