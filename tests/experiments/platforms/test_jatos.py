"""Study archives, held against what JATOS documents and checks on import.

Witnesses: the JSON schema at jatos.org/JATOS-Study-Archive-JZIP.html, and the rules of JATOS's own
importer (ImportExportService, StudyProperties, IOUtils), written out here.
"""

import json
import re
import zipfile
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import UUID

import pytest

from contstim.errors import InputError
from contstim.experiments.platforms.jspsych import PageSettings
from contstim.experiments.platforms.jspsych.jatos import PLATFORM, export_jatos
from contstim.testing.platform import ExportContract
from tests.experiments.platforms.conftest import TRIALS
from tests.experiments.platforms.test_jspsych_reading import study_lists

SETTINGS = PageSettings(title="What's likelier? A pilot (2)", save="jatos")
ILLEGAL = re.compile(r"[\s*?\"\\\0/,`<>|:~!§$%&^°]")
RESERVED = {"jatos", "publix", "public", "assets", "study_assets_root", "study_assets"}
WORKERS = {
    *("GeneralMultiple", "GeneralSingle", "Jatos", "MTSandbox", "MT"),
    *("PersonalMultiple", "PersonalSingle"),
}
TYPES: dict[str, dict[str, Any]] = {
    "data": {
        **dict.fromkeys(("uuid", "title", "description", "dirName", "comments"), str),
        **dict.fromkeys(("groupStudy", "linearStudy", "allowPreview"), bool),
        **dict.fromkeys(("componentList", "batchList"), list),
        **dict.fromkeys(("endRedirectUrl",), str),
        **dict.fromkeys(("jsonData", "studyEntryMsg"), str | None),
    },
    "component": {
        **dict.fromkeys(("uuid", "title", "htmlFilePath", "comments"), str),
        **dict.fromkeys(("reloadable", "active"), bool),
        "jsonData": type(None),
    },
    "batch": {
        **dict.fromkeys(("uuid", "title", "comments"), str),
        "active": bool,
        **dict.fromkeys(("maxActiveMembers", "maxTotalMembers", "maxTotalWorkers"), int | None),
        "allowedWorkerTypes": list,
        "jsonData": str | None,
    },
}


def read(archive: Path) -> tuple[list[str], dict[str, Any]]:
    """Names of the members, and the properties."""
    with zipfile.ZipFile(archive) as packed:
        assert packed.testzip() is None
        names = packed.namelist()
        (jas,) = [name for name in names if name.endswith(".jas") and "/" not in name]
        return names, json.loads(packed.read(jas))


def test_one_properties_file_beside_one_folder(tmp_path: Path) -> None:
    archive = export_jatos(TRIALS, tmp_path, SETTINGS).path
    assert archive.suffix == ".jzip"
    names, properties = read(archive)
    tops = {PurePosixPath(name).parts[0] for name in names}
    (folder,) = [top for top in tops if not top.endswith(".jas")]
    assert len(tops) == 2
    assert sum(name.endswith(".jas") for name in names) == 1
    assert len(names) == len(set(names))
    assert properties["data"]["dirName"] == folder
    (component,) = properties["data"]["componentList"]
    assert f"{folder}/{component['htmlFilePath']}" in names
    on_disk = {path.relative_to(tmp_path / "page") for path in (tmp_path / "page").rglob("*.*")}
    assert {PurePosixPath(name).relative_to(folder) for name in names if folder + "/" in name} == {
        PurePosixPath(path) for path in on_disk
    }


def test_the_properties_are_those_of_version_3(tmp_path: Path) -> None:
    _, properties = read(export_jatos(TRIALS, tmp_path, SETTINGS).path)
    assert set(properties) == {"version", "data"}
    assert properties["version"] == "3"
    data = properties["data"]
    parts = {"data": data, "component": data["componentList"][0], "batch": data["batchList"][0]}
    for name, part in parts.items():
        assert set(part) == set(TYPES[name])
        for field, value in part.items():
            assert isinstance(value, TYPES[name][field]), (name, field)
    assert len({str(UUID(part["uuid"])) for part in parts.values()}) == 3
    assert set(parts["batch"]["allowedWorkerTypes"]) <= WORKERS
    assert parts["component"]["reloadable"] is True
    assert data["title"] == SETTINGS.title


@pytest.mark.parametrize("title", [SETTINGS.title, "  ", "日本語", "jatos", "x" * 255, "a/../b"])
def test_names_are_those_that_jatos_takes(tmp_path: Path, title: str) -> None:
    if not title.strip():
        with pytest.raises(InputError, match="title must not be empty"):
            replace(SETTINGS, title=title)
        return
    _, properties = read(export_jatos(TRIALS, tmp_path, replace(SETTINGS, title=title)).path)
    folder = properties["data"]["dirName"]
    assert not ILLEGAL.search(folder)
    assert 0 < len(folder) <= 100
    assert folder not in RESERVED
    assert ".." not in folder


@pytest.mark.parametrize("title", ["<b>Bold</b>", "x" * 256, "R&D"])
def test_titles_that_jatos_refuses_are_refused_before(tmp_path: Path, title: str) -> None:
    with pytest.raises(InputError, match="at most"):
        export_jatos(TRIALS, tmp_path, replace(SETTINGS, title=title))
    with pytest.raises(InputError, match="must be jatos"):
        export_jatos(TRIALS, tmp_path, PageSettings())


class TestContract(ExportContract):
    """What the archive holds; the answers are read as those of any jsPsych page."""

    platform = PLATFORM

    def lists(self, folder: Path) -> dict[str, list[dict[str, str]]]:
        (archive,) = folder.glob("*.jzip")
        with zipfile.ZipFile(archive) as packed:
            (name,) = (n for n in packed.namelist() if n.endswith("study.json"))
            return study_lists(json.loads(packed.read(name)))
