"""Files that reviewers saved, by what they are about, and what stood before their reviews."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from contstim.study.places import ARCHIVED
from contstim.study.study import RESULTS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contstim.study.places import StudyFiles


def earlier(files: StudyFiles, *tables: Path) -> tuple[Path, ...]:
    """The tables as they stood before a review, or as they stand in the archive of a study.

    They are the study's own results: so what nobody rejects stays, from one review to the next.
    """
    if not files.decisions:
        return ()
    archived = {table: ARCHIVED / table.relative_to(RESULTS) for table in tables}
    found = (t if t.is_file() else archived[t] for t in tables)
    return tuple(path for path in found if path.is_file())


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
