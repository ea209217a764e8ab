"""The page and `contstim collect` in a real browser: a pilot study, identities, withdrawals."""

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from contstim.experiments.collection.participants import withdraw
from contstim.experiments.platforms.jspsych import export_jspsych
from contstim.experiments.platforms.jspsych.library import LIBRARY, cdn_address
from contstim.experiments.responses.checks import Problem, check_responses
from contstim.experiments.responses.table import read_responses
from tests.experiments.collection.conftest import Serve, Served, signed
from tests.experiments.platforms.conftest import PAIRS, TRIALS, Export, Visit
from tests.experiments.platforms.walking import SAVED, answer, begin, picture, reach

pytestmark = pytest.mark.slow


@pytest.fixture
def server(export: Export, serve: Serve) -> Served:
    return serve(export())


def test_two_people_through_reloads_and_cuts(server: Served, visit: Visit, tmp_path: Path) -> None:
    """Clicks and keys, in different groups; codes only when every answer is in the database.

    One reloads in the middle and at the end; the last answer of the other is held back on its
    way: that page waits, and says so. The browser reports what the server's policy forbids.
    """
    one, two, said = visit(), visit(), list[str]()
    for number, page in enumerate((one, two), start=1):
        page.on("console", lambda message: said.append(message.text))
        page.goto(f"{server.address}?PROLIFIC_PID=person-{number}")
        begin(page)
    seen = [answer(one, 1)]
    one.reload()
    reach(one, "resume")
    one.click("button.next")
    seen += [answer(one, 2) for _ in range(PAIRS - 1)]
    assert len(set(seen)) == PAIRS
    for button in (6, 2):
        answer(two, button, key=True)
    # a function, for the server's policy forbids to evaluate texts
    two.wait_for_function(
        "many => JSON.parse(Object.values(localStorage)[0]).saved.length === many", arg=PAIRS - 1
    )
    two.route("**/api/responses", lambda route: route.abort())
    answer(two, 2, key=True)
    reach(two, "waiting")
    two.wait_for_selector(".detail .copy")
    assert len(server.rows("responses")) == 2 * PAIRS - 1
    assert two.locator(".code").count() == 0
    two.unroute("**/api/responses")
    reach(two, "saved")
    reach(one, "saved")
    codes = [page.inner_text(".code") for page in (one, two)]
    assert codes[0] != codes[1]
    one.reload()
    reach(one, "saved")
    assert one.inner_text(".code") == codes[0]
    rows = server.rows("responses")
    assert [row["position"] for row in rows] == ["1", "2", "3"] * 2
    assert "simulated" not in rows[0]
    assert [row["group"] for row in rows] == ["1"] * PAIRS + ["2"] * PAIRS
    (tmp_path / "responses.csv").write_text(server.download("responses").text)
    report = check_responses(TRIALS, read_responses(tmp_path / "responses.csv"))
    assert {found.problem for found in report.findings} <= {Problem.TOO_FAST}  # as a test is
    assert "person-" not in server.download("participants").text
    assert [text for text in said if "Content Security Policy" in text] == []
    assert "unpkg.com" not in one.content()


@pytest.mark.parametrize("fresh", [True, False])
def test_the_next_person_at_a_computer_is_new(fresh: bool, server: Served, visit: Visit) -> None:
    """What the first one answered is in the database, an answer among it that was not sent yet."""
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
        reach(page, "resume")
        assert page.locator("button.next").all_inner_texts() == ["Continue", "I am somebody else"]
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            picture(page, "5-welcome-back")
        page.click("button.next >> nth=1")
    begin(page)
    for _ in range(PAIRS):
        answer(page, 6)
    reach(page, "saved")
    rows = server.rows("responses")
    first, second = dict.fromkeys(row["participant"] for row in rows)
    assert [row["participant"] for row in rows] == [first] * 2 + [second] * PAIRS
    assert [row["position"] for row in rows] == ["1", "2", "1", "2", "3"]
    people = server.rows("participants")
    assert [person["completed"] != "" for person in people] == [False, True]


