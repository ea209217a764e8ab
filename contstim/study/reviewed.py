"""Which of the files that reviewers saved are about which stimuli."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def decisions_about(
    stimuli: Literal["pairs", "triplets"], decisions: Sequence[Path]
) -> tuple[Path, ...]:
    """The files that hold decisions about natural pairs, or about triplets, or their trials.

    A step refuses a review of something else; a study has reviews of all its tables together.
    """
    from contstim.reviews import ItemKind, read_reviews
    from contstim.stimuli import Condition

    of_pairs = {Condition.NATURAL_CONTROVERSIAL}
    of_triplets = {Condition.NATURAL_SYNTHETIC, Condition.SYNTHETIC_SYNTHETIC}
    conditions = of_pairs if stimuli == "pairs" else of_triplets
    kind = ItemKind.PAIR if stimuli == "pairs" else ItemKind.TRIPLET
    return tuple(
        path
        for path in decisions
        if any(
            item.kind is kind or (item.kind is ItemKind.TRIAL and item.condition in conditions)
            for item in read_reviews([path]).decisions
        )
    )
