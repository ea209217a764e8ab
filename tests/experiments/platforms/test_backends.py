"""Where answers go without a server of ours, and study archives of JATOS.

DataPipe and JATOS are played by what they document of themselves: pipe.jspsych.org/api-docs, the
reference of jatos.js, the JSON schema at jatos.org/JATOS-Study-Archive-JZIP.html, and the rules of
the importer of JATOS (ImportExportService, StudyProperties, IOUtils), written out here.
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
from contstim.experiments.platforms.jspsych.reading import import_jspsych
from contstim.experiments.responses.checks import Problem
from contstim.experiments.responses.table import Response, escape_formula, read_responses
from contstim.testing.platform import ExportContract, contents
from tests.experiments.platforms.conftest import PAIRS, TRIALS, Export, Host, Visit
from tests.experiments.platforms.test_jspsych_reading import study_lists
from tests.experiments.platforms.walking import answer, begin, reach

PLANNED = {trial.trial_id: 1 + number % 6 for number, trial in enumerate(TRIALS)}


def check(responses: tuple[Response, ...], *, group: int = 1) -> None:
    """The answers that were planned, for every trial of the group."""
    expected = {t.trial_id: PLANNED[t.trial_id] for t in TRIALS if t.group == group}
    assert {r.trial_id: r.rating for r in responses} == expected
    assert sorted(r.position for r in responses) == [1, 2, 3]
    assert {r.group for r in responses} == {group}
    assert all(r.left in (1, 2) and r.rt_ms > 0 for r in responses)


def test_a_page_from_disk_works_offline(export: Export, visit: Visit, tmp_path: Path) -> None:
    folder = export(save="download", completion_code="THANKS")
    page = visit(accept_downloads=True, offline=True)
    page.add_init_script(f"window.contstimSimulation = {PLANNED}")
    page.goto(f"{folder.as_uri()}/index.html?simulate&group=1")
    reach(page, "file")
    assert page.locator(".code").count() == 0
    with page.expect_download() as download:
        page.click("button.next")
    reach(page, "saved")
    assert page.inner_text(".code") == "THANKS"
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    responses = read_responses(file)
    check(responses)
    assert all(response.simulated for response in responses)
    assert all(response.participant.startswith("simulated-") for response in responses)
    found = import_jspsych([file], TRIALS)
    assert found.responses == responses
    assert {each.problem for each in found.report.findings} <= {Problem.TOO_FAST}


class DataPipe:
    """Answers as the documentation says; keeps the files."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.condition = 1
        self.lose_answers = 0

    def __call__(self, route: Any) -> None:
        sent = route.request.post_data_json
        assert sent["experimentID"] == "abc123"
        if route.request.url.endswith("/condition/"):
            status, content = 200, {"message": "Success", "condition": self.condition}
        elif sent["filename"] in self.files:
            status, content = 400, {"error": "FILE_EXISTS", "message": "File names are unique."}
        else:
            self.files[sent["filename"]] = sent["data"]
            status, content = 201, {"message": "Success"}
        if self.lose_answers:
            self.lose_answers -= 1
            route.abort()
        else:
            headers = {"Access-Control-Allow-Origin": "*"}
            route.fulfill(status=status, json=content, headers=headers)


def test_datapipe_gets_a_file_of_answers_and_one_of_identities(
    export: Export, host: Host, visit: Visit, tmp_path: Path
) -> None:
    """The answer to the first file is lost on the way: it is sent again, and not kept twice.

    Identities that a spreadsheet would run are escaped as `escape_formula` does it.
    """
    pipe = DataPipe()
    folder = export(save="datapipe", datapipe_id="abc123", redirect="https://example.org/?cc=1")
    page = visit()
    page.add_init_script(f"window.contstimSimulation = {PLANNED}")
    page.route("https://pipe.jspsych.org/api/**", pipe)
    page.goto(f"{host(folder)}?PROLIFIC_PID==HYPERLINK(1)&STUDY_ID=s&SESSION_ID=t")
    begin(page)
    pipe.lose_answers = 1
    for _ in range(PAIRS):
        page.wait_for_selector("button.confidence:enabled")
        answer(page, 2)
    reach(page, "saved")
    assert page.locator("button.leave").count() == 1
    identities, answers = sorted(pipe.files)
    assert identities == f"identity-{answers}"
    assert "HYPERLINK" not in pipe.files[answers]
    name = answers.removesuffix(".csv")
    assert pipe.files[identities] == (
        f'"participant","PROLIFIC_PID","STUDY_ID","SESSION_ID"\n"{name}","\'=HYPERLINK(1)","s","t"\n'
    )
    texts = [quote + sign + "1" for quote in ("", "'") for sign in "=+-@\t\r\n＝＋－＠a1 "]
    assert page.evaluate("texts => texts.map(contstim.escapeFormula)", texts) == list(
        map(escape_formula, texts)
    )
    (tmp_path / answers).write_text(pipe.files[answers])
    responses = read_responses(tmp_path / answers)
    assert {r.participant for r in responses} == {name}
    assert {r.group for r in responses} == {2}  # DataPipe counts conditions from 0
    assert import_jspsych([tmp_path / answers], TRIALS).responses == responses
    assert '"datapipe"' in pipe.files[answers]


