"""Study archives for JATOS: the page of `export jspsych` with the properties of a JATOS study.

The archive (`.jzip`) is a zip file. It contains a folder of assets, and a `.jas` file with the
study's properties in version 3 of the JATOS format
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
from contstim.experiments.platforms.folder import template
from contstim.experiments.platforms.jspsych.folder import (
    PRACTICE,
    QUESTIONS,
    TEXTS,
    new_page,
    unfilled_warning,
)
from contstim.experiments.platforms.jspsych.reading import import_jspsych
from contstim.experiments.platforms.jspsych.study import PageSettings
from contstim.experiments.platforms.platform import Exported, Exporter, Platform, Reader
from contstim.files.files import path_inside

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contstim.experiments.responses.alignment import Imported
    from contstim.items.stimuli import Trial

ARCHIVE = "study.jzip"  # same name for every title, so that a new archive replaces the old one
_NAMESPACE = UUID("5f2b8f0c-9a1d-4f61-8d58-1f4f6d0c7f0e")
_LONGEST_TITLE = 255
_EPOCH = (
    1980,
    1,
    1,
    0,
    0,
    0,
)  # fixed date of all files in the archive, so that archives are reproducible


def export_jatos(trials: Sequence[Trial], folder: Path | str, settings: PageSettings) -> Exported:
    """Write the page of `export jspsych` as a study archive (.jzip) that JATOS imports.

    The folder contains the folder `page`, in which you can edit texts, and the archive of this
    page. After edits, run the command again. JATOS recognises the study in the new archive, and
    offers to overwrite the old one.

    Example: `contstim export jatos --trials trials.csv --out study --vendor`

    Args:
        trials: trials of all groups. JATOS recognises a study by its trials and title; texts may
            change.
        folder: folder for the page (in `page`) and the archive.
        settings: settings of a page with the value `jatos` for `save`.

    Raises:
        InputError: if the title of the page is too long or contains HTML; see also
            `export_jspsych`.
    """
    if len(settings.heading) > _LONGEST_TITLE or set("<>&") & set(settings.heading):
        raise InputError(
            f"`title` must have at most {_LONGEST_TITLE} characters for a JATOS study, without <, "
            f"> and &, got {settings.heading!r}."
        )
    folder = Path(folder)
    page = folder / "page"
    # JATOS forbids spaces, most signs and a few words in folder names. With the prefix `contstim_`,
    # the name is never one of these words.
    name = "contstim_" + "_".join(re.findall(r"[A-Za-z0-9]+", settings.heading))[:80].lower()
    with new_page(trials, folder, settings, inside="page") as (work, study, stale):
        about = {"version": "3", "data": _properties(settings.heading, study.id, name)}
        # Edited texts are read from the earlier page, all other files from the new page
        files = _archived_files(page) | _archived_files(work / "page")
        contents = {
            f"{name}/{member}": files[member].read_bytes()
            for member in sorted(files.keys() - stale)
        }
        contents[f"{name}.jas"] = json.dumps(about, indent=2).encode()
        _write_archive(path_inside(work, ARCHIVE), contents)
    archive = folder / ARCHIVE
    return Exported(
        archive,
        f"Import {archive} in JATOS. If you edit the texts in {page}, export again. "
        f"{page / 'README.md'} describes the next steps.",
        warning=unfilled_warning(page),
        facts={},
        private=settings.has_secret,
    )


def import_jatos(files: Sequence[Path | str], trials: Sequence[Trial]) -> Imported:
    """Read the results of a JATOS study that were exported from JATOS as plain text.

    Example: `contstim import jatos jatos_results.txt --trials trials.csv --out responses.csv`

    Raises:
        InputError: if the results are invalid; see `import_jspsych`.
    """
    return import_jspsych(files, trials)


def _write_archive(archive: Path, contents: Mapping[str, bytes]) -> None:
    """Write a zip file that depends only on `contents`, not on the time or the machine."""
    with zipfile.ZipFile(archive, "w") as packed:
        for at, content in contents.items():
            member = zipfile.ZipInfo(at, _EPOCH)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o644 << 16  # Unix permissions: readable by everyone
            packed.writestr(member, content)


def _archived_files(page: Path) -> dict[str, Path]:
    """Return relative path → path, for the files of a page that the archive contains."""
    return {
        path.relative_to(page).as_posix(): path
        for path in page.rglob("*")
        if path.is_file() and not path.name.endswith((".meta.json", ".partial"))
    }


def _properties(title: str, study: str, name: str) -> dict[str, Any]:
    """Return the study's properties from the template; null values are JATOS's defaults."""
    properties: dict[str, Any] = json.loads(template("jatos.json"))
    (component,), (batch,) = properties["componentList"], properties["batchList"]
    # The same title and trials give the same identifiers, by which JATOS recognises a study
    for part, element in (("study", properties), ("component", component), ("batch", batch)):
        element["uuid"] = str(uuid5(_NAMESPACE, f"{title}\x1f{study}\x1f{part}"))
    properties |= {"title": title, "dirName": name}
    component["title"] = title
    return properties


PLATFORM = Platform(
    "jatos",
    Exporter(
        export_jatos,
        PageSettings,
        out="The output folder; edited texts of the page are not overwritten.",
        fixed={"save": "jatos", "datapipe_id": ""},
        to_edit=tuple(f"page/{name}" for name in (*TEXTS, PRACTICE, QUESTIONS)),
    ),
    Reader(import_jatos, files="Results as plain text."),
)
