"""Pages that save by download, DataPipe or JATOS, and study archives of JATOS.

DataPipe and JATOS are replaced by stubs that follow their documentation: pipe.jspsych.org/api-docs,
the reference of jatos.js, and the JSON schema at jatos.org/JATOS-Study-Archive-JZIP.html. The rules
of the importer of JATOS (ImportExportService, StudyProperties, IOUtils) are copied here.
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
from tests.experiments.platforms.walking import answer, begin, wait_for

PLANNED = {trial.trial_id: 1 + number % 6 for number, trial in enumerate(TRIALS)}


def check_responses(responses: tuple[Response, ...], *, group: int = 1) -> None:
    """Check that the responses are the planned ones, for every trial of the group."""
    expected = {t.trial_id: PLANNED[t.trial_id] for t in TRIALS if t.group == group}
    assert {r.trial_id: r.rating for r in responses} == expected
    assert sorted(r.position for r in responses) == [1, 2, 3]
    assert {r.group for r in responses} == {group}
    assert all(r.left in (1, 2) and r.rt_ms > 0 for r in responses)


def test_page_opened_from_disk_works_offline(export: Export, visit: Visit, tmp_path: Path) -> None:
    folder = export(save="download", completion_code="THANKS")
    page = visit(accept_downloads=True, offline=True)
    page.add_init_script(f"window.contstimSimulation = {PLANNED}")
    page.goto(f"{folder.as_uri()}/index.html?simulate&group=1")
    wait_for(page, "file")
    assert page.locator(".code").count() == 0
    with page.expect_download() as download:
        page.click("button.next")
    wait_for(page, "saved")
    assert page.inner_text(".code") == "THANKS"
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    responses = read_responses(file)
    check_responses(responses)
    assert all(response.simulated for response in responses)
    assert all(response.participant.startswith("simulated-") for response in responses)
    result = import_jspsych([file], TRIALS)
    assert result.responses == responses
    assert {finding.problem for finding in result.report.findings} <= {Problem.TOO_FAST}


class DataPipe:
    """A stub of DataPipe that replies as documented and stores the files."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.condition = 1
        self.lose_answers = 0

    def __call__(self, route: Any) -> None:
        body = route.request.post_data_json
        assert body["experimentID"] == "abc123"
        if route.request.url.endswith("/condition/"):
            status, content = 200, {"message": "Success", "condition": self.condition}
        elif body["filename"] in self.files:
            status, content = 400, {"error": "FILE_EXISTS", "message": "File names are unique."}
        else:
            self.files[body["filename"]] = body["data"]
            status, content = 201, {"message": "Success"}
        if self.lose_answers:
            self.lose_answers -= 1
            route.abort()
        else:
            headers = {"Access-Control-Allow-Origin": "*"}
            route.fulfill(status=status, json=content, headers=headers)


