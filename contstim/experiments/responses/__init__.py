"""Answers of people: one table, whatever platform asked.

recorded     what a platform recorded of a rating, and how its cells are read
alignment    which trial (and group) each recorded answer is about, in canonical order
table        responses.csv, read and written; spreadsheets: texts that must not run as formulas
checks       responses against trials: every problem by name
admission    who takes part in an analysis, who does not, and why
origin       how many participants are people, and how many artificial
"""

from contstim.experiments.responses.admission import (
    Admission,
    CatchRule,
    Exclusion,
    admit,
    catch_scores,
)
from contstim.experiments.responses.checks import (
    CheckReport,
    Problem,
    ResponseFinding,
    check_responses,
)
from contstim.experiments.responses.origin import ResponseOrigin, origin_of
from contstim.experiments.responses.table import Response, read_responses, write_responses

__all__ = [
    "Admission",
    "CatchRule",
    "CheckReport",
    "Exclusion",
    "Problem",
    "Response",
    "ResponseFinding",
    "ResponseOrigin",
    "admit",
    "catch_scores",
    "check_responses",
    "origin_of",
    "read_responses",
    "write_responses",
]
