"""Psych-DS 1.5 data sets.

variables    what each column of our tables holds
writing      a data set from stimuli, responses and scores
checking     whether a folder obeys the rules
"""

from contstim.experiments.platforms.psych_ds.checking import Finding, check_psych_ds
from contstim.experiments.platforms.psych_ds.writing import Description, export_psych_ds

__all__ = ["Description", "Finding", "check_psych_ds", "export_psych_ds"]
