"""Sessions with the real server in Chromium: each scale, by keyboard, mouse and touch.

The witness of every column is the input sent by Playwright; sentences and sides are read from the
screen.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contstim.experiments.collection.tables import collected_questions, import_collected
from contstim.experiments.responses.checks import Problem
from contstim.items.scale import Scale
from contstim.items.stimuli import on_scale
from tests.experiments.collection.conftest import Serve
from tests.experiments.collection.watched import QUESTIONS
from tests.experiments.platforms.conftest import PAIRS, TRIALS, Export, Visit
from tests.experiments.platforms.test_scales import ACKNOWLEDGED, PHONE
from tests.experiments.platforms.walking import SAVED, read_sentences, screenshot, wait_for

pytestmark = pytest.mark.slow

IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148"


class Hand:
    """A participant who uses only keys, only a mouse or only a touch screen."""

    def __init__(self, page: Any, by: str) -> None:
        self.page, self.by = page, by

    def press(self, target: Any) -> None:
        """Press an element; keyboard users reach it by Tab."""
        target.wait_for()
        if self.by == "mouse":
            target.click()
        elif self.by == "touch":
            target.tap()
        else:
            self._tab_to(target)
            self.page.keyboard.press("Space")

    def write(self, name: str, text: str) -> None:
        field = self.page.locator(f"input[name={name}]")
        if self.by == "key":
            self._tab_to(field)
        else:
            self.press(field)
        self.page.keyboard.type(text)

    def go_on(self, button_index: int = -1) -> None:
        """Press a button of a text page and wait for the next page."""
        content = self.page.locator("#jspsych-content > *").first.element_handle()
        self.page.wait_for_function(
            "() => !document.querySelector('#jspsych-content .next').disabled"
        )
        self.press(self.page.locator("button.next").nth(button_index))
        self.page.wait_for_function("element => !element.isConnected", arg=content)

    def answer(self, scale: Scale, number: int) -> tuple[tuple[str, str], int]:
        """Rate a pair; return the sentences and the rating, both from left to right."""
        page, last = self.page, scale.answers[-1]
        wait_for(page, "trials")
        buttons = page.locator("#jspsych-content button")
        page.wait_for_function("() => !document.querySelector('#jspsych-content button').disabled")
        sentences = read_sentences(page)
        stimulus = page.locator("#jspsych-html-button-response-stimulus").element_handle()
        response = (scale.answers[0], last, last - 1)[number]
        if scale.buttons and self.by == "key":
            page.keyboard.press(str(response))
        elif scale.buttons:
            self.press(buttons.nth(response - 1))
        else:
            response = self._slide(number)
        page.wait_for_function("element => !element.isConnected", arg=stimulus)
        return sentences, response

    def _slide(self, number: int) -> int:
        """Move the slider to an end or next to it, continue, and return its position."""
        page, track = self.page, self.page.locator(".track input")
        for key in ("Enter", "Shift"):  # do not answer
            page.keyboard.press(key)
        assert not page.locator("button.next").is_visible()
        if self.by == "key":
            for key in (("Home",), ("End",), ("End", "ArrowLeft"))[number]:
                page.keyboard.press(key)
        else:  # the third click is on the handle, which does not move it
            box = track.bounding_box()
            x = box["x"] + (1, box["width"] - 1, box["width"] / 2)[number]
            move = page.touchscreen.tap if self.by == "touch" else page.mouse.click
            move(x, box["y"] + box["height"] / 2)
        position = int(track.input_value())
        if self.by == "key":
            page.keyboard.press("Enter")
        else:
            self.press(page.locator("button.next"))
        return position

    def _tab_to(self, target: Any) -> None:
        for _ in range(30):
            if target.evaluate("element => element === document.activeElement"):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError("Tab does not reach the element")

    def begin(self, *, wrong: int = 0) -> None:
        """Give consent, answer questions, and give `wrong` wrong answers to the check first."""
        wait_for(self.page, "consent")
        self.go_on(0)
        wait_for(self.page, "before")
        self.write("age", "31")
        self.press(self.page.locator("input[name=language]").first)
        self.go_on()
        for attempt in range(2):
            wait_for(self.page, "instructions")
            self.go_on()
            wait_for(self.page, "check")
            if self.by == "key":  # Tab reaches one choice; arrows move to others
                self.press(self.page.locator("input[name=task]").first)
                if attempt >= wrong:
                    self.page.keyboard.press("ArrowDown")
            else:
                self.press(self.page.locator("input[name=task]").nth(int(attempt >= wrong)))
            if attempt + 1 == wrong == 2:
                self.press(self.page.locator("button.next"))
                return
            self.go_on()
            if attempt >= wrong:
                return


@pytest.fixture
def study(export: Export, tmp_path: Path) -> Callable[[Scale], Path]:
    (tmp_path / "asked.csv").write_text(QUESTIONS)

    def write(scale: Scale) -> Path:
        settings = {"questions": tmp_path / "asked.csv", "break_every": 2, "deadline": 60.0}
        return export([*on_scale(TRIALS, scale)], return_link="https://example.org/", **settings)

    return write


@pytest.mark.parametrize("by", ["key", "mouse", "touch"])
@pytest.mark.parametrize("scale", Scale)
def test_session_is_stored_with_its_events(
    scale: Scale, by: str, study: Callable[[Scale], Path], serve: Serve, visit: Visit
) -> None:
    """It has a reload, additional tabs, a break, and at the end losses of network and focus."""
    served = serve(study(scale))
    address = f"{served.address}?sona_id=17"
    device = {"user_agent": IPHONE, **PHONE} if by == "touch" else {}
    page = visit(address, **device)
    hand = Hand(page, by)
    hand.begin()
    answers = [hand.answer(scale, 0)]
    page.wait_for_function(SAVED, arg=1)
    page.reload()
    wait_for(page, "resume")
    hand.go_on(0)
    wait_for(page, "trials")
    other_tabs = [page.context.new_page() for _ in range(2)]
    for tab in other_tabs:  # one more tab is open each time
        tab.goto(address)
        wait_for(tab, "resume")
        Hand(tab, by).go_on(0)
        wait_for(tab, "trials")
    for tab in other_tabs:
        tab.close()
    page.bring_to_front()
    answers.append(hand.answer(scale, 1))
    wait_for(page, "break")
    hand.go_on()
    page.wait_for_function(SAVED, arg=2)
    page.context.set_offline(True)
    wait_for(page, "trials")
    for event, milliseconds in (("blur", 300), ("focus", 0), ("blur", 100), ("focus", 0)):
        page.evaluate(f"dispatchEvent(new Event('{event}'))")
        page.wait_for_timeout(milliseconds)
    answers.append(hand.answer(scale, 2))
    wait_for(page, "after")
    hand.write("remarks", "=1, as usual")
    hand.press(page.locator("button.next"))
    wait_for(page, "waiting")
    page.wait_for_selector(".detail .copy")
    screenshot(page, f"session-{scale}-{by}-offline")
    assert page.locator(".code").count() == 0
    assert [person["answered"] for person in served.rows("participants")] == ["2"]
    page.context.set_offline(False)
    wait_for(page, "saved")

    (person,) = served.rows("participants")
    size = page.viewport_size
    assert {name: person[name] for name in ("state", "answered", "second_tabs", "code")} == {
        "state": "complete",
        "answered": str(PAIRS),
        "second_tabs": "2",
        "code": page.inner_text(".code"),
    }
    assert person["device"] == ("phone" if by == "touch" else "computer")
    assert person["viewport"] == f"{size['width']}x{size['height']}"
    assert person["sona_id_hash"] != ""
    assert b"iPhone" not in served.database.read_bytes()
    questions = [(a.question, a.answer) for a in collected_questions(served.database)]
    assert questions == [("age", "31"), ("language", "English"), ("remarks", "=1, as usual")]
    imported = import_collected([served.database], on_scale(TRIALS, scale))
    problems = {finding.problem for finding in imported.report.findings}
    assert problems <= {Problem.TOO_FAST, Problem.ONE_RATING}
    by_id = {trial.trial_id: trial for trial in TRIALS}
    for position, (row, (sentences, response)) in enumerate(
        zip(imported.responses, answers, strict=True), start=1
    ):
        first, second = (text.rstrip(".") for text in by_id[row.trial_id].displayed_texts)
        assert sentences == ((first, second) if row.left == 1 else (second, first))
        assert row.rating == (response if row.left == 1 else scale.mirrored(response))
        assert (row.position, row.input, row.scale) == (position, by, scale)
        assert row.rt_ms > 250
    assert [row.blurs for row in imported.responses][::2] == [0, 2]
    away = [row.away_ms for row in imported.responses]
    assert away[::2] == [0, pytest.approx(400, abs=200)]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_dropouts_free_their_group_but_keep_their_answers(
    study: Callable[[Scale], Path], serve: Serve, visit: Visit
) -> None:
    """Two leave, after one response or none; the third fails the check; the fourth stays.

    By the rule alone, each one joins the first group with the fewest active participants.
    """
    served = serve(study(Scale.CHOICE))
    address = served.address
    hands = []
    for n in range(2):
        hands.append(Hand(visit(address), "mouse"))
        hands[n].begin()
        hands[n].page.wait_for_function(ACKNOWLEDGED)
    hands[0].answer(Scale.CHOICE, 0)
    hands[0].page.wait_for_function(SAVED, arg=1)
    for hand in hands:
        hand.page.close()
    served.now[0] += 31 * 60
    failing = Hand(visit(address), "mouse")
    failing.begin(wrong=2)
    wait_for(failing.page, "refused")
    failing.page.wait_for_function(ACKNOWLEDGED)
    staying = Hand(visit(address), "mouse")
    staying.begin()
    rows = served.rows("participants")
    assert [row["group"] for row in rows] == ["1", "2", "1", "1"]
    assert [row["state"] for row in rows] == ["left", "left", "failed", "active"]
    assert [row["answered"] for row in rows] == ["1", "0", "0", "0"]
    questions = [(a.participant, a.question) for a in collected_questions(served.database)]
    names = [row["participant"] for row in rows]
    assert questions == [(name, question) for name in names for question in ("age", "language")]
    failing.page.reload()
    wait_for(failing.page, "refused")
    assert [row["state"] for row in served.rows("participants")][2] == "failed"
