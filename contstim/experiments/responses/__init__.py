"""What people answered: one table, whatever platform asked.

table        responses.csv, read and written; spreadsheets: texts that must not run as formulas
checks       responses against trials: every problem by name
admission    who takes part in an analysis, who does not, and why
answers      what a platform recorded, and how it finds its trial; answer: of one rating
grouping     which group of the trials a platform means
sides        answers that say by trial_id and side what was shown
"""

from contstim.experiments.responses.admission import (
    Admission,
    CatchRule,
    Exclusion,
    admit,
    catch_scores,
)
from contstim.experiments.responses.checks import Finding, Problem, Report, check_responses
from contstim.experiments.responses.origin import Origin, origin_of
from contstim.experiments.responses.table import Response, read_responses, write_responses

__all__ = [
    "Admission",
    "CatchRule",
    "Exclusion",
    "Finding",
    "Origin",
    "Problem",
    "Report",
    "Response",
    "admit",
    "catch_scores",
    "check_responses",
    "origin_of",
    "read_responses",
    "write_responses",
]
