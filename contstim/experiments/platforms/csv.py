"""A table of who sees what: for any program that shows rows one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from contstim.experiments.platforms.folder import ExportFolder, template
from contstim.experiments.platforms.lists import BUTTON_LIST, stimulus_lists
from contstim.experiments.platforms.platform import Exported, Exporter, Platform
from contstim.experiments.responses.table import NO_BREAK_SPACE, escape_formula
from contstim.options import Help, Seed
from contstim.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contstim.stimuli import Trial

_WORDS = {
    Scale.CONFIDENCE: {"buttons": BUTTON_LIST, "number": "six", "turned": "seven"},
    Scale.CHOICE: {"buttons": "   1. left\n   2. right", "number": "two", "turned": "three"},
}

COLUMNS = (
    *("participant", "group", "position", "trial_id", "condition", "left"),
    *("left_sentence", "right_sentence"),
)


@dataclass(frozen=True)
class CsvSettings:
    """Whom the table is for."""

    participants: Annotated[int, Help("Participants of each group.", at_least=1)] = 10
    seed: Seed = 0


def export_csv(
    trials: Sequence[Trial], out: Path | str, settings: CsvSettings | None = None
) -> Exported:
    """Write a table of who sees what, in which order and on which side, for any program.

    Example: `contstim export csv --trials trials.csv --participants 20 --out plain`

    Raises:
        InputError: nobody takes part, the trials cannot be traced back, or the folder holds
            other files.
    """
    settings = settings or CsvSettings()
    participants = settings.participants
    folder = ExportFolder(out, "csv")
    scale = trials[0].scale if trials else Scale.CONFIDENCE
    lists = stimulus_lists(trials, per_group=participants, seed=settings.seed, scale=scale)
    rows = [
        # Lists stand group after group, so participants begin from 1 again in each.
        {"participant": number % participants + 1, **row}
        for number, stimulus_list in enumerate(lists)
        # People read these cells, so what looks like a formula gets a space that nobody sees.
        for row in stimulus_list.rows(lambda text: escape_formula(text, NO_BREAK_SPACE))
    ]
    folder.rows("presentation.csv", rows, COLUMNS)
    folder.readme(
        template("csv.md"),
        rows=f"{len(rows):,}",
        participants=participants,
        **_WORDS[scale],
    )
    return folder.finish(seed=settings.seed, participants=participants)


PLATFORM = Platform("csv", Exporter(export_csv, CsvSettings))