@pytest.mark.parametrize(("suffix", "end"), [("", "saved"), ("\n// changed", "failed")])
def test_the_library_of_the_cdn_is_taken_under_the_policy_only_with_the_right_content(
    suffix: str, end: str, export: Export, library: Path, serve: Serve, visit: Visit
) -> None:
    """The browser's own check of integrity; it reports what a policy forbids."""
    folder = export()
    export_jspsych(TRIALS, folder)
    page, said = visit(), list[str]()
    for file in LIBRARY:
        body = (library / file["name"]).read_text(encoding="utf-8") + suffix
        headers = {"Access-Control-Allow-Origin": "*", "Content-Type": "text/javascript"}
        page.route(
            cdn_address(file),
            lambda route, _, body=body, headers=headers: route.fulfill(body=body, headers=headers),
        )
    page.on("console", lambda message: said.append(message.text))
    page.goto(serve(folder).address)
    if end == "saved":
        begin(page)
        for _ in range(PAIRS):
            answer(page, 2)
    reach(page, end)
    assert page.locator(".code").count() == (end == "saved")
    assert ("jsPsych could not be loaded" in page.inner_text("#stage")) == (end == "failed")
    assert [text for text in said if "Content Security Policy" in text] == []
    assert "unpkg.com" in page.content()


def link(served: Served, identity: str) -> str:
    query = urlencode({"participant": identity, "token": signed(identity)["token"]})
    return f"{served.address}?{query}"


def test_links_resume_anywhere_by_token(export: Export, serve: Serve, visit: Visit) -> None:
    served = serve(export(), accept_platform_ids=False)
    page = visit(link(served, "7"))
    begin(page)
    first = answer(page, 1)
    page.wait_for_function(SAVED, arg=1)
    for stranger in ("?participant=7", f"?participant=7&token={signed('8')['token']}"):
        refused = visit(f"{served.address}{stranger}")
        reach(refused, "failed")
        assert "token" in refused.inner_text(".reason")
    elsewhere = visit(link(served, "7"))
    reach(elsewhere, "consent")
    elsewhere.click("button.next >> nth=0")
    pairs = [answer(elsewhere, 1) for _ in range(PAIRS - 1)]
    assert first not in pairs
    reach(elsewhere, "saved")
    page.reload()
    reach(page, "resume")
    page.click("button.next")
    reach(page, "saved")
    assert page.inner_text(".code") == elsewhere.inner_text(".code")
    assert served.download("responses").text.count("\n") == 1 + PAIRS


def test_platform_ids_resume_in_one_browser(export: Export, serve: Serve, visit: Visit) -> None:
    """Also if the reply to the request to join was lost and the page was loaded again."""
    served = serve(export(), rehearsal=False)
    address = f"{served.address}?PROLIFIC_PID=5f3c"
    page = visit(address)
    reach(page, "consent")

    def lose(route: Any) -> None:
        route.fetch()
        route.abort()

    page.route("**/api/participants", lose)
    with page.expect_event("requestfailed"):
        page.click("button.next >> nth=0")
    page.unroute("**/api/participants", lose)
    page.reload()
    begin(page)
    answer(page, 1)
    page.wait_for_function(SAVED, arg=1)
    other = visit(address)
    reach(other, "failed")
    page.reload()
    reach(page, "resume")
    page.click("button.next")
    for _ in range(PAIRS - 1):
        answer(page, 1)
    reach(page, "saved")
    assert served.download("participants").text.count("\n") == 2
    robot = visit(f"{served.address}?simulate")
    reach(robot, "failed")
    assert "--rehearsal" in robot.inner_text(".reason")


@pytest.mark.parametrize("when", ["trials", "resume", "waiting"])
def test_a_page_of_somebody_who_withdrew_says_so_and_sends_nothing_more(
    when: str, export: Export, serve: Serve, visit: Visit
) -> None:
    served = serve(export())
    page = visit(link(served, "7"))
    begin(page)
    for _ in range(PAIRS - 1 if when == "waiting" else 1):
        answer(page, 1)
    page.wait_for_function(SAVED, arg=PAIRS - 1 if when == "waiting" else 1)
    withdraw(served.database, "7", "2026-11-27")
    if when == "resume":
        page.reload()
        reach(page, "resume")
        page.click("button.next")
    else:
        answer(page, 1)
    reach(page, "refused")
    picture(page, f"withdrawn-{when}")
    assert "withdrawn" in page.inner_text("h1")
    assert page.evaluate("localStorage.length") == 0
    sent = list[str]()
    page.on("request", lambda request: sent.append(request.url))
    page.wait_for_timeout(1_000)
    assert sent == []
    page.reload()
    reach(page, "refused")
    assert not [url for url in sent if url.endswith(("/participants", "/responses", "/complete"))]
    assert served.download("participants").text.count("\n") == 1
