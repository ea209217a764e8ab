"""The page in Chromium: hostile texts, previews, server failures, reloads."""

import csv
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contstim.words.sentence import Sentence
from tests.experiments.collection.conftest import Serve, Served
from tests.experiments.platforms.conftest import PAIRS, TRIALS, Export, Visit
from tests.experiments.platforms.reference_order import presentation
from tests.experiments.platforms.walking import (
    SAVED,
    answer,
    begin,
    read_sentences,
    read_state,
    screenshot,
    wait_for,
)
from tests.experiments.stimuli import new_trial

SIZES = {1280: {"width": 1280, "height": 800}, 390: {"width": 390, "height": 844}}
BY_ID = {trial.trial_id: trial for trial in TRIALS}
ELSEWHERE = "https://example.org/"


@pytest.fixture
def served(export: Export, serve: Serve) -> Served:
    """A server of a page with short texts."""
    return serve(export())


def visit_elsewhere(page: Any) -> None:
    """Press the button that leads to another site, which is replaced by a stub."""
    page.route(f"{ELSEWHERE}**", lambda route: route.fulfill(body="Welcome back"))
    page.click("button.leave")
    page.wait_for_url(f"{ELSEWHERE}**")


@pytest.mark.parametrize("width", [1280, pytest.param(390, marks=pytest.mark.slow)])
def test_mouse_and_keyboard(export: Export, serve: Serve, visit: Visit, width: int) -> None:
    """Ratings follow from buttons and displayed sentences, the order from the seed."""
    served = serve(export(brief=False))
    page = visit(served.address, viewport=SIZES[width])
    begin(page, pictures=True)
    screenshot(page, "3-pair")
    buttons = (1, 5, 4)
    pairs = [answer(page, button, key=button == 5) for button in buttons]
    wait_for(page, "saved")
    screenshot(page, "4-end")
    (person,) = served.rows("participants")
    assert page.inner_text(".code") == person["code"]
    rows = served.rows("responses")
    trials = json.loads((served.folder / "study.json").read_text())["groups"]["1"]
    order = presentation(trials, int(person["seed"]))
    assert [(row["trial_id"], int(row["left"])) for row in rows] == order
    for button, row, pair in zip(buttons, rows, pairs, strict=True):
        trial = BY_ID[row["trial_id"]]
        sentences = trial.sentence_1.text.rstrip("."), trial.sentence_2.text.rstrip(".")
        assert pair == (sentences if row["left"] == "1" else sentences[::-1])
        assert int(row["rating"]) == (button if row["left"] == "1" else 7 - button)
        assert 200 < float(row["rt_ms"]) < 20_000
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow
def test_focus_is_visible_and_double_clicks_count_once(served: Served, visit: Visit) -> None:
    page = visit(served.address)
    begin(page)
    page.wait_for_selector("button.confidence:enabled")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    assert page.evaluate("document.activeElement.ariaLabel") == "First sentence: somewhat confident"
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('#stage').innerText.includes('1 of 3')")
    page.wait_for_selector("button.confidence:enabled")
    page.locator("button.confidence").nth(2).dblclick()
    page.wait_for_selector("button.confidence:enabled")
    page.wait_for_function(SAVED, arg=2)
    first, second = served.rows("responses")
    for row in (first, second):
        assert row["rating"] == ("3" if row["left"] == "1" else "4")


@pytest.mark.slow
def test_prolific_redirect_follows_saving(export: Export, serve: Serve, visit: Visit) -> None:
    redirect = f"{ELSEWHERE}?who={{PROLIFIC_PID}}&cc=C0DE"
    served = serve(export(identities="plain"), redirect=redirect)
    page = visit()
    arrivals: list[int] = []
    page.on(
        "request",
        lambda request: (
            arrivals.append(len(served.rows("responses"))) if "cc=" in request.url else None
        ),
    )
    query = "PROLIFIC_PID=5f%27%22%3Cb%3E&STUDY_ID=s&SESSION_ID=t&group={{%GROUP%}}"
    page.goto(f"{served.address}?simulate&{query}")
    wait_for(page, "saved")
    (person,) = served.rows("participants")
    names = ("prolific_pid_plain", "study_id_plain", "session_id_plain")
    assert [person[name] for name in names] == ["5f'\"<b>", "s", "t"]
    assert arrivals == []
    visit_elsewhere(page)
    assert page.url == f"{ELSEWHERE}?who=5f%27%22%3Cb%3E&cc=C0DE"
    assert arrivals == [PAIRS]


