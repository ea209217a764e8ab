"""A jsPsych page in a folder.

A web server or `contstim collect` can serve the page, or a browser can open it from a disk.

study       the researcher's settings; study.json with the groups' trials, texts, and the
            destination of answers
library     jsPsych itself: fixed versions, from a CDN or copied into the folder
folder      the exported folder, with texts and tables that the researcher can edit
jatos       the page as a study archive for JATOS
reading     reader of the data of this page and of other jsPsych pages
page/       source of the page: HTML, CSS and JavaScript without a build step
vendor/     licence and checksums of jsPsych's files
readme/     instructions in the exported folder, one text for each destination of answers
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
        out="The output folder; edited texts in it are not overwritten.",
        to_edit=(*TEXTS, PRACTICE, QUESTIONS),
    ),
    Reader(import_jspsych, files="CSV, JSON, or JSON lines."),
)
"""jsPsych as a platform: the experiment as a web page, and the reader of its data."""
