"""Keep reviewed items in a new selection, and give reasons for changes.

A kept item is a reviewed item that no reviewer rejects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.optimization.selection.solver import least_violations

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from contstim.files.arrays import BoolArray, FloatArray, IntArray
    from contstim.optimization.selection.solver import Program

_MAX_SEARCHES = 20  # maximum number of changed items for which the solver looks for reasons
_MAX_CANDIDATES = 100_000  # with more candidates, the solver does not look for reasons


@dataclass(frozen=True)
class ChangedItem:
    """A kept item that is not selected again.

    Attributes:
        rule: rule that forces the change.
        key: option that loosens the rule; empty if there is none.
    """

    item_id: str
    rule: str
    key: str = ""

    def __str__(self) -> str:
        loosened = f" (`{self.key}` loosens this rule)" if self.key else ""
        return f"{self.item_id} changes: {self.rule}{loosened}"


def review_goals(
    kept_items: Sequence[Iterable[str]], candidate_of_item: Mapping[str, int], shows: BoolArray
) -> list[FloatArray]:
    """Build the first goals of a program (see `solver`) after a review.

    A review has one or several files. The first goals are to select as many kept items as possible:
    kept items of the last file, then kept items of the file before, and so on. The next goal is
    that as few new items as possible contain a sentence of a kept trial. If a new item contains
    such a sentence, the design has to change the kept trial.

    Args:
        kept_items: identifiers of the kept items of each file of the review, the last file first.
        candidate_of_item: identifier of a kept item → index of its candidate. Kept items that are
            not candidates are omitted.
        shows: (n_candidates,) whether a candidate contains a sentence of a kept trial.

    Returns:
        Costs of the candidates for each goal, (n_candidates,) each; empty if there was no review.
    """
    goals = [np.zeros(len(shows)) for _ in kept_items]
    shares_sentence = shows.astype(float)
    for goal, items in zip(goals, kept_items, strict=True):
        members = [candidate_of_item[item] for item in items if item in candidate_of_item]
        goal[members], shares_sentence[members] = -1, 0
    return [*goals, shares_sentence] if goals else []


def changed_items(
    program: Program,
    candidate_of_item: Mapping[str, int],
    chosen: BoolArray,
    *,
    hard: Collection[int] = (),
) -> tuple[ChangedItem, ...]:
    """For each kept item that is not chosen, find a rule that excludes it.

    `chosen` is a mask, (n_candidates,). `hard` are indices of rules. A rule in `hard` is reported
    as a reason only if the changed item and the chosen kept items break it without any new item.
    """
    staying = [candidate for candidate in candidate_of_item.values() if chosen[candidate]]
    changed = [
        (name, candidate) for name, candidate in candidate_of_item.items() if not chosen[candidate]
    ]
    changes = []
    for number, (item_id, candidate) in enumerate(changed):
        rules = _exceeded(program, [*staying, candidate])
        is_small = len(chosen) <= _MAX_CANDIDATES
        if not len(rules) and number < _MAX_SEARCHES and is_small:
            broken = least_violations(program, [*staying, candidate], hard=hard)
            rules = np.array(sorted(broken, key=lambda rule: -broken[rule]), dtype=np.int64)
        name = program.names[rules[0]] if len(rules) else "all rules together"
        changes.append(ChangedItem(item_id, name, program.keys[rules[0]] if len(rules) else ""))
    return tuple(changes)


def _exceeded(program: Program, candidates: Sequence[int]) -> IntArray:
    """Return the indices of the rules that every choice with these candidates breaks, (n,)."""
    part = program.matrix[:, candidates]
    least = np.asarray(program.matrix.minimum(0).sum(axis=1)).ravel()
    sums = np.asarray(part.maximum(0).sum(axis=1)).ravel() + least
    return np.flatnonzero(sums > program.upper)
