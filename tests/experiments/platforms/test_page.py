"""The page in Chromium, against a server in memory: hostile texts, previews, failures, reloads."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from contstim.experiments.platforms.jspsych import export_jspsych
from contstim.experiments.platforms.jspsych.library import LIBRARY, cdn_address
from contstim.words.sentence import Sentence
from tests.experiments.platforms.conftest import PAIRS, TRIALS, Collect, Export, Visit
from tests.experiments.platforms.fake_server import CODE, FakeServer
from tests.experiments.platforms.reference_order import presentation
from tests.experiments.platforms.walking import answer, begin, picture, reach, shown, state
from tests.experiments.stimuli import new_trial

SIZES = {1280: {"width": 1280, "height": 800}, 390: {"width": 390, "height": 844}}
BY_ID = {trial.trial_id: trial for trial in TRIALS}


@pytest.fixture
def server(export: Export, collect: Collect) -> FakeServer:
    """A server of a page with brief texts."""
    return collect(export())


@pytest.mark.parametrize("width", [1280, pytest.param(390, marks=pytest.mark.slow)])
def test_a_whole_experiment_by_mouse_and_keyboard(
    export: Export, collect: Collect, visit: Visit, width: int
) -> None:
    """Ratings follow from the buttons pressed and the sentences seen; order from the seed."""
    server = collect(export(brief=False))
    page = visit(server.address, viewport=SIZES[width])
    begin(page, pictures=True)
    picture(page, "3-pair")
    buttons = (1, 5, 4)
    seen = [answer(page, button, key=button == 5) for button in buttons]
    reach(page, "saved")
    picture(page, "4-end")
    assert page.inner_text(".code") == CODE
    assert server.completed == {"p1": PAIRS}
    rows = server.rows("p1")
    trials = server.groups["1"]
    order = presentation(trials, server.people["p1"]["seed"])
    assert [(row["trial_id"], row["left"]) for row in rows] == order
    for button, row, pair in zip(buttons, rows, seen, strict=True):
        trial = BY_ID[row["trial_id"]]
        sentences = trial.sentence_1.text.rstrip("."), trial.sentence_2.text.rstrip(".")
        assert pair == (sentences if row["left"] == 1 else sentences[::-1])
        assert row["rating"] == (button if row["left"] == 1 else 7 - button)
        assert 200 < row["rt_ms"] < 20_000
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow
def test_focus_is_shown_clicks_count_once(server: FakeServer, visit: Visit) -> None:
    page = visit(server.address)
    begin(page)
    page.wait_for_selector("button.confidence:enabled")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    assert page.evaluate("document.activeElement.ariaLabel") == "First sentence: somewhat confident"
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('#stage').innerText.includes('1 of 3')")
    page.wait_for_selector("button.confidence:enabled")
    page.locator("button.confidence").nth(2).dblclick()
    page.wait_for_selector("button.confidence:enabled")
    page.wait_for_function("JSON.parse(Object.values(localStorage)[0]).saved.length === 2")
    one, two = server.rows("p1")
    for row in (one, two):
        assert row["rating"] == (3 if row["left"] == 1 else 4)


@pytest.mark.slow
def test_prolific_gets_people_after_saving(server: FakeServer, visit: Visit) -> None:
    server.redirect = f"{server.address}README.md?who={{PROLIFIC_PID}}&cc=C0DE"
    page = visit()
    arrivals: list[int] = []
    page.on(
        "request",
        lambda request: arrivals.append(len(server.answers)) if "cc=" in request.url else None,
    )
    platform = {"PROLIFIC_PID": "5f'\"<b>", "STUDY_ID": "s", "SESSION_ID": "t"}
    query = "PROLIFIC_PID=5f%27%22%3Cb%3E&STUDY_ID=s&SESSION_ID=t&group={{%GROUP%}}"
    page.goto(f"{server.address}?simulate&{query}")
    reach(page, "saved")
    assert server.people["p1"]["platform"] == platform
    assert arrivals == []
    page.click("button.leave")
    page.wait_for_url("**who=5f%27%22%3Cb%3E&cc=C0DE")
    assert arrivals == [PAIRS]


@pytest.mark.slow
def test_simulation_follows_the_plan_here(server: FakeServer, visit: Visit) -> None:
    planned = {trial.trial_id: 1 + number % 6 for number, trial in enumerate(TRIALS)}
    page = visit()
    page.add_init_script(f"window.contstimSimulation = {planned}")
    page.goto(f"{server.address}?simulate=data")
    reach(page, "saved")
    assert {row["trial_id"]: row["rating"] for row in server.rows("p1")} == {
        name: rating for name, rating in planned.items() if BY_ID[name].group == 1
    }
    public = server.address.replace("127.0.0.1", "lab.example")
    page.goto(f"{public}?simulate=data")
    reach(page, "consent")
    page.wait_for_timeout(200)
    assert state(page) == "consent"


@pytest.mark.slow
def test_practice_is_unrecorded(
    export: Export, collect: Collect, visit: Visit, tmp_path: Path
) -> None:
    practice = tmp_path / "practice.csv"
    practice.write_text("sentence_1,sentence_2\nDogs bark,Bark dogs the\n")
    server = collect(export(practice=practice))
    page = visit(server.address)
    begin(page)
    assert state(page) == "practice"
    assert answer(page, 1) == ("Dogs bark", "Bark dogs the")
    reach(page, "ready")
    assert server.answers == {}
    page.click("button.next")
    reach(page, "trials")


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_who_does_not_take_part_sees_no_error(
    server: FakeServer, export: Export, collect: Collect, visit: Visit, width: int
) -> None:
    """Decliners; who comes to a full study; and for whom it fills up while they read consent."""
    back = f"{server.address}README.md?cc=RETURN"
    server = collect(export(return_link=back))
    said = []
    for case in ("declines", "late", "overtaken"):
        server.full = case == "late"
        page = visit(server.address, viewport=SIZES[width])
        if case != "late":
            reach(page, "consent")
            server.full = case == "overtaken"
            page.click(f"button.next >> nth={int(case == 'declines')}")
        reach(page, "refused")
        picture(page, f"6-refused-{case}")
        said.append(page.inner_text("#stage"))
        assert "Something went wrong" not in said[-1]
        page.click("button.leave")
        page.wait_for_url("**cc=RETURN")
    assert ["all the participants it needs" in text for text in said] == [False, True, True]
    assert "You did not agree" in said[0]
    assert server.people == {}


@pytest.mark.slow
def test_the_library_of_the_cdn_is_taken_only_with_the_right_content(
    tmp_path: Path, library: Path, collect: Collect, visit: Visit
) -> None:
    """The browser's own check of integrity, on the addresses that the page names."""
    export_jspsych(TRIALS, tmp_path / "page")
    server = collect(tmp_path / "page")
    for suffix, expected in (("", "consent"), ("\n// changed", "failed")):
        page = visit()
        for file in LIBRARY:
            page.route(
                cdn_address(file),
                lambda route, _, name=file["name"], suffix=suffix: route.fulfill(
                    body=(library / name).read_text(encoding="utf-8") + suffix,
                    content_type="text/javascript",
                    headers={"Access-Control-Allow-Origin": "*"},
                ),
            )
        page.goto(server.address)
        reach(page, expected)
    assert "jsPsych could not be loaded" in page.inner_text("#stage")


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


