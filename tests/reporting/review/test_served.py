"""The page beside its server, in a real browser: nothing is lost while the server is away."""

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
from tests.reporting.review.test_browser import TRIPLETS, press

Visit = Callable[..., Any]


@contextmanager
def serving(folder: Path, port: int = 0) -> Iterator[int]:
    """The server of Ann's review; the port at which it answers."""
    content = ReviewPage(TRIPLETS, title="triplets.csv", reviewer="Ann")
    path = review_file(folder / "review.html", "Ann")
    file = ReviewFile.open(path, content, "triplets.csv")
    with running(partial(review_application, file), port) as (_, found):
        yield found


def opened(page: Any, port: int) -> Any:
    page.goto(f"http://127.0.0.1:{port}/")
    page.wait_for_selector("body[data-ready]")
    return page


def test_decisions_are_saved_as_they_are_made_and_sent_again(tmp_path: Path, visit: Visit) -> None:
    path = tmp_path / "review-Ann.csv"
    with serving(tmp_path) as port:
        page = opened(visit(), port)
        assert page.locator("#name").is_hidden()
        press(page, "j a r 1")
        page.wait_for_selector("text=Saved in review-Ann.csv.")
        assert read_reviews([path]).rejected == {"t1"}
    press(page, "r 2")
    page.wait_for_selector("text=Not saved: the server does not answer.")
    with serving(tmp_path, port):
        page.wait_for_selector("text=Saved in review-Ann.csv.")
        assert read_reviews([path]).rejected == {"t1", "t2"}
        page.reload()
        page.wait_for_selector("body[data-ready]")
        assert page.inner_text("#count") == "3 of 6 decided, 2 rejected"
        path.write_text(path.read_text().replace("offensive", "rude"))
        press(page, "j c")
        page.wait_for_selector("text=review-Ann.csv was changed by another program")
    assert read_reviews([path]).rejected == {"t1", "t2"}


def test_nothing_is_called_saved_before_later_decisions(tmp_path: Path, visit: Visit) -> None:
    """The first request is held until a second decision is made; all that the page says is kept."""
    held: list[Any] = []
    with serving(tmp_path) as port:
        page = opened(visit(), port)
        page.evaluate(
            """() => {
                const kept = document.getElementById("kept");
                window.told = [];
                new MutationObserver(() => told.push(kept.textContent))
                    .observe(kept, { childList: true });
            }"""
        )
        page.route("**/decisions", lambda r: r.continue_() if held else held.append(r))
        with page.expect_request("**/decisions"):
            press(page, "j a")
        press(page, "r 1")
        held[0].continue_()
        page.wait_for_selector("text=Saved in review-Ann.csv.")
        assert {*page.evaluate("told.slice(0, -1)")} == {"Saving …"}
    assert read_reviews([tmp_path / "review-Ann.csv"]).rejected == {"t1"}


@pytest.mark.slow
def test_windows_keep_all_decisions_while_the_server_is_away(tmp_path: Path, visit: Visit) -> None:
    """Both are closed before the server is back; of one item, the later decision is saved."""
    path, away = tmp_path / "review-Ann.csv", "text=Not saved: the server does not answer."
    first = visit()
    second = first.context.new_page()
    with serving(tmp_path) as port:
        for page in (first, second):
            opened(page, port)
    press(first, "j a")
    first.wait_for_selector(away)
    press(second, "j j r 1 k k r 2")
    second.wait_for_selector(away)
    first.wait_for_selector("text=2 of 6 decided, 2 rejected")
    press(first, "j a")
    second.wait_for_selector("text=3 of 6 decided, 2 rejected")
    first.close()
    second.close()
    third = first.context.new_page()
    with serving(tmp_path, port):
        third.goto(f"http://127.0.0.1:{port}/")
        third.wait_for_selector("text=Saved in review-Ann.csv.")
        assert third.inner_text("#count") == "3 of 6 decided, 2 rejected"
    decisions = {d.item_id: str(d.decision) for d in read_reviews([path]).decisions if d.decision}
    assert decisions == {"t0": "reject", "t1": "reject", "t2": "keep"}
    assert third.evaluate("localStorage.length") == 0
