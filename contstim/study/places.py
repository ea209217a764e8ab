"""Paths in a study's folder that belong to the study itself, and no stage's choice."""

from __future__ import annotations

from pathlib import Path

from contstim.files.files import path_inside

RESULTS = Path("results")
"""The folder of everything that a study writes but its page, next to the study file."""

STORE = RESULTS / "contstim.sqlite"
"""Scores as they come; a cache for later runs, not a result."""

PAGE = Path("index.html")
"""The page of the study, next to its file."""

LOCK = RESULTS / ".lock"
"""Held by the process that runs the study."""

BEGUN = RESULTS / "begun"
"""The folder of notes on stages that have begun and are not done."""

ARCHIVED = Path("archived-results")
"""The results of a study in an archive of it, next to those of running it again."""

TRAINING, NATURAL_TEXT = RESULTS / "training.txt", RESULTS / "natural-text.txt"
"""Sentences of the embedded English."""

QUESTIONS = RESULTS / "questions.csv"


def check_links() -> None:
    """Refuse links in results that lead out of the study's folder, which is the current one.

    A study is handed on as a folder: its results, and the archived results that a receiver reads,
    must not be files elsewhere.

    Raises:
        InputError: if there is such a link.
    """
    folders = (RESULTS, ARCHIVED)
    inside = (path for folder in folders for path in folder.rglob("*"))
    for path in (PAGE, *folders, *inside):
        if path.is_symlink():
            path_inside("", path.as_posix())
