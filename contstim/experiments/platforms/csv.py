"""A table of who sees what: for any program that shows rows one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.experiments.platforms.display import BUTTON_LIST
from contstim.experiments.platforms.folder import ExportFolder
from contstim.experiments.platforms.lists import sides, stimulus_lists
from contstim.experiments.responses.spreadsheets import NO_BREAK_SPACE, escape_formula

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contstim.experiments.design.presentation import Shown
    from contstim.experiments.platforms.lists import StimulusList
    from contstim.stimuli import Trial

COLUMNS = (
    *("participant", "group", "position", "trial_id", "condition", "left"),
    *("left_sentence", "right_sentence"),
)


def export_csv(
    trials: Sequence[Trial], out: Path | str, *, participants: int = 10, seed: int = 0
) -> Path:
    """Write presentation.csv, a row for each trial that a participant sees, in order.

    Participants are numbered from 1 within each group; those of odd number see the sides of the
    next one mirrored. A sentence that a spreadsheet would calculate has a no-break space before it
    (`escape_formula`).

    Args:
        trials: a design's.
        out: the folder, new or of an earlier export.
        participants: of each group.
        seed: decides orders and sides.

    Raises:
        InputError: the trials cannot be traced back, the folder holds other files, or there are no
            participants.
    """
    if participants < 1:
        raise InputError(f"Each group needs one participant or more, not {participants}.")
    folder = ExportFolder(out)
    lists = stimulus_lists(trials, per_group=participants, seed=seed)
    rows = [
        _row(number % participants + 1, one, shown)
        for number, one in enumerate(lists)
        for shown in one.shown
    ]
    folder.rows("presentation.csv", rows, COLUMNS)
    folder.readme(
        "csv.md",
        rows=f"{len(rows):,}",
        participants=participants,
        buttons=BUTTON_LIST,
    )
    return folder.finish("csv", seed=seed, participants=participants)


def _row(participant: int, one: StimulusList, shown: Shown) -> dict[str, object]:
    left, right = (escape_formula(text, NO_BREAK_SPACE) for text in sides(shown))
    return {
        "participant": participant,
        "group": one.group,
        "position": shown.position,
        "trial_id": shown.trial.trial_id,
        "condition": str(shown.trial.condition),
        "left": shown.left,
        "left_sentence": left,
        "right_sentence": right,
    }