@pytest.mark.slow
def test_simulation_follows_plan_on_local_server_only(served: Served, visit: Visit) -> None:
    planned = {trial.trial_id: 1 + number % 6 for number, trial in enumerate(TRIALS)}
    page = visit()
    page.add_init_script(f"window.contstimSimulation = {planned}")
    page.goto(f"{served.address}?simulate=data")
    wait_for(page, "saved")
    rows = served.rows("responses")
    assert {row["trial_id"]: int(row["rating"]) for row in rows} == {
        name: rating for name, rating in planned.items() if BY_ID[name].group == 1
    }
    assert {row["simulated"] for row in rows} == {"true"}
    public = served.address.replace("127.0.0.1", "lab.example")
    page.goto(f"{public}?simulate=data")
    wait_for(page, "consent")
    page.wait_for_timeout(200)
    assert read_state(page) == "consent"


@pytest.mark.slow
def test_practice_is_unrecorded(export: Export, serve: Serve, visit: Visit, tmp_path: Path) -> None:
    practice = tmp_path / "practice.csv"
    practice.write_text("sentence_1,sentence_2\nDogs bark,Bark dogs the\n")
    served = serve(export(practice=practice))
    page = visit(served.address)
    begin(page)
    assert read_state(page) == "practice"
    assert answer(page, 1) == ("Dogs bark", "Bark dogs the")
    wait_for(page, "ready")
    assert served.rows("responses") == []
    page.click("button.next")
    wait_for(page, "trials")


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_refusal_shows_no_error(export: Export, serve: Serve, visit: Visit, width: int) -> None:
    """Cases: declining, the study fills up during consent, and arriving at a full study."""
    served, texts = serve(export(return_link=ELSEWHERE), participants=1), []
    for case in ("declines", "overtaken", "late"):
        page = visit(served.address, viewport=SIZES[width])
        if case != "late":
            wait_for(page, "consent")
            if case == "overtaken":
                served.join()
            page.click(f"button.next >> nth={int(case == 'declines')}")
        wait_for(page, "refused")
        screenshot(page, f"6-refused-{case}")
        texts.append(page.inner_text("#stage"))
        assert "Something went wrong" not in texts[-1]
        visit_elsewhere(page)
    assert ["all the participants it needs" in text for text in texts] == [False, True, True]
    assert "You did not agree" in texts[0]
    assert len(served.rows("participants")) == 1


HOSTILE = (
    "<script>window.broken = 1</script>",
    '"><img src=x onerror="window.broken = 2">',
    "&lt;b&gt; &amp; \\u003cscript\\u003e ${window.broken = 3} '; DROP TABLE responses; --",
    '=HYPERLINK("http://example.org","x")',
    "</div></main></script><!-- {{constructor.constructor('window.broken = 4')()}}",
    "\u202eright to left\u202c \u0000 null".replace("\0", ""),
    "word" * 2_500,
    "many words " * 900 + "end",
)


def test_texts_are_shown_literally(export: Export, serve: Serve, visit: Visit) -> None:
    """Every hostile sentence, title, label and example is displayed as written."""
    trials = [
        new_trial(f"t'{n}\"<i>", 1, first, second)
        for n, (first, second) in enumerate(zip(HOSTILE[::2], HOSTILE[1::2], strict=True))
    ]
    folder = export(trials, title="</title><script>window.broken = 5</script>")
    consent = "# <img src=x onerror=window.broken=6>\n\n[x](javascript:window.broken=7) **<b>**"
    (folder / "consent.md").write_text(consent)
    labels = (folder / "labels.csv").read_text()
    hostile_label = "continue<script>window.broken=8</script>"
    (folder / "labels.csv").write_text(labels.replace("Continue", hostile_label))
    served = serve(folder)
    # The policy of the server would block scripts in texts
    page = visit(served.address, viewport=SIZES[1280], bypass_csp=True)
    assert page.title() == "</title><script>window.broken = 5</script>"
    wait_for(page, "consent")
    assert page.inner_text("h1") == "<img src=x onerror=window.broken=6>"
    assert page.locator("#stage a").count() == 0
    assert page.inner_text("strong") == "<b>"
    begin(page)
    sentences: set[str] = set()
    for _ in trials:
        page.wait_for_selector("button.confidence:enabled")
        sentences.update(read_sentences(page))
        assert page.locator(".sentence *").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.locator("button.confidence").last.bounding_box()["y"] < 800
        answer(page, 1)
    wait_for(page, "saved")
    # `Sentence.parse` removes invisible direction marks
    written = [text.translate({0x202E: None, 0x202C: None}) for text in HOSTILE]
    expected = {" ".join(text.split()).rstrip(".!?") for text in written}
    assert expected <= {" ".join(text.split()) for text in sentences}
    assert page.evaluate("window.broken") is None
    assert {row["trial_id"] for row in served.rows("responses")} == {t.trial_id for t in trials}


