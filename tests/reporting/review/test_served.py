"""The review page with its server, in a real browser: no decision is lost during an outage."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from contstim.experiments.collection.reviewing import ReviewFile, review_application, review_file
from contstim.items.reviews import read_reviews
from contstim.reporting.review import ReviewPage
from tests.experiments.collection.servers import running
from tests.reporting.review.test_browser import TRIPLETS, press, wait_until_ready

Visit = Callable[..., Any]


@contextmanager
def serve_review(folder: Path, port: int = 0) -> Iterator[int]:
    """Serve Ann's review and yield the port."""
    content = ReviewPage(TRIPLETS, title="triplets.csv", reviewer="Ann")
    path = review_file(folder / "review.html", "Ann")
    file = ReviewFile.open(path, content, "triplets.csv")
    with running(partial(review_application, file), port) as (_, served_port):
        yield served_port


def open_served_page(page: Any, port: int) -> Any:
    page.goto(f"http://127.0.0.1:{port}/")
    wait_until_ready(page)
    return page


def test_decisions_are_saved_and_resent_after_an_outage(tmp_path: Path, visit: Visit) -> None:
    path = tmp_path / "review-Ann.csv"
    with serve_review(tmp_path) as port:
        page = open_served_page(visit(), port)
        assert page.locator("#name").is_hidden()
        press(page, "j a r 1")
        page.wait_for_selector("text=Saved in review-Ann.csv.")
        assert read_reviews([path]).rejected == {"t1"}
    press(page, "r 2")
    page.wait_for_selector("text=Not saved: the server does not answer.")
    with serve_review(tmp_path, port):
        page.wait_for_selector("text=Saved in review-Ann.csv.")
        assert read_reviews([path]).rejected == {"t1", "t2"}
        page.reload()
        wait_until_ready(page)
        assert page.inner_text("#count") == "3 of 6 decided, 2 rejected"
        path.write_text(path.read_text().replace("offensive", "rude"))
        press(page, "j c")
        page.wait_for_selector("text=review-Ann.csv was changed by another program")
    assert read_reviews([path]).rejected == {"t1", "t2"}


def test_saved_is_not_shown_before_later_decisions_are_sent(tmp_path: Path, visit: Visit) -> None:
    """The first request is held until a second decision is made; all messages are recorded."""
    held_requests: list[Any] = []
    with serve_review(tmp_path) as port:
        page = open_served_page(visit(), port)
        page.evaluate(
            """() => {
                const kept = document.getElementById("kept");
                window.messages = [];
                new MutationObserver(() => messages.push(kept.textContent))
                    .observe(kept, { childList: true });
            }"""
        )
        page.route(
            "**/decisions",
            lambda route: route.continue_() if held_requests else held_requests.append(route),
        )
        with page.expect_request("**/decisions"):
            press(page, "j a")
        press(page, "r 1")
        held_requests[0].continue_()
        page.wait_for_selector("text=Saved in review-Ann.csv.")
        assert {*page.evaluate("messages.slice(0, -1)")} == {"Saving …"}
    assert read_reviews([tmp_path / "review-Ann.csv"]).rejected == {"t1"}


@pytest.mark.slow
def test_windows_keep_all_decisions_during_an_outage(tmp_path: Path, visit: Visit) -> None:
    """Both windows close before the server returns; the later decision on an item is saved."""
    path, message = tmp_path / "review-Ann.csv", "text=Not saved: the server does not answer."
    first = visit()
    second = first.context.new_page()
    with serve_review(tmp_path) as port:
        for page in (first, second):
            open_served_page(page, port)
    press(first, "j a")
    first.wait_for_selector(message)
    press(second, "j j r 1 k k r 2")
    second.wait_for_selector(message)
    first.wait_for_selector("text=2 of 6 decided, 2 rejected")
    press(first, "j a")
    second.wait_for_selector("text=3 of 6 decided, 2 rejected")
    first.close()
    second.close()
    third = first.context.new_page()
    with serve_review(tmp_path, port):
        third.goto(f"http://127.0.0.1:{port}/")
        third.wait_for_selector("text=Saved in review-Ann.csv.")
        assert third.inner_text("#count") == "3 of 6 decided, 2 rejected"
    decisions = {d.item_id: str(d.decision) for d in read_reviews([path]).decisions if d.decision}
    assert decisions == {"t0": "reject", "t1": "reject", "t2": "keep"}
    assert third.evaluate("localStorage.length") == 0
