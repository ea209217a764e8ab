"""The page is accessible. Witnesses: axe-core, and the positions of elements at a zoom."""

from pathlib import Path

import pytest

from contstim.experiments.platforms.jspsych import PageSettings, export_jspsych
from contstim.items.scale import Scale
from contstim.items.stimuli import on_scale
from tests.experiments.collection.conftest import Serve
from tests.experiments.platforms.conftest import TRIALS, Visit
from tests.experiments.platforms.walking import screenshot, wait_for

pytestmark = pytest.mark.slow

RULES = ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]
SCREENS = ("expected", "ready", "trials", "break", "saved")
ZOOMED = {"width": 640, "height": 400}  # viewport of a 1280 x 800 window at a zoom of 200 %


def test_axe_finds_no_violations(library: Path, serve: Serve, visit: Visit, tmp_path: Path) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    (tmp_path / "pairs.csv").write_text("sentence_1,sentence_2,expected\nOne sees.,See ones.,1\n")
    header = "name,when,kind,question,options\nage,before,number,Age?,18|99\n"
    (tmp_path / "asked.csv").write_text(f"{header}task,check,choice,What?,a|*b\n")
    practice, questions = tmp_path / "pairs.csv", tmp_path / "asked.csv"
    settings = PageSettings(library=library, break_every=1, practice=practice, questions=questions)
    export_jspsych(TRIALS, tmp_path / "page", settings)
    page = visit(serve(tmp_path / "page").address)
    visited = set()
    for _ in range(40):
        wait_for(page, *"consent before instructions check practice".split(), *SCREENS)
        state = page.evaluate("document.body.dataset.state")
        visited.add(state)
        results = axe.run(page, options={"runOnly": RULES})
        assert not results.response["violations"], (state, results.generate_report())
        assert page.locator("h1:visible, h2:visible").count()
        if state == "saved":
            break
        content = page.locator("#jspsych-content > *").first.element_handle()
        if state == "before":
            page.fill("input[name=age]", "31")
        if state == "check":
            page.check("input[value=b]")
        if state in ("practice", "trials"):
            page.wait_for_selector("button.confidence:enabled >> nth=5")
            page.locator("button.confidence").nth(5).click()
        else:
            page.locator("button.next").nth(0 if state == "consent" else -1).click()
        page.wait_for_function("element => !element.isConnected", arg=content)
    assert {"consent", "before", "check", "practice", *SCREENS} <= visited


@pytest.mark.parametrize("scale", Scale)
def test_zoom_of_200_percent_shows_sentences_and_buttons(
    scale: Scale, library: Path, serve: Serve, visit: Visit, tmp_path: Path
) -> None:
    trials = on_scale(TRIALS, scale)
    export_jspsych(trials, tmp_path, PageSettings(library=library))
    page = visit(serve(tmp_path).address, viewport=ZOOMED)
    page.locator("button.next").first.click()
    while page.evaluate("document.body.dataset.state") != "trials":
        page.locator("button.next").last.click()
        page.wait_for_timeout(50)
    page.wait_for_selector(".sentence >> nth=1")
    screenshot(page, f"zoomed-{scale}")
    for element in page.locator(".sentence, button.confidence, .track input").all():
        box = element.bounding_box()
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= ZOOMED["height"]
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= ZOOMED["width"]
    bar = page.locator("[role=progressbar]")
    assert bar.get_attribute("aria-valuenow") == "0"
    assert bar.get_attribute("aria-label") == "0 of 3"
