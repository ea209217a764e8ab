"""Study archives for JATOS: our page, and what JATOS must know of it.

The archive (`.jzip`) is a zip file with one folder of assets and, beside it, one `.jas` file with
the study's properties in version 3 of the JATOS format
(https://www.jatos.org/JATOS-Study-Archive-JZIP.html).
"""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

from contstim.errors import InputError
from contstim.experiments.platforms.folder import staged
from contstim.experiments.platforms.jspsych import PageSettings, SaveTo
from contstim.experiments.platforms.jspsych.folder import check_folder, is_page, write_page
from contstim.experiments.platforms.jspsych.study import build_study

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.stimuli import Trial

_VERSION = "3"
_NAMESPACE = UUID("5f2b8f0c-9a1d-4f61-8d58-1f4f6d0c7f0e")
_WORKERS = ("GeneralMultiple", "GeneralSingle", "Jatos", "PersonalMultiple", "PersonalSingle")
_LONGEST_TITLE = 255
_EPOCH = (1980, 1, 1, 0, 0, 0)  # of every member, so that the same study gives the same bytes


def export_jatos(trials: Sequence[Trial], folder: Path | str, settings: PageSettings) -> Path:
    """Write the page into `page` and the archive made of it beside, named after the title.

    The same title and trials give the same study to JATOS, whatever the texts: imported again, it
    offers to overwrite the old one.

    Returns:
        The archive.

    Raises:
        InputError: the page does not save to JATOS, its title is too long or holds HTML, or see
            `export_jspsych`.
    """
    if settings.save is not SaveTo.JATOS:
        raise InputError(f"A study for JATOS saves to jatos, not to {settings.save}.")
    if len(settings.title) > _LONGEST_TITLE or set("<>&") & set(settings.title):
        raise InputError(
            f"JATOS takes titles of up to {_LONGEST_TITLE} characters without <, > and &; this "
            f"one is {settings.title!r}."
        )
    folder = Path(folder)
    page, name = folder / "page", _name(settings.title)
    _check_folder(folder)
    build_study(trials, settings, {})
    with staged(folder) as work:
        study = write_page(trials, work / "page", settings, earlier=page)
        properties = {"version": _VERSION, "data": _properties(settings, study["id"], name)}
        files = _files(page) | _files(work / "page")
        with zipfile.ZipFile(work / f"{name}.jzip", "w") as packed:
            for relative, path in sorted(files.items()):
                _add(packed, f"{name}/{relative}", path.read_bytes())
            _add(packed, f"{name}.jas", json.dumps(properties, indent=2).encode())
    return folder / f"{name}.jzip"


def _check_folder(folder: Path) -> None:
    """Make sure that the folder is new or of an earlier export."""
    check_folder(folder / "page")
    if folder.is_file():
        raise InputError(f"{folder} is a file; name a folder for the study.")
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if not names <= {"page"} and not is_page(folder / "page"):
        raise InputError(
            f"{folder} holds other files; name a new folder, or one of an earlier export."
        )


def _files(page: Path) -> dict[str, Path]:
    """The files of a page that go into an archive, by their names there."""
    return {
        path.relative_to(page).as_posix(): path
        for path in page.rglob("*")
        if path.is_file() and not path.name.endswith((".meta.json", ".partial"))
    }


def _properties(settings: PageSettings, study: str, name: str) -> dict[str, Any]:
    """The study as JATOS describes one; what is left null there is its default."""

    def identifier(part: str) -> str:
        return str(uuid5(_NAMESPACE, f"{settings.title}\x1f{study}\x1f{part}"))

    component = {
        "uuid": identifier("component"),
        "title": settings.title,
        "htmlFilePath": "index.html",
        "reloadable": True,
        "active": True,
        "comments": "",
        "jsonData": None,
    }
    batch = {
        "uuid": identifier("batch"),
        "title": "Default",
        "active": True,
        "maxActiveMembers": None,
        "maxTotalMembers": None,
        "maxTotalWorkers": None,
        "allowedWorkerTypes": list(_WORKERS),
        "comments": "",
        "jsonData": None,
    }
    return {
        "uuid": identifier("study"),
        "title": settings.title,
        "description": "",
        "groupStudy": False,
        "linearStudy": False,
        "allowPreview": False,
        "dirName": name,
        "comments": "",
        "jsonData": None,
        "endRedirectUrl": "",
        "studyEntryMsg": None,
        "componentList": [component],
        "batchList": [batch],
    }


def _name(title: str) -> str:
    """A name for files and folders: JATOS forbids spaces and most signs, and a few words."""
    return "contstim_" + "_".join(re.findall(r"[A-Za-z0-9]+", title))[:80].lower()


def _add(packed: zipfile.ZipFile, name: str, content: bytes) -> None:
    member = zipfile.ZipInfo(name, _EPOCH)
    member.compress_type = zipfile.ZIP_DEFLATED
    member.external_attr = 0o644 << 16
    packed.writestr(member, content)