def test_datapipe_receives_responses_and_identities(
    export: Export, host: Host, visit: Visit, tmp_path: Path
) -> None:
    """The reply to the first file is lost: the page sends it again, and DataPipe stores it once.

    Identities that a spreadsheet would execute are escaped as by `escape_formula`.
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
    wait_for(page, "saved")
    assert page.locator("button.leave").count() == 1
    identity_file, response_file = sorted(pipe.files)
    assert identity_file == f"identity-{response_file}"
    assert "HYPERLINK" not in pipe.files[response_file]
    name = response_file.removesuffix(".csv")
    assert pipe.files[identity_file] == (
        f'"participant","PROLIFIC_PID","STUDY_ID","SESSION_ID"\n"{name}","\'=HYPERLINK(1)","s","t"\n'
    )
    texts = [quote + sign + "1" for quote in ("", "'") for sign in "=+-@\t\r\n＝＋－＠a1 "]
    assert page.evaluate("texts => texts.map(contstim.escapeFormula)", texts) == list(
        map(escape_formula, texts)
    )
    (tmp_path / response_file).write_text(pipe.files[response_file])
    responses = read_responses(tmp_path / response_file)
    assert {r.participant for r in responses} == {name}
    assert {r.group for r in responses} == {2}  # DataPipe counts conditions from 0
    assert import_jspsych([tmp_path / response_file], TRIALS).responses == responses
    assert '"datapipe"' in pipe.files[response_file]


JATOS = """
window.jatos = {
  studyResultId: 7,
  urlQueryParameters: %s,
  batchSession: {
    get: (name) => (name === "contstim_started" ? window.counts : undefined),
    set: (name, value) => window.conflicts-- > 0 ? Promise.reject("conflict")
      : Promise.resolve(recordCall("counts", JSON.stringify(value))),
  },
  onLoad: (ready) => setTimeout(ready, 20),
  submitResultData: (data) => Promise.resolve(recordCall("data", data)),
  endStudyAjax: (success) => Promise.resolve(recordCall("end", String(success))),
};
window.counts = { 1: 4, 2: 3 };
window.conflicts = 1;
"""


def test_jatos_receives_each_response_and_survives_reloads(
    export: Export, host: Host, visit: Visit, tmp_path: Path
) -> None:
    """As in JATOS, a reload begins another result; the results together are complete."""
    calls: list[tuple[str, str]] = []
    results: list[str] = []

    def record_call(kind: str, value: str) -> None:
        calls.append((kind, value))
        if kind == "data":
            results[-1] = value

    redirect = "https://app.prolific.com/?cc=1"
    page = visit()
    page.expose_function("recordCall", record_call)
    parameters = {"PROLIFIC_PID": "person"}
    stub = JATOS % json.dumps(parameters)
    page.route(
        "**/*jatos.js", lambda route: route.fulfill(body=stub, content_type="text/javascript")
    )
    results.append("")
    page.goto(host(export(save="jatos", redirect=redirect)))
    begin(page)
    assert calls == [("counts", '{"1":4,"2":4}')]
    answer(page, 3)
    results.append("")
    page.reload()
    wait_for(page, "resume")
    page.click("button.next")
    answer(page, 3)
    answer(page, 3)
    wait_for(page, "saved")
    assert calls[-1] == ("end", "true")
    page.route(redirect, lambda route: route.fulfill(body="Welcome back at Prolific"))
    page.click("button.leave")
    page.wait_for_url(redirect)
    assert [len(json.loads(page_data)) for page_data in results] == [1, 2]
    assert "person" not in "".join(results)
    file = tmp_path / "jatos_results.txt"
    file.write_text("\n".join(results))
    result = import_jspsych([file], TRIALS)
    assert [r.position for r in result.responses] == [1, 2, 3]
    assert {(r.participant, r.group) for r in result.responses} == {("jatos-7", 2)}


@pytest.mark.slow
def test_jatos_batch_input_assigns_group(export: Export, host: Host, visit: Visit) -> None:
    calls: list[tuple[str, str]] = []
    page = visit()
    page.expose_function("recordCall", lambda kind, value: calls.append((kind, value)))
    stub = JATOS % "{}" + "jatos.batchInput = { group: 1 };"
    page.route(
        "**/*jatos.js", lambda route: route.fulfill(body=stub, content_type="text/javascript")
    )
    page.goto(f"{host(export(save='jatos'))}?simulate")
    wait_for(page, "saved")
    assert {kind for kind, _ in calls} == {"data", "end"}
    rows = json.loads(calls[-2][1])
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


def unpack(archive: Path) -> tuple[list[str], dict[str, Any]]:
    """Return the names of the members and the properties."""
    with zipfile.ZipFile(archive) as packed:
        assert packed.testzip() is None
        names = packed.namelist()
        (jas,) = [name for name in names if name.endswith(".jas") and "/" not in name]
        return names, json.loads(packed.read(jas))


def test_archive_has_one_properties_file_and_one_folder(tmp_path: Path) -> None:
    archive = export_jatos(TRIALS, tmp_path, SETTINGS).path
    assert archive.suffix == ".jzip"
    names, properties = unpack(archive)
    tops = {PurePosixPath(name).parts[0] for name in names}
    (folder,) = [top for top in tops if not top.endswith(".jas")]
    assert len(tops) == 2
    assert sum(name.endswith(".jas") for name in names) == 1
    assert len(names) == len(set(names))
    assert properties["data"]["dirName"] == folder
    (component,) = properties["data"]["componentList"]
    assert f"{folder}/{component['htmlFilePath']}" in names
    on_disk = {path for path in contents(tmp_path / "page") if "." in path}
    assert {name.removeprefix(f"{folder}/") for name in names if f"{folder}/" in name} == on_disk


def test_properties_match_schema_version_3(tmp_path: Path) -> None:
    _, properties = unpack(export_jatos(TRIALS, tmp_path, SETTINGS).path)
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
def test_folder_names_are_valid_in_jatos(tmp_path: Path, title: str) -> None:
    if not title.strip():
        with pytest.raises(InputError, match="title must not be empty"):
            replace(SETTINGS, title=title)
        return
    _, properties = unpack(export_jatos(TRIALS, tmp_path, replace(SETTINGS, title=title)).path)
    folder = properties["data"]["dirName"]
    assert not ILLEGAL.search(folder)
    assert 0 < len(folder) <= 100
    assert folder not in RESERVED
    assert ".." not in folder


@pytest.mark.parametrize("title", ["<b>Bold</b>", "x" * 256, "R&D"])
def test_titles_that_jatos_rejects_raise_errors(tmp_path: Path, title: str) -> None:
    with pytest.raises(InputError, match="at most"):
        export_jatos(TRIALS, tmp_path, replace(SETTINGS, title=title))


class TestContract(ExportContract):
    """The sentences in the archive; responses are read as from any page of jsPsych."""

    platform = PLATFORM

    def lists(self, folder: Path) -> dict[str, list[dict[str, str]]]:
        (archive,) = folder.glob("*.jzip")
        with zipfile.ZipFile(archive) as packed:
            (name,) = (n for n in packed.namelist() if n.endswith("study.json"))
            return study_lists(json.loads(packed.read(name)))
