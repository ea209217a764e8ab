"""The database of `contstim collect` as a platform whose answers are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.experiments.collection.exports import collected_responses
from contstim.experiments.platforms.platform import NoSettings, Platform, Reader
from contstim.experiments.responses.alignment import Imported

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contstim.stimuli import Trial


def import_collected(
    files: Sequence[Path], trials: Sequence[Trial], settings: NoSettings
) -> Imported:
    """Read the database of `contstim collect`, whether its server runs or not.

    Example: `contstim import collected experiment.sqlite --trials trials.csv --out responses.csv`

    Raises:
        StoreError: there is no such database, or it is damaged.
    """
    del settings
    (database,) = files
    return Imported(tuple(trials), collected_responses(database), (), ())


PLATFORM = Platform(
    "collected",
    reader=Reader(
        import_collected, NoSettings, files="The database of `collect`, or a backup.", several=False
    ),
)
