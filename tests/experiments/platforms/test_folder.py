"""Files of an exported page, and its errors."""

import base64
import csv
import hashlib
import io
import json
import re
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contstim.errors import InputError
from contstim.experiments.platforms.jspsych import PageSettings, export_jspsych, library
from contstim.experiments.platforms.jspsych.folder import TEXTS
from contstim.experiments.platforms.jspsych.library import LIBRARY, cdn_address, fetch_library
from contstim.items.scale import Scale
from contstim.items.stimuli import on_scale
from contstim.words.sentence import Sentence
from tests.experiments.platforms.conftest import TRIALS, Host


def integrity(content: bytes, method: str) -> str:
    return f"{method}-{base64.b64encode(hashlib.new(method, content).digest()).decode()}"


@pytest.fixture
def npm_archives(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Folder of made-up packages, laid out as npm serves them."""
    files = []
    archives = tmp_path / "npm"
    for file in LIBRARY:
        content = f"// {file['package']}".encode()
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            member = tarfile.TarInfo("package/dist/index.browser.min.js")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        name = f"{file['package'].split('/')[-1]}-{file['version']}.tgz"
        path = archives / file["package"] / "-" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(buffer.getvalue())
        checks = integrity(content, "sha384"), integrity(buffer.getvalue(), "sha512")
        files.append(file | {"integrity": checks[0], "archive": checks[1]})
    monkeypatch.setattr(library, "LIBRARY", tuple(files))
    return archives


def test_study_contains_each_displayed_trial_once(tmp_path: Path) -> None:
    hostile = replace(
        TRIALS[0],
        sentence_1=Sentence.parse("</script><b>'\" Ünïcode!"),
        sentence_2=Sentence.parse("= 1 + 1."),
    )
    trials = [hostile, *TRIALS[1:]]
    export_jspsych(trials, tmp_path / "page", PageSettings(completion_code="SECRET"))
    study = json.loads((tmp_path / "page" / "study.json").read_text(encoding="utf-8"))
    texts = {
        trial["trial_id"]: (int(group), trial["sentence_1"], trial["sentence_2"])
        for group, members in study["groups"].items()
        for trial in members
    }
    assert texts == {t.trial_id: (t.group, *t.displayed_texts) for t in trials}
    by_id = {t.trial_id: t.condition for t in trials}
    actual = {
        (by_id[t["trial_id"]], t["stratum"])
        for members in study["groups"].values()
        for t in members
    }
    assert len(actual) == len(set(by_id.values()))
    assert study["completion"] == {"code": "SECRET", "redirect": None}
    script = (tmp_path / "page" / "study.js").read_text(encoding="utf-8")
    assert json.loads(script[script.index("{") : script.rindex("}") + 1]) == {
        **study,
        "completion": None,  # the server sends it at the end
    }
    assert script.isascii()


def test_cdn_addresses_have_version_and_checksum(tmp_path: Path) -> None:
    export_jspsych(TRIALS, tmp_path / "page")
    index = (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    scripts = re.findall(r'src="(https:[^"]+)"\s+integrity="(sha384-[^"]+)" crossorigin', index)
    assert scripts == [(cdn_address(file), file["integrity"]) for file in LIBRARY]
    assert all(re.search(r"@\d+\.\d+\.\d+/", address) for address, _ in scripts)


def test_local_library_matches_checksums(library: Path) -> None:
    for file in LIBRARY:
        assert integrity((library / file["name"]).read_bytes(), "sha384") == file["integrity"]


def test_unedited_texts_follow_scale_and_language(tmp_path: Path) -> None:
    """Witness: an export into an empty folder."""
    settings = PageSettings(language="de", deadline=10)
    slider = on_scale(TRIALS, Scale.SLIDER)
    export_jspsych(TRIALS, tmp_path / "page")
    export_jspsych(slider, tmp_path / "page", settings)
    export_jspsych(slider, tmp_path / "new", settings)
    for name in TEXTS:
        updated, new = ((tmp_path / folder / name).read_text("utf-8") for folder in ("page", "new"))
        assert updated == new
    (tmp_path / "page" / "instructions.md").write_text("Choose one of six.")
    export_jspsych(slider, tmp_path / "page", settings)
    with pytest.raises(InputError, match=r"edited texts \(instructions.md\) for the scale slider"):
        export_jspsych(TRIALS, tmp_path / "page")


def test_scripts_of_earlier_export_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "page"
    export_jspsych(TRIALS, folder)
    # A page of an earlier version, in which backends/ was called parts/homes/
    index = (folder / "index.html").read_text(encoding="utf-8")
    earlier = '<script src="parts/homes/server_home.js" defer></script>\n</head>'
    (folder / "index.html").write_text(index.replace("</head>", earlier), encoding="utf-8")
    (folder / "parts" / "homes").mkdir()
    (folder / "parts" / "homes" / "server_home.js").write_text("earlier")
    (folder / "parts" / "ours.js").write_text("the researcher's")
    export_jspsych(TRIALS, folder, PageSettings(save="jatos"))
    assert not (folder / "parts" / "homes").exists()
    assert (folder / "parts" / "ours.js").read_text() == "the researcher's"
    backends = {path.name for path in (folder / "parts" / "backends").iterdir()}
    assert backends == {"no_server.js", "jatos_backend.js"}


def test_labels_are_exactly_those_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("sentence_1,sentence_2\nOne.,Two.\n")
    (tmp_path / "asked.csv").write_text("name,when,kind,question,options\nx,check,choice,X?,a|*b\n")
    practice, questions = tmp_path / "pairs.csv", tmp_path / "asked.csv"
    settings = PageSettings(practice=practice, questions=questions, break_every=2)
    export_jspsych(TRIALS, tmp_path / "page", settings)
    page = Path(library.__file__).parent / "page"
    code = "".join(path.read_text(encoding="utf-8") for path in page.rglob("*.js"))
    names = set(re.findall(r'(?:label|waiting|refuse|banner)\("(\w+)"', code)) - {"labels"}
    names |= {"first_sentence", "second_sentence"}
    names |= set(re.findall(r'"(\w*confident)"', code)) - {"choose"}
    with (tmp_path / "page" / "labels.csv").open(encoding="utf-8", newline="") as file:
        assert names == {row["name"] for row in csv.DictReader(file)}
    with (tmp_path / "page" / "examples.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 2


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("examples.csv", "sentence_1,sentence_2\na,b\n", "lacks the columns rating"),
        ("examples.csv", "sentence_1,sentence_2,rating,explanation\na,b,7,c\n", "'7' under rating"),
        ("labels.csv", "name,text\nquestion,x\n", "lacks the labels agree"),
        ("practice.csv", "one,two\na,b\n", "lacks the columns sentence_1"),
        ("practice.csv", "sentence_1\tsentence_2\na\tb\n", "separated by tabs"),
        ("consent.md", b"\xff", "is not UTF-8"),
    ],
)
def test_invalid_texts_raise(tmp_path: Path, name: str, text: str | bytes, message: str) -> None:
    export_jspsych(TRIALS, tmp_path)
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=message):
        export_jspsych(TRIALS, tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"title": " "}, "title must not be empty"),
        ({"save": "datapipe"}, "`datapipe_id` must be set"),
        ({"datapipe_id": "abc"}, "`datapipe_id` must be set"),
        ({"save": "datapipe", "datapipe_id": "a'b"}, "`datapipe_id` must have only letters"),
        ({"language": 'en"><script>'}, "`language` must be a code such as en"),
        ({"redirect": "javascript:alert(1)"}, "not a web address"),
    ],
)
def test_invalid_settings_raise_errors(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PageSettings(**settings)


def test_missing_or_duplicate_trials_raise_errors(tmp_path: Path) -> None:
    for trials, message in (([], "no trials"), ([TRIALS[0], TRIALS[0]], "occurs twice")):
        with pytest.raises(InputError, match=message):
            export_jspsych(trials, tmp_path / "page")
    assert not (tmp_path / "page").exists()


def test_downloads_from_npm_are_checked(
    npm_archives: Path, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "_NPM", host(npm_archives).removesuffix("/"))
    fetch_library(tmp_path / "vendor")
    archive = next(npm_archives.rglob("*.tgz"))
    archive.write_bytes(archive.read_bytes() + b"more")
    with pytest.raises(InputError, match="unexpected checksum"):
        fetch_library(tmp_path / "other")
    monkeypatch.setattr(library, "_NPM", "http://127.0.0.1:1")
    fetch_library(tmp_path / "vendor")  # the files exist: nothing is downloaded
    for file in library.LIBRARY:
        content = (tmp_path / "vendor" / file["name"]).read_bytes()
        assert content == f"// {file['package']}".encode()
    with pytest.raises(InputError, match="a folder with the files"):
        fetch_library(tmp_path / "third")


def test_library_in_folder_is_copied_and_checked(npm_archives: Path, tmp_path: Path) -> None:
    del npm_archives
    modules = tmp_path / "node_modules"
    for file in library.LIBRARY:
        path = modules / file["package"] / "dist" / "index.browser.min.js"
        path.parent.mkdir(parents=True)
        path.write_text(f"// {file['package']}")
    page = tmp_path / "page"
    export_jspsych(TRIALS, page, PageSettings(library=modules))
    index = (page / "index.html").read_text(encoding="utf-8")
    assert "https:" not in index
    fetch_library(tmp_path / "copy", page / "vendor")
    licence = (tmp_path / "copy" / "LICENSE.txt").read_text(encoding="utf-8")
    assert "Copyright (c) 2014" in licence  # the MIT licence requires both texts
    assert "Permission is hereby granted, free of charge" in licence
    (page / "vendor" / library.LIBRARY[0]["name"]).write_text("spoilt")
    with pytest.raises(InputError, match="unexpected checksum"):
        fetch_library(tmp_path / "copy", page / "vendor")
    with pytest.raises(InputError, match="has neither"):
        fetch_library(tmp_path / "copy", tmp_path)
