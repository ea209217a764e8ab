"""Who an address means, and who withdrew, on the page and the real server together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest

from contstim.experiments.collection.participants import withdraw
from tests.experiments.collection.conftest import Serve, Served, serve, signed
from tests.experiments.platforms.conftest import PAIRS, Export
from tests.experiments.platforms.walking import answer, begin, picture, reach

__all__ = ["serve"]

Visit = Callable[..., Any]
SAVED = "n => JSON.parse(Object.values(localStorage)[0]).saved.length === n"


def link(served: Served, identity: str) -> str:
    query = urlencode({"participant": identity, "token": signed(identity)["token"]})
    return f"http://127.0.0.1:{served.port}/?{query}"


def test_a_link_goes_on_in_another_browser_and_without_its_token_nowhere(
    export: Export, serve: Serve, visit: Visit
) -> None:
    served = serve(export(), accept_platform_ids=False)
    page = visit(link(served, "7"))
    begin(page)
    first = answer(page, 1)
    page.wait_for_function(SAVED, arg=1)
    for stranger in ("?participant=7", f"?participant=7&token={signed('8')['token']}"):
        refused = visit(f"http://127.0.0.1:{served.port}/{stranger}")
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


def test_an_id_of_a_platform_goes_on_in_its_browser_alone(
    export: Export, serve: Serve, visit: Visit
) -> None:
    """Also if the reply to the request to join was lost and the page was loaded again."""
    served = serve(export(), rehearsal=False)
    address = f"http://127.0.0.1:{served.port}/?PROLIFIC_PID=5f3c"
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
    robot = visit(f"http://127.0.0.1:{served.port}/?simulate")
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
