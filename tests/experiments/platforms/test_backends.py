"""Where answers go without a server of ours; each is read back by the import, or as responses.csv.

DataPipe and JATOS are played by what they document of themselves: pipe.jspsych.org/api-docs and the
reference of jatos.js.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from contstim.experiments.platforms.jspsych.reading import import_jspsych
from contstim.experiments.responses.checks import Problem
from contstim.experiments.responses.table import Response, escape_formula, read_responses
from tests.experiments.platforms.conftest import PAIRS, TRIALS, Collect, Export, Visit
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
    export: Export, collect: Collect, visit: Visit, tmp_path: Path
) -> None:
    """The answer to the first file is lost on the way: it is sent again, and not kept twice.

    Identities that a spreadsheet would run are escaped as `escape_formula` does it.
    """
    pipe = DataPipe()
    folder = export(save="datapipe", datapipe_id="abc123", redirect="https://example.org/?cc=1")
    page = visit()
    page.add_init_script(f"window.contstimSimulation = {PLANNED}")
    page.route("https://pipe.jspsych.org/api/**", pipe)
    page.goto(f"{collect(folder).address}?PROLIFIC_PID==HYPERLINK(1)&STUDY_ID=s&SESSION_ID=t")
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
    export: Export, collect: Collect, visit: Visit, tmp_path: Path
) -> None:
    """As JATOS does, a reload begins another result; all results, a line each, are complete."""
    told: list[tuple[str, str]] = []
    results: list[str] = []

    def tell(what: str, value: str) -> None:
        told.append((what, value))
        if what == "data":
            results[-1] = value

    redirect = "https://app.prolific.com/?cc=1"
    server = collect(export(save="jatos", redirect=redirect))
    page = visit()
    page.expose_function("tell", tell)
    parameters = {"PROLIFIC_PID": "person"}
    stub = JATOS % json.dumps(parameters)
    page.route(
        "**/*jatos.js", lambda route: route.fulfill(body=stub, content_type="text/javascript")
    )
    results.append("")
    page.goto(server.address)
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
def test_batches_of_jatos_can_name_groups(export: Export, collect: Collect, visit: Visit) -> None:
    told: list[tuple[str, str]] = []
    page = visit()
    page.expose_function("tell", lambda what, value: told.append((what, value)))
    stub = JATOS % "{}" + "jatos.batchInput = { group: 1 };"
    page.route(
        "**/*jatos.js", lambda route: route.fulfill(body=stub, content_type="text/javascript")
    )
    page.goto(f"{collect(export(save='jatos')).address}?simulate")
    reach(page, "saved")
    assert {what for what, _ in told} == {"data", "end"}
    rows = json.loads(told[-2][1])
    assert {(row["group"], row["participant"]) for row in rows} == {(1, "simulated-jatos-7")}
