"""Review of a design: which trials stood in which groups, and which were rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.reviews import ItemKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contstim.reviews import Review, ReviewedItem
    from contstim.stimuli import Pair, Trial, Triplet


def reviewed_trials(
    review: Review, pairs: Iterable[Pair], triplets: Iterable[Triplet], trials: Iterable[Trial]
) -> dict[str, ReviewedItem]:
    """The trials that were reviewed, by their identifiers; of several reviews the last one counts.

    Args:
        review: of trials, and maybe of what these were made of.
        pairs: that the new design is made of.
        triplets: likewise.
        trials: that the pairs and triplets give.

    Raises:
        InputError: pairs or triplets were rejected, or a trial has changed since the review.
    """
    rejected = review.rejected
    for kind, command, ids in (
        ("pairs", "natural", [pair.trial_id for pair in pairs]),
        ("triplets", "triplets", [triplet.triplet_id for triplet in triplets]),
    ):
        refused = [item_id for item_id in ids if item_id in rejected]
        if refused:
            raise InputError(
                f"{len(refused):,} of {len(ids):,} {kind} were rejected, such as {refused[0]}. Run "
                f"'contstim select {command} --review FILE' first, and give the {kind} that it "
                f"writes."
            )
    # Later reviews come before earlier ones: a trial may have moved to another group in between,
    # and random pairs of an earlier design may stand in the way of later ones.
    reviewed: dict[str, ReviewedItem] = {}
    for item in reversed(review.decisions):
        if item.kind is ItemKind.TRIAL:
            reviewed.setdefault(item.item_id, item)
    for trial in trials:
        before = reviewed.get(trial.trial_id)
        if before is not None and before.sentences != (trial.sentence_1, trial.sentence_2):
            raise InputError(
                f"{trial.trial_id} has changed since the review: it compared "
                f"{before.sentence_1.text!r} with {before.sentence_2.text!r}. Review the trials "
                f"again."
            )
    return reviewed


def not_rejected(review: Review, reviewed: Mapping[str, ReviewedItem]) -> dict[str, ReviewedItem]:
    """Those of the reviewed trials that neither were rejected nor what they are made of."""
    return {item_id: item for item_id, item in reviewed.items() if not review.rejects(item)}