JATOS = """
window.jatos = {
  studyResultId: 7,
  urlQueryParameters: %s,
  batchSession: {
    get: (name) => (name === "contstim_started" ? window.counts : undefined),
    set: (name, value) => window.conflicts-- > 0 ? Promise.reject("conflict")
      : Promise.resolve(tell("counts", JSON.stringify(value))),
  },
  onLoad: (ready) => setTimeout(ready, 20),
  submitResultData: (data) => Promise.resolve(tell("data", data)),
  endStudyAjax: (success) => Promise.resolve(tell("end", String(success))),
};
window.counts = { 1: 4, 2: 3 };
window.conflicts = 1;
"""


def test_jatos_gets_answers_as_they_come_and_over_reloads(
    export: Export, host: Host, visit: Visit, tmp_path: Path
) -> None:
    """As JATOS does, a reload begins another result; all results, a line each, are complete."""
    told: list[tuple[str, str]] = []
    results: list[str] = []

    def tell(what: str, value: str) -> None:
        told.append((what, value))
        if what == "data":
            results[-1] = value

    redirect = "https://app.prolific.com/?cc=1"
    page = visit()
    page.expose_function("tell", tell)
    parameters = {"PROLIFIC_PID": "person"}
    stub = JATOS % json.dumps(parameters)
    page.route(
        "**/*jatos.js", lambda route: route.fulfill(body=stub, content_type="text/javascript")
    )
    results.append("")
    page.goto(host(export(save="jatos", redirect=redirect)))
    begin(page)
    assert told == [("counts", '{"1":4,"2":4}')]
    answer(page, 3)
    results.append("")
    page.reload()
    reach(page, "resume")
    page.click("button.next")
    answer(page, 3)
    answer(page, 3)
    reach(page, "saved")
    assert told[-1] == ("end", "true")
    page.route(redirect, lambda route: route.fulfill(body="Welcome back at Prolific"))
    page.click("button.leave")
    page.wait_for_url(redirect)
    assert [len(json.loads(result)) for result in results] == [1, 2]
    assert "person" not in "".join(results)
    file = tmp_path / "jatos_results.txt"
    file.write_text("\n".join(results))
    found = import_jspsych([file], TRIALS)
    assert [r.position for r in found.responses] == [1, 2, 3]
    assert {(r.participant, r.group) for r in found.responses} == {("jatos-7", 2)}


@pytest.mark.slow
def test_batches_of_jatos_can_name_groups(export: Export, host: Host, visit: Visit) -> None:
    told: list[tuple[str, str]] = []
    page = visit()
    page.expose_function("tell", lambda what, value: told.append((what, value)))
    stub = JATOS % "{}" + "jatos.batchInput = { group: 1 };"
    page.route(
        "**/*jatos.js", lambda route: route.fulfill(body=stub, content_type="text/javascript")
    )
    page.goto(f"{host(export(save='jatos'))}?simulate")
    reach(page, "saved")
    assert {what for what, _ in told} == {"data", "end"}
    rows = json.loads(told[-2][1])
    assert {(row["group"], row["participant"]) for row in rows} == {(1, "simulated-jatos-7")}


SETTINGS = PageSettings(title="What's likelier? A pilot (2)", save="jatos")
ILLEGAL = re.compile(r"[\s*?\"\\\0/,`<>|:~!§$%&^°]")
RESERVED = {"jatos", "publix", "public", "assets", "study_assets_root", "study_assets"}
WORKERS = {
    *("GeneralMultiple", "GeneralSingle", "Jatos", "MTSandbox", "MT"),
    *("PersonalMultiple", "PersonalSingle"),
}
TYPES: dict[str, dict[str, Any]] = {
    "data": {
        **dict.fromkeys(("uuid", "title", "description", "dirName"), str),
        **dict.fromkeys(("comments", "endRedirectUrl"), str),
        **dict.fromkeys(("groupStudy", "linearStudy", "allowPreview"), bool),
        **dict.fromkeys(("componentList", "batchList"), list),
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
    on_disk = {each for each in contents(tmp_path / "page") if "." in each}
    assert {name.removeprefix(f"{folder}/") for name in names if f"{folder}/" in name} == on_disk


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
