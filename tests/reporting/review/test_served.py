"""The page beside its server, in a real browser: nothing is lost while the server is away."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
