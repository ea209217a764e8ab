"""Presentation to each participant: order of trials, and sides of sentences."""

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
        left: 1 or 2: number of the sentence that is shown left.
        position: position in the order of presentation, from 1.
    """

    trial: Trial
    left: int
    position: int


def presentation(
    trials: Iterable[Trial], *, group: int, participant: int, seed: int
) -> tuple[Shown, ...]:
    """Return the trials of a participant, in random order, with balanced sides.

    In each condition, sentence_1 is shown left in half of the trials (one more or less for odd
    numbers). Participants 1 and 2, 3 and 4, … of a group see mirrored sides, so that each sentence
    is shown left once in two participants. The order is drawn for each participant. Everything
    depends only on the trials' identifiers, the seed and the two numbers, not on the order of the
    table. After a review, a new trial has the position and side of the trial that it replaces.

    Args:
        trials: trials of a design, of all groups.
        group: number of the group, from 1.
        participant: number within the group, from 1.
        seed: seed of the experiment.

    Raises:
        InputError: if the group has no trials, or a number is below 1.
    """
    group_trials = sorted((t for t in trials if t.group == group), key=lambda trial: trial.trial_id)
    if not group_trials or participant < 1:
        raise InputError(
            f"Group {group} has no participant {participant}: participants are numbered from "
            "1, and groups are those of the trials."
        )
    # Participants 1 and 2 share a random stream of sides, 3 and 4 the next; the second is mirrored.
    sides = np.random.default_rng([seed, group, (participant - 1) // 2, 0])
    mirrored = participant % 2 == 0
    left_sides: dict[str, int] = {}
    for condition in Condition:
        members = [trial.trial_id for trial in group_trials if trial.condition == condition]
        # Shuffled 0 1 0 1 … or 1 2 1 2 …: even numbers put sentence_1 on the left. With an odd
        # number of trials, chance decides which side has one more.
        first = np.arange(len(members)) % 2 + int(sides.integers(2))
        for name, side in zip(members, sides.permutation(first), strict=True):
            left_sides[name] = int(side + mirrored) % 2 + 1
    order = np.random.default_rng([seed, group, participant, 1]).permutation(len(group_trials))
    return tuple(
        Shown(group_trials[index], left_sides[group_trials[index].trial_id], position)
        for position, index in enumerate(order, start=1)
    )
