"""Exact assignment of trials to groups; order and sides of each participant's trials."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contstim.errors import InfeasibleError, InputError
from contstim.items.stimuli import Condition, Trial
from contstim.optimization.selection.solver import SOLVER, LinearRule, Program, solve
from contstim.wording import grouped, quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.files.arrays import FloatArray, IntArray

Item: TypeAlias = tuple[str, tuple[str, ...]]
"""The name of the share that contains an item, and the item's texts.

A share is a set of items that is distributed evenly over the groups of participants. A group gets a
text only once.
"""


def assign_groups(
    items: Sequence[Item],
    n_groups: int,
    *,
    seed: int = 0,
    seconds: float = 60.0,
    earlier_groups: Sequence[Mapping[int, int]] = (),
) -> IntArray:
    """Distribute every share (see `Item`) evenly over the groups; no group sees a text twice.

    As many items as possible stay in their earlier groups. The seed decides among equally good
    assignments.

    Each mapping in `earlier_groups` has the form: index of an item → the item's earlier group
    (0-based). The first mapping has priority over the second mapping, and so on. `seconds` is the
    time limit of each search of the solver.

    Returns:
        (n_items,) the 0-based group of each item.

    Raises:
        InputError: if `n_groups` is below 1, or an item has a text twice.
        InfeasibleError: if there is no such assignment; the message gives the reason.
        VerificationError: if the time limit is reached without a result.
    """
    _check(items, n_groups)
    if not items:
        return np.zeros(0, dtype=np.int64)
    rng = np.random.default_rng(seed)
    # A candidate is a possible assignment: one item to one group. Candidates are numbered in random
    # order
    candidate = rng.permutation(len(items) * n_groups).reshape(len(items), n_groups)

    def rule(name: str, cells: IntArray, lower: int, upper: int) -> LinearRule:
        return LinearRule(name, cells, np.ones(len(cells), dtype=np.int64), lower, upper)

    rules = [rule("item", cells, 1, 1) for cells in candidate]
    for members in grouped((share, index) for index, (share, _) in enumerate(items)).values():
        size = len(members) // n_groups
        rules += [rule("share", cells, size, size) for cells in candidate[members].T]
    by_text = grouped((text, index) for index, (_, texts) in enumerate(items) for text in texts)
    for users in by_text.values():
        if len(users) > 1:
            rules += [rule("text", cells, 0, 1) for cells in candidate[users].T]
    goals: list[FloatArray] = [np.zeros(candidate.size) for _ in (*earlier_groups, "any")]
    for goal, groups in zip(goals, earlier_groups, strict=False):
        goal[[candidate[item, group] for item, group in groups.items()]] = -1
    solution = solve(Program.of(goals, rules), seconds=seconds)
    if solution is None:
        shared = sorted(by_text.items(), key=lambda entry: -len(entry[1]))
        top = "; ".join(f"{text!r} in {len(users)} trials" for text, users in shared[:3])
        raise InfeasibleError(
            f"The {len(items):,} trials cannot be assigned to {n_groups} groups so that no "
            "group sees a sentence twice and every group has the same number of each kind "
            f"(proven by {SOLVER}). These sentences are in most trials: {top}. Use more groups, "
            "or select items so that fewer pairs and triplets share a sentence."
        )
    return np.asarray(solution.chosen[candidate].argmax(axis=1))


def _check(items: Sequence[Item], n_groups: int) -> None:
    if n_groups < 1:
        raise InputError(f"groups must be at least 1, got {n_groups}.")
    for share, texts in items:
        if len(set(texts)) < len(texts):
            raise InputError(
                f"{share}: {Counter(texts).most_common(1)[0][0]!r} is compared with itself. Leave "
                "that pair or triplet out, as 'contstim select triplets' does."
            )
    uneven = {s: n for s, n in Counter(share for share, _ in items).items() if n % n_groups}
    if uneven:
        share, size = next(iter(uneven.items()))
        further = f", nor can {quantity(len(uneven) - 1, 'further kind')}" * (len(uneven) > 1)
        raise InfeasibleError(
            f"{quantity(size, 'trial')} of {share} cannot be distributed evenly over "
            f"{n_groups} groups{further}. Set a number of groups that divides {size}, or a "
            "number of trials per model pair that is a multiple of the number of groups (for "
            "minimal pairs, of twice the number of groups)."
        )
    uses_by_text = Counter(text for _, texts in items for text in texts)
    if crowded := {text: n for text, n in uses_by_text.items() if n > n_groups}:
        text, uses = max(crowded.items(), key=lambda entry: entry[1])
        raise InfeasibleError(
            f"{text!r} occurs in {uses} trials, so that one of {n_groups} groups would see it "
            f"twice. Number of sentences in more than {n_groups} trials: {len(crowded)}. Use more "
            "groups, or select fewer pairs and triplets with the same sentence."
        )


def presentation(
    trials: Iterable[Trial], *, group: int, participant: int, seed: int
) -> list[tuple[Trial, int]]:
    """Return the trials of a participant, in random order, with balanced sides.

    Each entry of the list is a trial, and the number (1 or 2) of the sentence on the left side.

    In each condition, sentence_1 is on the left in half of the trials. If the number of trials is
    odd, sentence_1 is on one side in one more trial than on the other. Participants 1 and 2 of a
    group see mirrored sides: each sentence is on the left for one of the two. The same is true of
    participants 3 and 4, and so on. Each participant has a different random order. The result
    depends only on the trials' identifiers, the seed, the group and the participant's number.

    `group` is the number of the group, from 1. `participant` is the number of the participant
    within the group, from 1.

    Raises:
        InputError: if the group has no trials, or a number is below 1.
    """
    group_trials = sorted((t for t in trials if t.group == group), key=lambda trial: trial.trial_id)
    if not group_trials or participant < 1:
        raise InputError(
            f"Group {group} has no participant {participant}: participants are numbered from "
            "1, and groups are those of the trials."
        )
    # Participants 1 and 2 have the same random numbers for sides. So do participants 3 and 4, …
    sides = np.random.default_rng([seed, group, (participant - 1) // 2, 0])
    mirrored = participant % 2 == 0
    left_sides: dict[str, int] = {}
    for condition in Condition:
        members = [trial.trial_id for trial in group_trials if trial.condition == condition]
        # The numbers are 0 1 0 1 … or 1 2 1 2 …, later put in random order. Even numbers put
        # sentence_1 on the left. If the number of trials is odd, the start (0 or 1) decides on
        # which side sentence_1 is in one more trial.
        alternating = np.arange(len(members)) % 2 + int(sides.integers(2))
        for name, side in zip(members, sides.permutation(alternating), strict=True):
            left_sides[name] = int(side + mirrored) % 2 + 1
    order = np.random.default_rng([seed, group, participant, 1]).permutation(len(group_trials))
    shown = [group_trials[index] for index in order]
    return [(trial, left_sides[trial.trial_id]) for trial in shown]
