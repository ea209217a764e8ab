"""Nothing is lost, in a real browser: reloads, closed tabs, a server that fails or forgets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from contstim.words.sentence import Sentence
from tests.experiments.platforms.conftest import PAIRS, TRIALS, Collect, Export
from tests.experiments.platforms.walking import answer, begin, reach

Visit = Callable[..., Any]


@pytest.mark.slow
def test_the_same_person_elsewhere_goes_on_with_what_the_server_knows(
    export: Export, collect: Collect, visit: Visit
) -> None:
    server = collect(export())
    page = visit(f"{server.address}?PROLIFIC_PID=a&simulate")
    reach(page, "saved")
    dropped = server.rows("p1")[1]["trial_id"]
    del server.answers["p1", dropped]
    kept = server.rows("p1")
    reach(visit(f"{server.address}?PROLIFIC_PID=a&simulate"), "saved")
    assert [row["position"] for row in server.rows("p1")] == [1, 2, 3]
    assert [row for row in server.rows("p1") if row["trial_id"] != dropped] == kept
    assert list(server.people) == ["p1"]


def test_answers_survive_a_server_that_fails_and_a_tab_that_closes(
    export: Export, collect: Collect, visit: Visit
) -> None:
    """Nothing is shown as saved before it is; what was not sent is sent after a reload."""
    server = collect(export())
    page = visit(server.address)
    begin(page)
    page.context.set_offline(True)
    answer(page, 4)
    answer(page, 4)
    assert server.answers == {}
    again = page.context.new_page()
    page.close()
    again.context.set_offline(False)
    server.failing = 1
    again.goto(server.address)
    reach(again, "resume")
    again.click("button.next")
    server.muttering = 1
    answer(again, 4)
    reach(again, "saved")
    assert server.completed == {"p1": PAIRS}
    assert [row["position"] for row in server.rows("p1")] == [1, 2, 3]


@pytest.mark.slow
def test_what_the_server_lost_is_sent_again(export: Export, collect: Collect, visit: Visit) -> None:
    server = collect(export())
    server.forgetting = True
    page = visit(f"{server.address}?simulate")
    reach(page, "saved")
    assert server.completed == {"p1": PAIRS}


@pytest.mark.slow
def test_a_refusal_is_shown_and_the_answers_can_be_kept(
    export: Export, collect: Collect, visit: Visit
) -> None:
    server = collect(export())
    server.refusing = True
    page = visit(f"{server.address}?simulate", accept_downloads=True)
    reach(page, "failed")
    assert page.inner_text(".reason") == "The study is over."
    with page.expect_download() as download:
        page.click("button.copy")
    assert len(download.value.path().read_text().splitlines()) == 1 + PAIRS


@pytest.mark.slow
def test_a_new_version_of_the_trials_does_not_go_on_with_the_old(
    export: Export, collect: Collect, visit: Visit
) -> None:
    server = collect(export())
    page = visit(f"{server.address}?simulate")
    reach(page, "saved")
    export([replace(trial, sentence_1=Sentence.parse("Another sentence.")) for trial in TRIALS])
    page.reload()
    page.wait_for_function("() => document.querySelector('.code')")
    assert list(server.people) == ["p1", "p2"]
