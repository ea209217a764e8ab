"""The page in Chromium: hostile texts, previews, failures of servers, reloads."""

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
from tests.experiments.platforms.walking import SAVED, answer, begin, picture, reach, shown, state
from tests.experiments.stimuli import new_trial

SIZES = {1280: {"width": 1280, "height": 800}, 390: {"width": 390, "height": 844}}
BY_ID = {trial.trial_id: trial for trial in TRIALS}
ELSEWHERE = "https://example.org/"


@pytest.fixture
def served(export: Export, serve: Serve) -> Served:
    """A server of a page with brief texts."""
    return serve(export())


def visit_elsewhere(page: Any) -> None:
    """Press the button that leads to another site, which answers in the place of the true one."""
    page.route(f"{ELSEWHERE}**", lambda route: route.fulfill(body="Welcome back"))
    page.click("button.leave")
    page.wait_for_url(f"{ELSEWHERE}**")


@pytest.mark.parametrize("width", [1280, pytest.param(390, marks=pytest.mark.slow)])
def test_a_whole_experiment_by_mouse_and_keyboard(
    export: Export, serve: Serve, visit: Visit, width: int
) -> None:
    """Ratings follow from the buttons pressed and the sentences seen; order from the seed."""
    served = serve(export(brief=False))
    page = visit(served.address, viewport=SIZES[width])
    begin(page, pictures=True)
    picture(page, "3-pair")
    buttons = (1, 5, 4)
    seen = [answer(page, button, key=button == 5) for button in buttons]
    reach(page, "saved")
    picture(page, "4-end")
    (person,) = served.rows("participants")
    assert page.inner_text(".code") == person["code"]
    rows = served.rows("responses")
    trials = json.loads((served.folder / "study.json").read_text())["groups"]["1"]
    order = presentation(trials, int(person["seed"]))
    assert [(row["trial_id"], int(row["left"])) for row in rows] == order
    for button, row, pair in zip(buttons, rows, seen, strict=True):
        trial = BY_ID[row["trial_id"]]
        sentences = trial.sentence_1.text.rstrip("."), trial.sentence_2.text.rstrip(".")
        assert pair == (sentences if row["left"] == "1" else sentences[::-1])
        assert int(row["rating"]) == (button if row["left"] == "1" else 7 - button)
        assert 200 < float(row["rt_ms"]) < 20_000
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow
def test_focus_is_shown_clicks_count_once(served: Served, visit: Visit) -> None:
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
    one, two = served.rows("responses")
    for row in (one, two):
        assert row["rating"] == ("3" if row["left"] == "1" else "4")


@pytest.mark.slow
def test_prolific_gets_people_after_saving(export: Export, serve: Serve, visit: Visit) -> None:
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
    reach(page, "saved")
    (person,) = served.rows("participants")
    names = ("prolific_pid_plain", "study_id_plain", "session_id_plain")
    assert [person[name] for name in names] == ["5f'\"<b>", "s", "t"]
    assert arrivals == []
    visit_elsewhere(page)
    assert page.url == f"{ELSEWHERE}?who=5f%27%22%3Cb%3E&cc=C0DE"
    assert arrivals == [PAIRS]


@pytest.mark.slow
def test_simulation_follows_the_plan_here(served: Served, visit: Visit) -> None:
    planned = {trial.trial_id: 1 + number % 6 for number, trial in enumerate(TRIALS)}
    page = visit()
    page.add_init_script(f"window.contstimSimulation = {planned}")
    page.goto(f"{served.address}?simulate=data")
    reach(page, "saved")
    rows = served.rows("responses")
    assert {row["trial_id"]: int(row["rating"]) for row in rows} == {
        name: rating for name, rating in planned.items() if BY_ID[name].group == 1
    }
    assert {row["simulated"] for row in rows} == {"true"}
    public = served.address.replace("127.0.0.1", "lab.example")
    page.goto(f"{public}?simulate=data")
    reach(page, "consent")
    page.wait_for_timeout(200)
    assert state(page) == "consent"