def test_previews_store_nothing(export: Export, visit: Visit, tmp_path: Path) -> None:
    """This includes previews of a participant's link."""
    page, requests = visit(), list[str]()
    page.on("request", lambda request: requests.append(request.url))
    address = f"{export(completion_code='C0DE').as_uri()}/index.html"
    page.goto(f"{address}?participant=7&token=x&group=2")
    begin(page)
    pairs = [answer(page, 1) for _ in range(PAIRS)]
    wait_for(page, "saved")
    assert page.is_visible(".banner[role=note]")
    screenshot(page, "preview")
    assert page.evaluate("localStorage.length") == 0
    assert {url.partition(":")[0] for url in requests} <= {"file", "data"}
    assert page.locator(".code").count() == 0
    with page.expect_download() as download:
        page.click("button.copy")
    download.value.save_as(tmp_path / "copy.csv")
    with (tmp_path / "copy.csv").open(encoding="utf-8", newline="") as file:
        assert len({row["trial_id"] for row in csv.DictReader(file)}) == len(set(pairs)) == PAIRS
    page.goto(address)
    wait_for(page, "consent")
    assert page.is_visible(".banner[role=note]")


def test_page_that_saves_has_no_preview_banner(export: Export, visit: Visit) -> None:
    page = visit(f"{export(save='download').as_uri()}/index.html")
    wait_for(page, "consent")
    assert page.locator(".banner").count() == 0


def reply_busy(route: Any) -> None:
    route.fulfill(status=503, json={"error": "busy"})


def test_responses_survive_server_failures(served: Served, visit: Visit) -> None:
    """Responses that were not sent are sent after a reload; only then is the study complete."""

    def lose_reply(route: Any) -> None:
        route.fetch()
        reply_busy(route)

    page = visit(served.address)
    begin(page)
    page.context.set_offline(True)
    answer(page, 4)
    answer(page, 4)
    assert served.rows("responses") == []
    second_page = page.context.new_page()
    page.close()
    second_page.context.set_offline(False)
    second_page.route("**/api/*", reply_busy, times=1)
    second_page.goto(served.address)
    wait_for(second_page, "resume")
    second_page.click("button.next")
    second_page.route("**/api/*", lose_reply, times=1)
    answer(second_page, 4)
    wait_for(second_page, "saved")
    assert [row["state"] for row in served.rows("participants")] == ["complete"]
    assert [row["position"] for row in served.rows("responses")] == ["1", "2", "3"]


@pytest.mark.slow
def test_responses_lost_by_server_are_sent_again(served: Served, visit: Visit) -> None:
    def delete_responses(route: Any) -> None:
        with closing(sqlite3.connect(served.database)) as connection:
            connection.execute("DELETE FROM response")
            connection.commit()
        route.continue_()

    page = visit()
    page.route("**/api/complete", delete_responses, times=1)
    page.goto(f"{served.address}?simulate")
    wait_for(page, "saved")
    assert len(served.rows("responses")) == PAIRS


@pytest.mark.slow
def test_server_error_is_shown_with_copy_of_responses(served: Served, visit: Visit) -> None:
    page = visit(accept_downloads=True)
    refusal = {"error": "The study is over."}
    page.route("**/api/responses", lambda route: route.fulfill(status=422, json=refusal))
    page.goto(f"{served.address}?simulate")
    wait_for(page, "failed")
    assert page.inner_text(".reason") == refusal["error"]
    with page.expect_download() as download:
        page.click("button.copy")
    assert len(download.value.path().read_text().splitlines()) == 1 + PAIRS


@pytest.mark.slow
def test_changed_trials_start_a_new_session(served: Served, export: Export, visit: Visit) -> None:
    page = visit(f"{served.address}?simulate")
    wait_for(page, "saved")
    export([replace(trial, sentence_1=Sentence.parse("Another sentence.")) for trial in TRIALS])
    page.reload()
    page.wait_for_function("() => document.querySelector('.code')")
    assert len(served.rows("participants")) == 2
