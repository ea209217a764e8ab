"""Exact assignment of trials to groups of participants, so that no group meets a text twice."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contstim.errors import InfeasibleError, InputError
from contstim.optimization.selection.flow import SOLVER, solver_version, transportation
from contstim.optimization.selection.programs import ASSIGNMENT, Assignment, assign
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.files.arrays import IntArray

_TRIES = 20  # orders in which shares are dealt out before the search takes over


Item: TypeAlias = tuple[str, tuple[str, ...]]
"""A share, which is dealt out evenly, and texts of which no group may meet one twice."""


def assign_groups(
    items: Sequence[Item],
    n_groups: int,
    *,
    seed: int = 0,
    seconds: float = 60.0,
    before: Mapping[int, int] | None = None,
) -> tuple[Assignment, dict[str, str]]:
    """Deal every share out evenly over the groups, so that no group meets a text twice.

    One share after the other is matched to the groups that have met none of its texts yet, at
    random otherwise. Where texts belong to one source each (a triplet's three trials) that always
    succeeds: what is left to each share is a regular bipartite graph, which has a perfect matching
    (König 1916). Where texts are shared, an unlucky order may fail; after some orders CP-SAT
    searches all assignments, or proves that there is none. Where items were in groups before, as
    many as possible stay there; that is searched by CP-SAT, which also proves how many can.

    Args:
        items: what to assign.
        n_groups: at least 1.
        seed: decides among assignments.
        seconds: how long CP-SAT may take.
        before: place of an item → the 0-based group that it was in.

    Returns:
        The assignment, and by which `method`, `solver` and `version` it was found.

    Raises:
        InputError: no group, or an item that holds a text twice.
        InfeasibleError: there is no such assignment; says why.
        VerificationError: the time ended without an answer.
    """
    _check(items, n_groups)
    how = {"method": "one kind of trial after the other", "solver": SOLVER}
    how["version"] = solver_version()
    rng = np.random.default_rng(seed)
    for _ in range(0 if before else _TRIES):
        groups = _deal(items, n_groups, rng)
        if groups is not None:
            return Assignment(groups, 0, 0), how
    # No order of shares worked, or groups from before count: CP-SAT, with one group for each item,
    # every share even, and items that have a text in common in different groups.
    found = assign(
        n_groups,
        list(_places([share] for share, _ in items).values()),
        [users for users in _users(items).values() if len(users) > 1],
        n_items=len(items),
        seed=seed,
        seconds=seconds,
        before=before,
    )
    if found is None:
        raise InfeasibleError(_explain(items, n_groups))
    method = "left in place as far as possible" if before else "searched over all assignments"
    return found, {**how, "method": method, "solver": ASSIGNMENT}


def _check(items: Sequence[Item], n_groups: int) -> None:
    if n_groups < 1:
        raise InputError(f"There must be at least one group, not {n_groups}.")
    for share, texts in items:
        if len(set(texts)) < len(texts):
            raise InputError(
                f"{share}: {Counter(texts).most_common(1)[0][0]!r} is compared with itself. Leave "
                "that pair or triplet out; 'contstim select triplets' does."
            )
    # A share's items go to all groups alike, so their number is a multiple of the groups; and a
    # text that stands in more items than there are groups meets itself in one of them (pigeonhole).
    uneven = {s: n for s, n in Counter(share for share, _ in items).items() if n % n_groups}
    if uneven:
        share, size = next(iter(uneven.items()))
        others = f", nor can {counted(len(uneven) - 1, 'further kind')}" if len(uneven) > 1 else ""
        raise InfeasibleError(
            f"{counted(size, 'trial')} of {share} cannot be dealt out evenly to {n_groups} "
            f"groups{others}: choose a number per model pair that "
            f"is a multiple of the groups (of minimal pairs, of twice the groups), or a number of "
            f"groups that divides {size}."
        )
    crowded = {t: len(users) for t, users in _users(items).items() if len(users) > n_groups}
    if crowded:
        text, uses = max(crowded.items(), key=lambda entry: entry[1])
        raise InfeasibleError(
            f"{text!r} stands in {uses} trials, and so do {len(crowded) - 1} other sentences in "
            f"more than {n_groups}: with {n_groups} groups, some group would see it twice. Use "
            "more groups, or each sentence in fewer pairs and triplets."
        )


def _deal(items: Sequence[Item], n_groups: int, rng: np.random.Generator) -> IntArray | None:
    """One attempt: shares in random order, those with the most contested texts first."""
    groups = np.full(len(items), -1)
    met: dict[str, set[int]] = defaultdict(set)
    users = _users(items)
    shares = list(_places([share] for share, _ in items).values())  # places of their items

    def contested(share: list[int]) -> tuple[int, float]:
        return -sum(len(users[text]) for i in share for text in items[i][1]), rng.random()

    for share in sorted(shares, key=contested):
        # A share is matched to as many slots, each group's as often as any other's; an item may not
        # have a slot of a group that has met one of its texts. closed: (n_share, n_groups). Costs
        # at random make a random matching.
        slots = np.repeat(np.arange(n_groups), len(share) // n_groups)
        closed = np.array(
            [[any(g in met[text] for text in items[i][1]) for g in range(n_groups)] for i in share]
        )
        rows, places = np.nonzero(~closed[:, slots])
        costs = rng.integers(0, 1000, len(rows))
        chosen, shortfall = transportation(np.ones(len(share), np.int64), rows, places, costs)
        if shortfall.any():
            return None
        for i, group in zip(share, slots[places[chosen]].tolist(), strict=True):
            groups[i] = group
            for text in items[i][1]:
                if group in met[text]:
                    return None  # two of a share that hold the same text
                met[text].add(group)
    return groups


def _users(items: Sequence[Item]) -> dict[str, list[int]]:
    return _places(texts for _, texts in items)


def _places(keys: Iterable[Iterable[str]]) -> dict[str, list[int]]:
    """Places of a list that have each key."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(keys):
        for key in item:
            places[key].append(place)
    return places


def _explain(items: Sequence[Item], n_groups: int) -> str:
    shared = sorted(_users(items).items(), key=lambda entry: -len(entry[1]))
    named = "; ".join(f"{text!r} in {len(users)} trials" for text, users in shared[:3])
    return (
        f"There is no way to deal {len(items):,} trials out to {n_groups} groups so that no group "
        f"sees a sentence twice and every group has the same number of each kind: proved by "
        f"{ASSIGNMENT}. The most contested sentences: {named}. Use more groups, or sentences that "
        "fewer pairs and triplets share."
    )
