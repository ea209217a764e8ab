"""Answers of people: one table, whatever platform asked.

table        responses.csv, read and written, texts that must not run as formulas, and how many
             participants are people
alignment    what a platform recorded of a rating, and which trial it is about, in canonical order
checks       responses against trials: every problem by name
admission    who takes part in an analysis, who does not, and why
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
from contstim.experiments.responses.table import (
    Response,
    ResponseOrigin,
    origin_of,
    read_responses,
    write_responses,
)

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
