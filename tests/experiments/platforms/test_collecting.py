"""The page with `contstim collect` in a real browser: a pilot study, identities, withdrawals."""

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from contstim.experiments.collection.participants import withdraw
from contstim.experiments.platforms.jspsych import export_jspsych
from contstim.experiments.platforms.jspsych.library import LIBRARY, cdn_address
from contstim.experiments.responses.checks import Problem, check_responses
from contstim.experiments.responses.table import read_responses
from tests.experiments.collection.conftest import Serve, Served, sign_identity
from tests.experiments.platforms.conftest import PAIRS, TRIALS, Export, Visit
from tests.experiments.platforms.walking import SAVED, answer, begin, screenshot, wait_for

pytestmark = pytest.mark.slow


@pytest.fixture
def server(export: Export, serve: Serve) -> Served:
    return serve(export())


def test_two_participants_finish_after_reload_and_lost_request(
    server: Served, visit: Visit, tmp_path: Path
) -> None:
    """One participant reloads the page; the other one's last response is held back.

    Completion codes are shown only when every response is in the database. The browser reports
    violations of the policy.
    """
    first_page, second_page, messages = visit(), visit(), list[str]()
    for number, page in enumerate((first_page, second_page), start=1):
        page.on("console", lambda message: messages.append(message.text))
        page.goto(f"{server.address}?PROLIFIC_PID=person-{number}")
        begin(page)
    pairs = [answer(first_page, 1)]
    first_page.reload()
    wait_for(first_page, "resume")
    first_page.click("button.next")
    pairs += [answer(first_page, 2) for _ in range(PAIRS - 1)]
    assert len(set(pairs)) == PAIRS
    for button in (6, 2):
        answer(second_page, button, key=True)
    # a function, because the server's policy forbids evaluating strings
    second_page.wait_for_function(
        "many => JSON.parse(Object.values(localStorage)[0]).saved.length === many", arg=PAIRS - 1
    )
    second_page.route("**/api/responses", lambda route: route.abort())
    answer(second_page, 2, key=True)
    wait_for(second_page, "waiting")
    second_page.wait_for_selector(".detail .copy")
    assert len(server.rows("responses")) == 2 * PAIRS - 1
    assert second_page.locator(".code").count() == 0
    second_page.unroute("**/api/responses")
    wait_for(second_page, "saved")
    wait_for(first_page, "saved")
    codes = [page.inner_text(".code") for page in (first_page, second_page)]
    assert codes[0] != codes[1]
    first_page.reload()
    wait_for(first_page, "saved")
    assert first_page.inner_text(".code") == codes[0]
    rows = server.rows("responses")
    assert [row["position"] for row in rows] == ["1", "2", "3"] * 2
    assert "simulated" not in rows[0]
    assert [row["group"] for row in rows] == ["1"] * PAIRS + ["2"] * PAIRS
    (tmp_path / "responses.csv").write_text(server.download("responses").text)
    report = check_responses(TRIALS, read_responses(tmp_path / "responses.csv"))
    # The test answers at once
    assert {finding.problem for finding in report.findings} <= {Problem.TOO_FAST}
    assert "person-" not in server.download("participants").text
    assert [text for text in messages if "Content Security Policy" in text] == []
    assert "unpkg.com" not in first_page.content()


@pytest.mark.parametrize("fresh", [True, False])
def test_next_participant_in_same_browser_is_new(fresh: bool, server: Served, visit: Visit) -> None:
    """All responses of the first participant are saved, also one that was not sent at first."""
    page = visit(f"{server.address}?group=1")
    begin(page)
    answer(page, 1)
    page.wait_for_function("() => JSON.parse(Object.values(localStorage)[0]).saved.length === 1")
    page.route("**/api/responses", lambda route: route.abort())
    answer(page, 1)
    page.goto("about:blank")
    page.unroute("**/api/responses")
    page.goto(f"{server.address}?group=1{'&fresh=1' if fresh else ''}")
    if not fresh:
        wait_for(page, "resume")
        assert page.locator("button.next").all_inner_texts() == ["Continue", "I am somebody else"]
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            screenshot(page, "5-welcome-back")
        page.click("button.next >> nth=1")
    begin(page)
    for _ in range(PAIRS):
        answer(page, 6)
    wait_for(page, "saved")
    rows = server.rows("responses")
    first, second = dict.fromkeys(row["participant"] for row in rows)
    assert [row["participant"] for row in rows] == [first] * 2 + [second] * PAIRS
    assert [row["position"] for row in rows] == ["1", "2", "1", "2", "3"]
    people = server.rows("participants")
    assert [person["completed"] != "" for person in people] == [False, True]


