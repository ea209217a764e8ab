"""Presentation to each participant: in which order, and which sentence on which side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.items.stimuli import Condition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contstim.items.stimuli import Trial


@dataclass(frozen=True)
class Shown:
    """A trial as one participant sees it.

    Attributes:
        left: 1 or 2: which of the trial's sentences stands left.
        position: place in the order of presentation, from 1.
    """

    trial: Trial
    left: int
    position: int


def presentation(
    trials: Iterable[Trial], *, group: int, participant: int, seed: int
) -> tuple[Shown, ...]:
    """The trials of a participant, in random order, sides balanced.

    Within each condition sentence_1 stands left in half of the trials (one more or less where their
    number is odd). Participants 1 and 2, 3 and 4, … of a group see the same sides mirrored, so that
    over both every sentence stands left once. The order is drawn for each participant. All depends
    on the trials' identifiers, the seed and the two numbers alone, not on the order of the table.
    After a review a new trial has the turn and the side of the one that it stands for.

    Args:
        trials: a design's, of all groups.
        group: from 1.
        participant: number within the group, from 1.
        seed: of the experiment.

    Raises:
        InputError: the group has no trials, or a number is below 1.
    """
    seen = sorted((t for t in trials if t.group == group), key=lambda trial: trial.turn)
    if not seen or participant < 1:
        raise InputError(
            f"There is no participant {participant} of group {group}: participants count from 1, "
            "and groups are those of the trials."
        )
    # Participants 1 and 2 share a stream of sides, 3 and 4 the next; the second of two is mirrored.
    sides = np.random.default_rng([seed, group, (participant - 1) // 2, 0])
    mirrored = participant % 2 == 0
    left: dict[str, int] = {}
    for condition in Condition:
        members = [trial.trial_id for trial in seen if trial.condition == condition]
        # 0 1 0 1 … or 1 2 1 2 …, then shuffled: even numbers stand for sentence_1 on the left. By
        # chance the one or the other side has one more where the number of trials is odd.
        first = np.arange(len(members)) % 2 + int(sides.integers(2))
        for name, side in zip(members, sides.permutation(first), strict=True):
            left[name] = int(side + mirrored) % 2 + 1
    order = np.random.default_rng([seed, group, participant, 1]).permutation(len(seen))
    return tuple(
        Shown(seen[place], left[seen[place].trial_id], position)
        for position, place in enumerate(order, start=1)
    )
