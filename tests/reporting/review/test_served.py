"""The page beside its server, in a real browser: nothing is lost while the server is away."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contstim.reviews import read_reviews
from contstim.stimuli import write_triplets
from tests.cli.test_review import serving
from tests.reporting.review.test_browser import TRIPLETS, press

Visit = Callable[..., Any]


def test_decisions_are_saved_as_they_are_made_and_sent_again(tmp_path: Path, visit: Visit) -> None:
    write_triplets(tmp_path / "triplets.csv", TRIPLETS)
    path = tmp_path / "review-Ann.csv"
    page = visit()
    with serving(tmp_path, "--reviewer", "Ann", "--port", "0") as (url, _):
        page.goto(url)
        page.wait_for_selector("body[data-ready]")
        assert page.locator("#name").is_hidden()
        press(page, "j a r 1")
        page.wait_for_selector("text=Saved in review-Ann.csv.")
        assert read_reviews([path]).rejected == {"t1"}
    press(page, "r 2")
    page.wait_for_selector("text=Not saved: the server does not answer.")
    port = re.findall(r"\d+", url)[-1]
    with serving(tmp_path, "--reviewer", "Ann", "--port", port):
        page.wait_for_selector("text=Saved in review-Ann.csv.")
        assert read_reviews([path]).rejected == {"t1", "t2"}
        page.reload()
        page.wait_for_selector("body[data-ready]")
        assert page.inner_text("#count") == "3 of 6 decided, 2 rejected"
        path.write_text(path.read_text().replace("offensive", "rude"))
        press(page, "j c")
        page.wait_for_selector("text=review-Ann.csv was changed by another program")
    assert read_reviews([path]).rejected == {"t1", "t2"}


@pytest.mark.slow
def test_windows_keep_each_other_s_decisions_while_the_server_is_away(
    tmp_path: Path, visit: Visit
) -> None:
    """Both are closed before the server is back; of one item, the later decision is saved."""
    write_triplets(tmp_path / "triplets.csv", TRIPLETS)
    path, away = tmp_path / "review-Ann.csv", "text=Not saved: the server does not answer."
    first = visit()
    second = first.context.new_page()
    with serving(tmp_path, "--reviewer", "Ann", "--port", "0") as (url, _):
        for page in (first, second):
            page.goto(url)
            page.wait_for_selector("body[data-ready]")
    press(first, "j a")
    first.wait_for_selector(away)
    press(second, "j j r 1 k k r 2")
    second.wait_for_selector(away)
    first.wait_for_selector("text=2 of 6 decided, 2 rejected")
    press(first, "j a")
    second.wait_for_selector("text=3 of 6 decided, 2 rejected")
    first.close()
    second.close()
    port = re.findall(r"\d+", url)[-1]
    third = first.context.new_page()
    with serving(tmp_path, "--reviewer", "Ann", "--port", port):
        third.goto(url)
        third.wait_for_selector("text=Saved in review-Ann.csv.")
        assert third.inner_text("#count") == "3 of 6 decided, 2 rejected"
    decisions = {d.item_id: str(d.decision) for d in read_reviews([path]).decisions if d.decision}
    assert decisions == {"t0": "reject", "t1": "reject", "t2": "keep"}
    assert third.evaluate("localStorage.length") == 0