@pytest.mark.slow
def test_practice_is_unrecorded(export: Export, serve: Serve, visit: Visit, tmp_path: Path) -> None:
    practice = tmp_path / "practice.csv"
    practice.write_text("sentence_1,sentence_2\nDogs bark,Bark dogs the\n")
    served = serve(export(practice=practice))
    page = visit(served.address)
    begin(page)
    assert state(page) == "practice"
    assert answer(page, 1) == ("Dogs bark", "Bark dogs the")
    reach(page, "ready")
    assert served.rows("responses") == []
    page.click("button.next")
    reach(page, "trials")


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_who_does_not_take_part_sees_no_error(
    export: Export, serve: Serve, visit: Visit, width: int
) -> None:
    """Decliners; for whom it fills up while they read consent; and who comes to a full study."""
    served, said = serve(export(return_link=ELSEWHERE), participants=1), []
    for case in ("declines", "overtaken", "late"):
        page = visit(served.address, viewport=SIZES[width])
        if case != "late":
            reach(page, "consent")
            if case == "overtaken":
                served.join()
            page.click(f"button.next >> nth={int(case == 'declines')}")
        reach(page, "refused")
        picture(page, f"6-refused-{case}")
        said.append(page.inner_text("#stage"))
        assert "Something went wrong" not in said[-1]
        visit_elsewhere(page)
    assert ["all the participants it needs" in text for text in said] == [False, True, True]
    assert "You did not agree" in said[0]
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
    """Every hostile sentence, title, label and example is on the page as it was written."""
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
    # The policy of the server would stop what a text starts
    page = visit(served.address, viewport=SIZES[1280], bypass_csp=True)
    assert page.title() == "</title><script>window.broken = 5</script>"
    reach(page, "consent")
    assert page.inner_text("h1") == "<img src=x onerror=window.broken=6>"
    assert page.locator("#stage a").count() == 0
    assert page.inner_text("strong") == "<b>"
    begin(page)
    seen: set[str] = set()
    for _ in trials:
        page.wait_for_selector("button.confidence:enabled")
        seen.update(shown(page))
        assert page.locator(".sentence *").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.locator("button.confidence").last.bounding_box()["y"] < 800
        answer(page, 1)
    reach(page, "saved")
    # Marks of direction, which no reader sees, leave a sentence when it is read
    written = [text.translate({0x202E: None, 0x202C: None}) for text in HOSTILE]
    expected = {" ".join(text.split()).rstrip(".!?") for text in written}
    assert expected <= {" ".join(text.split()) for text in seen}
    assert page.evaluate("window.broken") is None
    assert {row["trial_id"] for row in served.rows("responses")} == {t.trial_id for t in trials}


def test_previews_store_nothing(export: Export, visit: Visit, tmp_path: Path) -> None:
    """Those of a link to a participant's page neither."""
    page, requests = visit(), list[str]()
    page.on("request", lambda request: requests.append(request.url))
    address = f"{export(completion_code='C0DE').as_uri()}/index.html"
    page.goto(f"{address}?participant=7&token=x&group=2")
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
    page.goto(address)
    reach(page, "consent")
    assert page.is_visible(".banner[role=note]")


def test_a_page_that_saves_is_no_preview(export: Export, visit: Visit) -> None:
    page = visit(f"{export(save='download').as_uri()}/index.html")
    reach(page, "consent")
    assert page.locator(".banner").count() == 0


def busy(route: Any) -> None:
    route.fulfill(status=503, json={"error": "busy"})


def test_answers_survive_server_failures(served: Served, visit: Visit) -> None:
    """Nothing is shown as saved before it is; what was not sent is sent after a reload."""

    def mutter(route: Any) -> None:
        route.fetch()
        busy(route)

    page = visit(served.address)
    begin(page)
    page.context.set_offline(True)
    answer(page, 4)
    answer(page, 4)
    assert served.rows("responses") == []
    again = page.context.new_page()
    page.close()
    again.context.set_offline(False)
    again.route("**/api/*", busy, times=1)
    again.goto(served.address)
    reach(again, "resume")
    again.click("button.next")
    again.route("**/api/*", mutter, times=1)
    answer(again, 4)
    reach(again, "saved")
    assert [row["state"] for row in served.rows("participants")] == ["complete"]
    assert [row["position"] for row in served.rows("responses")] == ["1", "2", "3"]


@pytest.mark.slow
def test_what_the_server_lost_is_sent_again(served: Served, visit: Visit) -> None:
    def lose(route: Any) -> None:
        with closing(sqlite3.connect(served.database)) as connection:
            connection.execute("DELETE FROM response")
            connection.commit()
        route.continue_()

    page = visit()
    page.route("**/api/complete", lose, times=1)
    page.goto(f"{served.address}?simulate")
    reach(page, "saved")
    assert len(served.rows("responses")) == PAIRS


@pytest.mark.slow
def test_refusals_are_shown_with_answers(served: Served, visit: Visit) -> None:
    page = visit(accept_downloads=True)
    over = {"error": "The study is over."}
    page.route("**/api/responses", lambda route: route.fulfill(status=422, json=over))
    page.goto(f"{served.address}?simulate")
    reach(page, "failed")
    assert page.inner_text(".reason") == over["error"]
    with page.expect_download() as download:
        page.click("button.copy")
    assert len(download.value.path().read_text().splitlines()) == 1 + PAIRS


@pytest.mark.slow
def test_new_trials_resume_no_old_ones(served: Served, export: Export, visit: Visit) -> None:
    page = visit(f"{served.address}?simulate")
    reach(page, "saved")
    export([replace(trial, sentence_1=Sentence.parse("Another sentence.")) for trial in TRIALS])
    page.reload()
    page.wait_for_function("() => document.querySelector('.code')")
    assert len(served.rows("participants")) == 2
