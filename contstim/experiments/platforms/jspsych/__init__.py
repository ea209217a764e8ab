"""A jsPsych page in a folder that any web server, `contstim collect` or a disk can serve.

study       what the researcher decides, and study.json: trials by group, where answers go, texts
library     jsPsych itself: pinned versions, from a CDN or copied into the folder
folder      the export, and its texts and tables, which the researcher edits
jatos       the page as a study archive for JATOS
reading     data of our page, and of other jsPsych pages
page/       the page as it is shipped: HTML, CSS and JavaScript without a build step
vendor/     the licence that goes with jsPsych's files
readme/     what to do with the folder, for each place where answers may go
"""

from contstim.experiments.platforms.jspsych.folder import (
    PRACTICE,
    QUESTIONS,
    TEXTS,
    export_jspsych,
    unfilled_warning,
)
from contstim.experiments.platforms.jspsych.library import fetch_library
from contstim.experiments.platforms.jspsych.reading import import_jspsych
from contstim.experiments.platforms.jspsych.study import PageSettings
from contstim.experiments.platforms.platform import Exporter, Platform, Reader

__all__ = [
    "PLATFORM",
    "PageSettings",
    "export_jspsych",
    "fetch_library",
    "import_jspsych",
    "unfilled_warning",
]

PLATFORM = Platform(
    "jspsych",
    Exporter(
        export_jspsych,
        PageSettings,
        out="The folder to write; texts in it are kept.",
        to_edit=(*TEXTS, PRACTICE, QUESTIONS),
    ),
    Reader(import_jspsych, files="CSV, JSON, or JSON lines."),
)
"""The experiment as a web page, and the reader of its data."""