@pytest.mark.parametrize(("suffix", "end"), [("", "saved"), ("\n// changed", "failed")])
def test_cdn_library_runs_only_with_expected_checksum(
    suffix: str, end: str, export: Export, library: Path, serve: Serve, visit: Visit
) -> None:
    """The browser checks the integrity itself and reports violations of the policy."""
    folder = export()
    export_jspsych(TRIALS, folder)
    page, messages = visit(), list[str]()
    for file in LIBRARY:
        body = (library / file["name"]).read_text(encoding="utf-8") + suffix
        headers = {"Access-Control-Allow-Origin": "*", "Content-Type": "text/javascript"}
        page.route(
            cdn_address(file),
            lambda route, _, body=body, headers=headers: route.fulfill(body=body, headers=headers),
        )
    page.on("console", lambda message: messages.append(message.text))
    page.goto(serve(folder).address)
    if end == "saved":
        begin(page)
        for _ in range(PAIRS):
            answer(page, 2)
    wait_for(page, end)
    assert page.locator(".code").count() == (end == "saved")
    assert ("jsPsych could not be loaded" in page.inner_text("#stage")) == (end == "failed")
    assert [text for text in messages if "Content Security Policy" in text] == []
    assert "unpkg.com" in page.content()


def participant_link(served: Served, identity: str) -> str:
    query = urlencode({"participant": identity, "token": sign_identity(identity)["token"]})
    return f"{served.address}?{query}"


def test_link_with_token_resumes_anywhere(export: Export, serve: Serve, visit: Visit) -> None:
    served = serve(export(), accept_platform_ids=False)
    page = visit(participant_link(served, "7"))
    begin(page)
    first_pair = answer(page, 1)
    page.wait_for_function(SAVED, arg=1)
    for query in ("?participant=7", f"?participant=7&token={sign_identity('8')['token']}"):
        refused = visit(f"{served.address}{query}")
        wait_for(refused, "failed")
        assert "token" in refused.inner_text(".reason")
    other_page = visit(participant_link(served, "7"))
    wait_for(other_page, "consent")
    other_page.click("button.next >> nth=0")
    pairs = [answer(other_page, 1) for _ in range(PAIRS - 1)]
    assert first_pair not in pairs
    wait_for(other_page, "saved")
    page.reload()
    wait_for(page, "resume")
    page.click("button.next")
    wait_for(page, "saved")
    assert page.inner_text(".code") == other_page.inner_text(".code")
    assert served.download("responses").text.count("\n") == 1 + PAIRS


def test_platform_id_resumes_in_same_browser(export: Export, serve: Serve, visit: Visit) -> None:
    """The reply to the request to join is lost, and the page is reloaded."""
    served = serve(export(), rehearsal=False)
    address = f"{served.address}?PROLIFIC_PID=5f3c"
    page = visit(address)
    wait_for(page, "consent")

    def lose_reply(route: Any) -> None:
        route.fetch()
        route.abort()

    page.route("**/api/participants", lose_reply)
    with page.expect_event("requestfailed"):
        page.click("button.next >> nth=0")
    page.unroute("**/api/participants", lose_reply)
    page.reload()
    begin(page)
    answer(page, 1)
    page.wait_for_function(SAVED, arg=1)
    other_page = visit(address)
    wait_for(other_page, "failed")
    page.reload()
    wait_for(page, "resume")
    page.click("button.next")
    for _ in range(PAIRS - 1):
        answer(page, 1)
    wait_for(page, "saved")
    assert served.download("participants").text.count("\n") == 2
    robot = visit(f"{served.address}?simulate")
    wait_for(robot, "failed")
    assert "--rehearsal" in robot.inner_text(".reason")


@pytest.mark.parametrize("when", ["trials", "resume", "waiting"])
def test_withdrawal_stops_the_page(when: str, export: Export, serve: Serve, visit: Visit) -> None:
    served = serve(export())
    page = visit(participant_link(served, "7"))
    begin(page)
    for _ in range(PAIRS - 1 if when == "waiting" else 1):
        answer(page, 1)
    page.wait_for_function(SAVED, arg=PAIRS - 1 if when == "waiting" else 1)
    withdraw(served.database, "7", "2026-11-27")
    if when == "resume":
        page.reload()
        wait_for(page, "resume")
        page.click("button.next")
    else:
        answer(page, 1)
    wait_for(page, "refused")
    screenshot(page, f"withdrawn-{when}")
    assert "withdrawn" in page.inner_text("h1")
    assert page.evaluate("localStorage.length") == 0
    urls = list[str]()
    page.on("request", lambda request: urls.append(request.url))
    page.wait_for_timeout(1_000)
    assert urls == []
    page.reload()
    wait_for(page, "refused")
    assert not [url for url in urls if url.endswith(("/participants", "/responses", "/complete"))]
    assert served.download("participants").text.count("\n") == 1
