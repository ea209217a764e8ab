"""Reviews as filters of a selection: kept items become goals, changed ones get a reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.optimization.selection.solver import least_violations

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from contstim.files.arrays import BoolArray, FloatArray, IntArray
    from contstim.optimization.selection.solver import Program

_MAX_SEARCHES = 20  # searches for rules that force changes
_MAX_CANDIDATES = 100_000  # number of candidates up to which they are searched


@dataclass(frozen=True)
class ChangedItem:
    """Reviewed item that was not rejected and yet is not selected again.

    Attributes:
        item_id: identifier of the item.
        rule: rule that forces the change.
        key: option that loosens the rule; empty if there is none.
    """

    item_id: str
    rule: str
    key: str = ""

    def __str__(self) -> str:
        loosened = f" (`{self.key}` loosens this rule)" if self.key else ""
        return f"{self.item_id} changes: {self.rule}{loosened}"


def review_goals(kept_candidates: Sequence[Iterable[int]], shows: BoolArray) -> list[FloatArray]:
    """Build the first goals of a program after a review; none without a review.

    The first goals keep as many items as possible, those of the last file first. The next goal is
    that as few new items as possible show a sentence of a trial that stays, because the design
    would have to change that trial.

    Args:
        kept_candidates: candidates that are kept items, for each file, the last one first.
        shows: (n_candidates,) whether a candidate shows a sentence of a trial that stays.

    Returns:
        (n_candidates,) costs for each goal.
    """
    goals = [np.zeros(len(shows)) for _ in kept_candidates]
    shares_sentence = shows.astype(float)
    for goal, candidates in zip(goals, kept_candidates, strict=True):
        members = [*candidates]
        goal[members], shares_sentence[members] = -1, 0
    return [*goals, shares_sentence] if goals else []


def changed_items(
    program: Program,
    candidate_of_item: Mapping[str, int],
    chosen: BoolArray,
    *,
    hard: Collection[int] = (),
) -> tuple[ChangedItem, ...]:
    """Find, for each kept item that is not chosen, a rule that forces the change.

    Args:
        program: candidates and rules.
        candidate_of_item: identifier of a kept item → its candidate.
        chosen: (n_candidates,) the choice.
        hard: rules that force a change only if kept items alone break them.
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
    """Return rules that these candidates break with every choice of other candidates."""
    part = program.matrix[:, candidates]
    least = np.asarray(program.matrix.minimum(0).sum(axis=1)).ravel()
    exceeded: IntArray = np.flatnonzero(
        np.asarray(part.maximum(0).sum(axis=1)).ravel() + least > program.upper
    )
    return exceeded
