"""What an exported folder holds."""

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
def made_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Packages of made-up content, served as npm serves packages; the folder of archives."""
    files = []
    archives = tmp_path / "npm"
    for file in LIBRARY:
        content = f"// {file['package']}".encode()
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            member = tarfile.TarInfo("package/dist/index.browser.min.js")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        name = f"{file['package'].split('/')[-1]}-{file['version']}.tgz"
        path = archives / file["package"] / "-" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(packed.getvalue())
        checks = integrity(content, "sha384"), integrity(packed.getvalue(), "sha512")
        files.append(file | {"integrity": checks[0], "archive": checks[1]})
    monkeypatch.setattr(library, "LIBRARY", tuple(files))
    return archives


def test_the_study_has_every_trial_once_as_people_see_it(tmp_path: Path) -> None:
    hostile = replace(
        TRIALS[0],
        sentence_1=Sentence.parse("</script><b>'\" Ünïcode!"),
        sentence_2=Sentence.parse("= 1 + 1."),
    )
    trials = [hostile, *TRIALS[1:]]
    export_jspsych(trials, tmp_path / "page", PageSettings(completion_code="SECRET"))
    study = json.loads((tmp_path / "page" / "study.json").read_text(encoding="utf-8"))
    shown = {
        trial["trial_id"]: (int(group), trial["sentence_1"], trial["sentence_2"])
        for group, own in study["groups"].items()
        for trial in own
    }
    assert shown == {t.trial_id: (t.group, *t.displayed_texts) for t in trials}
    by_id = {t.trial_id: t.condition for t in trials}
    strata = {(by_id[t["trial_id"]], t["stratum"]) for own in study["groups"].values() for t in own}
    assert len(strata) == len(set(by_id.values()))
    assert study["completion"] == {"code": "SECRET", "redirect": None}
    script = (tmp_path / "page" / "study.js").read_text(encoding="utf-8")
    assert json.loads(script[script.index("{") : script.rindex("}") + 1]) == {
        **study,
        "completion": None,  # the server hands it out
    }
    assert script.isascii()


def test_the_cdn_is_pinned_by_version_and_content(tmp_path: Path) -> None:
    export_jspsych(TRIALS, tmp_path / "page")
    index = (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    found = re.findall(r'src="(https:[^"]+)"\s+integrity="(sha384-[^"]+)" crossorigin', index)
    assert found == [(cdn_address(file), file["integrity"]) for file in LIBRARY]
    assert all(re.search(r"@\d+\.\d+\.\d+/", address) for address, _ in found)


def test_the_library_here_is_the_pinned_one(library: Path) -> None:
    for file in LIBRARY:
        assert integrity((library / file["name"]).read_bytes(), "sha384") == file["integrity"]


def test_texts_that_nobody_edited_follow_scale_and_language(tmp_path: Path) -> None:
    """Witness: what an export into an empty folder holds."""
    settings = PageSettings(language="de", deadline=10)
    slider = on_scale(TRIALS, Scale.SLIDER)
    export_jspsych(TRIALS, tmp_path / "page")
    export_jspsych(slider, tmp_path / "page", settings)
    export_jspsych(slider, tmp_path / "new", settings)
    for name in TEXTS:
        again, new = ((tmp_path / each / name).read_text("utf-8") for each in ("page", "new"))
        assert again == new
    (tmp_path / "page" / "instructions.md").write_text("Choose one of six.")
    export_jspsych(slider, tmp_path / "page", settings)
    with pytest.raises(InputError, match=r"edited texts \(instructions.md\) for the scale slider"):
        export_jspsych(TRIALS, tmp_path / "page")


def test_scripts_that_only_an_earlier_export_loads_give_way(tmp_path: Path) -> None:
    folder = tmp_path / "page"
    export_jspsych(TRIALS, folder)
    # A page as an earlier version left it: parts/homes/ is where it kept what is now backends/.
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


def test_the_default_texts_fit_the_page(tmp_path: Path) -> None:
    """Every label that the page asks for is there, and none that it does not."""
    (tmp_path / "pairs.csv").write_text("sentence_1,sentence_2\nOne.,Two.\n")
    (tmp_path / "asked.csv").write_text("name,when,kind,question,options\nx,check,choice,X?,a|*b\n")
    practice, questions = tmp_path / "pairs.csv", tmp_path / "asked.csv"
    settings = PageSettings(practice=practice, questions=questions, break_every=2)
    export_jspsych(TRIALS, tmp_path / "page", settings)
    page = Path(library.__file__).parent / "page"
    code = "".join(path.read_text(encoding="utf-8") for path in page.rglob("*.js"))
    asked = set(re.findall(r'(?:label|waiting|refuse|banner)\("(\w+)"', code)) - {"labels"}
    asked |= {"first_sentence", "second_sentence"}
    asked |= set(re.findall(r'"(\w*confident)"', code)) - {"choose"}
    with (tmp_path / "page" / "labels.csv").open(encoding="utf-8", newline="") as file:
        assert asked == {row["name"] for row in csv.DictReader(file)}
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
def test_bad_texts_are_named(tmp_path: Path, name: str, text: str | bytes, message: str) -> None:
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
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PageSettings(**settings)


def test_trials_must_be_there_once(tmp_path: Path) -> None:
    for trials in ([], [TRIALS[0], TRIALS[0]]):
        with pytest.raises(InputError, match=r"no trials|occurs twice"):
            export_jspsych(trials, tmp_path / "page")
    assert not (tmp_path / "page").exists()


def test_npm_is_checked(
    made_up: Path, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "_NPM", host(made_up).removesuffix("/"))
    fetch_library(tmp_path / "vendor")
    spoilt = next(made_up.rglob("*.tgz"))
    spoilt.write_bytes(spoilt.read_bytes() + b"more")
    with pytest.raises(InputError, match="unexpected checksum"):
        fetch_library(tmp_path / "other")
    monkeypatch.setattr(library, "_NPM", "http://127.0.0.1:1")
    fetch_library(tmp_path / "vendor")  # all there: nothing is fetched
    for file in library.LIBRARY:
        content = (tmp_path / "vendor" / file["name"]).read_bytes()
        assert content == f"// {file['package']}".encode()
    with pytest.raises(InputError, match="a folder with the files"):
        fetch_library(tmp_path / "third")


def test_the_library_is_taken_from_a_folder_and_checked(made_up: Path, tmp_path: Path) -> None:
    del made_up
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
    assert "Copyright (c) 2014" in licence  # MIT asks for the notice and the permission
    assert "Permission is hereby granted, free of charge" in licence
    (page / "vendor" / library.LIBRARY[0]["name"]).write_text("spoilt")
    with pytest.raises(InputError, match="unexpected checksum"):
        fetch_library(tmp_path / "copy", page / "vendor")
    with pytest.raises(InputError, match="has neither"):
        fetch_library(tmp_path / "copy", tmp_path)