def test_texts_are_shown_literally(export: Export, collect: Collect, visit: Visit) -> None:
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
    server = collect(folder)
    page = visit(server.address, viewport={"width": 1280, "height": 800})
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
    assert {row["trial_id"] for row in server.rows("p1")} == {t.trial_id for t in trials}


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


@pytest.mark.slow
def test_people_resume_on_other_devices(server: FakeServer, visit: Visit) -> None:
    page = visit(f"{server.address}?PROLIFIC_PID=a&simulate")
    reach(page, "saved")
    dropped = server.rows("p1")[1]["trial_id"]
    del server.answers["p1", dropped]
    kept = server.rows("p1")
    reach(visit(f"{server.address}?PROLIFIC_PID=a&simulate"), "saved")
    assert [row["position"] for row in server.rows("p1")] == [1, 2, 3]
    assert [row for row in server.rows("p1") if row["trial_id"] != dropped] == kept
    assert list(server.people) == ["p1"]


def test_answers_survive_server_failures(server: FakeServer, visit: Visit) -> None:
    """Nothing is shown as saved before it is; what was not sent is sent after a reload."""
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
def test_what_the_server_lost_is_sent_again(server: FakeServer, visit: Visit) -> None:
    server.forgetting = True
    page = visit(f"{server.address}?simulate")
    reach(page, "saved")
    assert server.completed == {"p1": PAIRS}


@pytest.mark.slow
def test_refusals_are_shown_with_answers(server: FakeServer, visit: Visit) -> None:
    server.refusing = True
    page = visit(f"{server.address}?simulate", accept_downloads=True)
    reach(page, "failed")
    assert page.inner_text(".reason") == "The study is over."
    with page.expect_download() as download:
        page.click("button.copy")
    assert len(download.value.path().read_text().splitlines()) == 1 + PAIRS


@pytest.mark.slow
def test_new_trials_resume_no_old_ones(server: FakeServer, export: Export, visit: Visit) -> None:
    page = visit(f"{server.address}?simulate")
    reach(page, "saved")
    export([replace(trial, sentence_1=Sentence.parse("Another sentence.")) for trial in TRIALS])
    page.reload()
    page.wait_for_function("() => document.querySelector('.code')")
    assert list(server.people) == ["p1", "p2"]
