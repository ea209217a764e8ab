"""Exact assignment of trials to groups of participants, so that no group sees a text twice."""

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

_MAX_ORDERS = 20  # maximum number of random orders of shares before the search by CP-SAT


Item: TypeAlias = tuple[str, tuple[str, ...]]
"""A share, which is distributed evenly, and texts, each at most once in a group."""


def assign_groups(
    items: Sequence[Item],
    n_groups: int,
    *,
    seed: int = 0,
    seconds: float = 60.0,
    before: Mapping[int, int] | None = None,
) -> tuple[Assignment, dict[str, str]]:
    """Distribute every share evenly over the groups, so that no group sees a text twice.

    One share after the other is matched to groups that have none of its texts yet, otherwise at
    random. If each text belongs to one source (a triplet's three trials), this always succeeds: the
    remaining options of each share are a regular bipartite graph, which has a perfect matching
    (König 1916). If texts are shared, an unlucky order may fail. After several orders CP-SAT
    searches all assignments, or proves that there is none. If items were in groups before, as many
    as possible stay there; CP-SAT searches for this and proves the maximum.

    Args:
        items: items to assign.
        n_groups: number of groups, at least 1.
        seed: seed of the choice among assignments.
        seconds: time limit of CP-SAT.
        before: index of an item → its previous 0-based group.

    Returns:
        The assignment, and its `method`, `solver` and `version`.

    Raises:
        InputError: if there is no group, or an item has a text twice.
        InfeasibleError: if there is no such assignment; the message gives the reason.
        VerificationError: if the time limit is reached without a result.
    """
    _check(items, n_groups)
    provenance = {"method": "one kind of trial after the other", "solver": SOLVER}
    provenance["version"] = solver_version()
    rng = np.random.default_rng(seed)
    for _ in range(0 if before else _MAX_ORDERS):
        groups = _deal(items, n_groups, rng)
        if groups is not None:
            return Assignment(groups, 0, 0), provenance
    # If no order of shares worked, or items were in groups before: CP-SAT, with one group for each
    # item, even shares, and different groups for items with a text in common.
    assignment = assign(
        n_groups,
        list(_indices_by_key([share] for share, _ in items).values()),
        [users for users in _items_by_text(items).values() if len(users) > 1],
        n_items=len(items),
        seed=seed,
        seconds=seconds,
        before=before,
    )
    if assignment is None:
        raise InfeasibleError(_explain(items, n_groups))
    method = "left in place as far as possible" if before else "searched over all assignments"
    return assignment, {**provenance, "method": method, "solver": ASSIGNMENT}


def _check(items: Sequence[Item], n_groups: int) -> None:
    if n_groups < 1:
        raise InputError(f"There must be at least one group, not {n_groups}.")
    for share, texts in items:
        if len(set(texts)) < len(texts):
            raise InputError(
                f"{share}: {Counter(texts).most_common(1)[0][0]!r} is compared with itself. Leave "
                "that pair or triplet out; 'contstim select triplets' does."
            )
    # All groups get equally many of a share's items, so their number is a multiple of the groups. A
    # text in more items than groups is in one group twice (pigeonhole principle).
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
    crowded = {t: len(users) for t, users in _items_by_text(items).items() if len(users) > n_groups}
    if crowded:
        text, uses = max(crowded.items(), key=lambda entry: entry[1])
        raise InfeasibleError(
            f"{text!r} stands in {uses} trials, and so do {len(crowded) - 1} other sentences in "
            f"more than {n_groups}: with {n_groups} groups, some group would see it twice. Use "
            "more groups, or each sentence in fewer pairs and triplets."
        )


def _deal(items: Sequence[Item], n_groups: int, rng: np.random.Generator) -> IntArray | None:
    """Try one assignment: shares in random order, those with the most contested texts first."""
    groups = np.full(len(items), -1)
    groups_by_text: dict[str, set[int]] = defaultdict(set)
    users = _items_by_text(items)
    shares = list(_indices_by_key([share] for share, _ in items).values())  # indices of their items

    def contested(share: list[int]) -> tuple[int, float]:
        return -sum(len(users[text]) for i in share for text in items[i][1]), rng.random()

    for share in sorted(shares, key=contested):
        # A share is matched to as many slots, equally many in each group. An item may not have a
        # slot in a group with one of its texts. closed: (n_share, n_groups). Random costs give a
        # random matching.
        slots = np.repeat(np.arange(n_groups), len(share) // n_groups)
        closed = np.array(
            [
                [any(g in groups_by_text[text] for text in items[i][1]) for g in range(n_groups)]
                for i in share
            ]
        )
        rows, slot_indices = np.nonzero(~closed[:, slots])
        costs = rng.integers(0, 1000, len(rows))
        chosen, shortfall = transportation(np.ones(len(share), np.int64), rows, slot_indices, costs)
        if shortfall.any():
            return None
        for i, group in zip(share, slots[slot_indices[chosen]].tolist(), strict=True):
            groups[i] = group
            for text in items[i][1]:
                if group in groups_by_text[text]:
                    return None  # two items of a share have the same text
                groups_by_text[text].add(group)
    return groups


def _items_by_text(items: Sequence[Item]) -> dict[str, list[int]]:
    return _indices_by_key(texts for _, texts in items)


def _indices_by_key(keys: Iterable[Iterable[str]]) -> dict[str, list[int]]:
    """Return the indices of the items that have each key."""
    indices: dict[str, list[int]] = defaultdict(list)
    for index, item in enumerate(keys):
        for key in item:
            indices[key].append(index)
    return indices


def _explain(items: Sequence[Item], n_groups: int) -> str:
    shared = sorted(_items_by_text(items).items(), key=lambda entry: -len(entry[1]))
    top = "; ".join(f"{text!r} in {len(users)} trials" for text, users in shared[:3])
    return (
        f"There is no way to deal {len(items):,} trials out to {n_groups} groups so that no group "
        f"sees a sentence twice and every group has the same number of each kind: proved by "
        f"{ASSIGNMENT}. The most contested sentences: {top}. Use more groups, or sentences that "
        "fewer pairs and triplets share."
    )
