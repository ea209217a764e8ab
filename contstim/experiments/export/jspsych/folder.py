"""The export: a folder that holds a whole experiment."""

from __future__ import annotations

import json
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.experiments.export.jspsych.library import fetch_library, library_tags
from contstim.experiments.export.jspsych.settings import PageSettings, SaveTo
from contstim.experiments.export.jspsych.study import build_study, study_script
from contstim.experiments.export.jspsych.texts import PRACTICE, TEXTS, keep_texts
from contstim.files import write_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.stimuli import Trial

_ROOM = "contstim.experiments.export.jspsych"

# In the order in which they are loaded.
_SCRIPTS = (
    "parts/escape.js",
    "study.js",
    "parts/address.js",
    "parts/markdown.js",
    "parts/tables.js",
    "parts/texts.js",
    "parts/order.js",
    "parts/keeping.js",
    "parts/sending.js",
    "parts/screens.js",
    "parts/timeline.js",
)

# What an interrupted export may leave behind.
_OURS = {
    *(*TEXTS, PRACTICE, "README.md", "index.html", "style.css", "experiment.js", "study.js"),
    *("parts", "vendor"),
}


def export_jspsych(
    trials: Sequence[Trial], folder: Path | str, settings: PageSettings | None = None
) -> dict[str, Any]:
    """Write an experiment as a page that browsers run.

    Texts that an earlier export left in the folder are kept as they are; everything else is
    written anew.

    Args:
        trials: of all groups.
        folder: made if need be; an existing one must be empty or an earlier export.
        settings: what the researcher decides; defaults where None.

    Returns:
        The content of study.json.

    Raises:
        InputError: the folder holds something else, a text or table in it is not usable, jsPsych
            cannot be had, or there are no trials.
        SentenceError: a sentence of the trials has no words.
    """
    settings = settings or PageSettings()
    folder = Path(folder)
    _check_folder(folder)
    build_study(trials, settings, {})  # what is wrong with the trials is said before files change
    folder.mkdir(parents=True, exist_ok=True)
    study = build_study(trials, settings, keep_texts(folder, settings.practice))
    vendored = settings.vendor or settings.library is not None
    if vendored:
        fetch_library(folder / "vendor", settings.library)
    _copy_page(folder, settings, vendored=vendored)
    write_text(folder / "study.js", study_script(study))
    write_text(folder / "README.md", _readme(folder, settings, study))
    write_text(folder / "study.json", json.dumps(study, indent=1, ensure_ascii=False) + "\n")
    return study


def _check_folder(folder: Path) -> None:
    if folder.is_file():
        raise InputError(f"{folder} is a file; name a folder for the page.")
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if "study.json" not in names and not names <= _OURS:
        raise InputError(
            f"{folder} holds other files; name a new folder, or one of an earlier export."
        )


def _copy_page(folder: Path, settings: PageSettings, *, vendored: bool) -> None:
    page = resources.files(_ROOM) / "page"
    # No file of ours may be called jatos.js: that is the name of JATOS's own.
    homes = ["parts/homes/no_server.js", f"parts/homes/{settings.save}_home.js"]
    scripts = [*_SCRIPTS, *homes, "experiment.js"]
    for name in {*scripts, "style.css"} - {"study.js"}:
        write_text(folder / name, page.joinpath(name).read_text(encoding="utf-8"))
    own = "\n".join(f'  <script src="{name}" defer></script>' for name in scripts)
    jatos = '  <script src="jatos.js"></script>\n' if settings.save is SaveTo.JATOS else ""
    index = page.joinpath("index.html").read_text(encoding="utf-8")
    filled = Template(index).substitute(
        language=settings.language,
        title=escape(settings.title),
        scripts=f"{jatos}{library_tags(vendored=vendored)}\n{own}",
    )
    write_text(folder / "index.html", filled)


def _readme(folder: Path, settings: PageSettings, study: dict[str, Any]) -> str:
    readme = resources.files(_ROOM) / "readme"
    parts = [f"{settings.save}.md", "texts.md"]
    text = "\n".join(readme.joinpath(name).read_text(encoding="utf-8") for name in parts)
    groups = study["groups"]
    return Template(text).substitute(
        folder=folder.resolve().name,
        title=settings.title,
        groups=len(groups),
        pairs=max(map(len, groups.values())),
        first=next(iter(groups)),
    )
