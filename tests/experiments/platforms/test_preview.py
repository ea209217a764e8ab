"""The page for a server, opened from disk: a preview that stores nothing."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.platforms.conftest import PAIRS, Export
from tests.experiments.platforms.walking import answer, begin, picture, reach

Visit = Callable[..., Any]


@pytest.mark.parametrize("query", ["", "?participant=7&token=x&group=2"])
def test_a_preview_goes_from_consent_to_the_end_and_stores_nothing(
    export: Export, visit: Visit, query: str, tmp_path: Path
) -> None:
    page, requests = visit(), list[str]()
    page.on("request", lambda request: requests.append(request.url))
    page.goto(f"{export(completion_code='C0DE').as_uri()}/index.html{query}")
    begin(page)
    pairs = [answer(page, 1) for _ in range(PAIRS)]
    reach(page, "saved")
    assert page.is_visible(".banner[role=note]")
    picture(page, "preview")
    assert page.evaluate("localStorage.length") == 0
    assert {url.partition(":")[0] for url in requests} <= {"file", "data"}
    assert page.locator(".code").count() == 0
    with page.expect_download() as download:
        page.click("button.copy")
    download.value.save_as(tmp_path / "copy.csv")
    with (tmp_path / "copy.csv").open(encoding="utf-8", newline="") as file:
        assert len({row["trial_id"] for row in csv.DictReader(file)}) == len(set(pairs)) == PAIRS
    page.reload()
    reach(page, "consent")
    assert page.is_visible(".banner[role=note]")


def test_a_page_that_saves_is_no_preview(export: Export, visit: Visit) -> None:
    page = visit(f"{export(save='download').as_uri()}/index.html")
    reach(page, "consent")
    assert page.locator(".banner").count() == 0
