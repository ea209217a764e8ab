"""Psych-DS 1.5 data sets.

writing      a data set from stimuli, responses and scores, and what each column of them holds
checking     whether a folder obeys the rules
"""

from contstim.experiments.platforms.platform import Exporter, Platform
from contstim.experiments.platforms.psych_ds.checking import PsychDsFinding, check_psych_ds
from contstim.experiments.platforms.psych_ds.writing import (
    Description,
    PsychDsSettings,
    export_psych_ds,
    write_psych_ds,
)

__all__ = [
    "PLATFORM",
    "Description",
    "PsychDsFinding",
    "PsychDsSettings",
    "check_psych_ds",
    "export_psych_ds",
    "write_psych_ds",
]

PLATFORM = Platform(
    "psych-ds",
    Exporter(
        export_psych_ds, PsychDsSettings, check=check_psych_ds, format="the rules of Psych-DS 1.5"
    ),
)
"""A public data set: exported, and not read back."""
