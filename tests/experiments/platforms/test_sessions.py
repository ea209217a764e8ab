"""Whole sessions at the real server in Chromium: each scale, by keyboard, mouse and touch.

The witness of every column is what was pressed, and when, by the browser's own keys, mouse and
touch; sentences and sides are those that stood on the screen.
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
from tests.experiments.platforms.test_scales import PHONE, TOLD
from tests.experiments.platforms.walking import SAVED, picture, reach, shown

pytestmark = pytest.mark.slow

IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148"


class Hand:
    """A person at a page who uses keys, a mouse or a touch screen alone."""

    def __init__(self, page: Any, by: str) -> None:
        self.page, self.by = page, by

    def press(self, target: Any) -> None:
        """Press something, which keys reach by Tab alone."""
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

    def go_on(self, at: int = -1) -> None:
        """Press a button of a page of text, and wait until another page is there."""
        before = self.page.locator("#jspsych-content > *").first.element_handle()
        self.page.wait_for_function(
            "() => !document.querySelector('#jspsych-content .next').disabled"
        )
        self.press(self.page.locator("button.next").nth(at))
        self.page.wait_for_function("element => !element.isConnected", arg=before)

    def answer(self, scale: Scale, number: int) -> tuple[tuple[str, str], int]:
        """Answer a pair; the sentences from left to right, and the answer from the left."""
        page, last = self.page, scale.answers[-1]
        reach(page, "trials")
        buttons = page.locator("#jspsych-content button")
        page.wait_for_function("() => !document.querySelector('#jspsych-content button').disabled")
        pair = shown(page)
        before = page.locator("#jspsych-html-button-response-stimulus").element_handle()
        given = (scale.answers[0], last, last - 1)[number]
        if scale.buttons and self.by == "key":
            page.keyboard.press(str(given))
        elif scale.buttons:
            self.press(buttons.nth(given - 1))
        else:
            given = self._slide(number)
        page.wait_for_function("element => !element.isConnected", arg=before)
        return pair, given

    def _slide(self, number: int) -> int:
        """Move the slider to an end or beside it, and go on; where it stood, from 0 on the left."""
        page, track = self.page, self.page.locator(".track input")
        for key in ("Enter", "Shift"):  # no answer yet
            page.keyboard.press(key)
        assert not page.locator("button.next").is_visible()
        if self.by == "key":
            for key in (("Home",), ("End",), ("End", "ArrowLeft"))[number]:
                page.keyboard.press(key)
        else:  # at last in the middle, where nothing moves
            box = track.bounding_box()
            x = box["x"] + (1, box["width"] - 1, box["width"] / 2)[number]
            move = page.touchscreen.tap if self.by == "touch" else page.mouse.click
            move(x, box["y"] + box["height"] / 2)
        stood = int(track.input_value())
        if self.by == "key":
            page.keyboard.press("Enter")
        else:
            self.press(page.locator("button.next"))
        return stood

    def _tab_to(self, target: Any) -> None:
        for _ in range(30):
            if target.evaluate("element => element === document.activeElement"):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError("Tab does not lead there")

    def begin(self, *, wrong: int = 0) -> None:
        """Agree, tell of oneself, read, and answer the check, wrongly so many times first."""
        reach(self.page, "consent")
        self.go_on(0)
        reach(self.page, "before")
        self.write("age", "31")
        self.press(self.page.locator("input[name=language]").first)
        self.go_on()
        for attempt in range(2):
            reach(self.page, "instructions")
            self.go_on()
            reach(self.page, "check")
            if self.by == "key":  # arrows move between choices, of which Tab reaches one
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
        own = {"questions": tmp_path / "asked.csv", "break_every": 2, "deadline": 60.0}
        return export([*on_scale(TRIALS, scale)], return_link="https://example.org/", **own)

    return write


@pytest.mark.parametrize("by", ["key", "mouse", "touch"])
@pytest.mark.parametrize("scale", Scale)
def test_a_session_from_consent_to_the_code_is_kept_as_it_went(
    scale: Scale, by: str, study: Callable[[Scale], Path], serve: Serve, visit: Visit
) -> None:
    """With a reload, further tabs, a break, and no network and losses of the focus at the end."""
    served = serve(study(scale))
    address = f"{served.address}?sona_id=17"
    device = {"user_agent": IPHONE, **PHONE} if by == "touch" else {}
    page = visit(address, **device)
    hand = Hand(page, by)
    hand.begin()
    answers = [hand.answer(scale, 0)]
    page.wait_for_function(SAVED, arg=1)
    page.reload()
    reach(page, "resume")
    hand.go_on(0)
    reach(page, "trials")
    further = [page.context.new_page() for _ in range(2)]
    for tab in further:  # each beside those before it
        tab.goto(address)
        reach(tab, "resume")
        Hand(tab, by).go_on(0)
        reach(tab, "trials")
    for tab in further:
        tab.close()
    page.bring_to_front()
    answers.append(hand.answer(scale, 1))
    reach(page, "break")
    hand.go_on()
    page.wait_for_function(SAVED, arg=2)
    page.context.set_offline(True)
    reach(page, "trials")
    for event, milliseconds in (("blur", 300), ("focus", 0), ("blur", 100), ("focus", 0)):
        page.evaluate(f"dispatchEvent(new Event('{event}'))")
        page.wait_for_timeout(milliseconds)
    answers.append(hand.answer(scale, 2))
    reach(page, "after")
    hand.write("remarks", "=1, as usual")
    hand.press(page.locator("button.next"))
    reach(page, "waiting")
    page.wait_for_selector(".detail .copy")
    picture(page, f"session-{scale}-{by}-offline")
    assert page.locator(".code").count() == 0
    assert [person["answered"] for person in served.rows("participants")] == ["2"]
    page.context.set_offline(False)
    reach(page, "saved")

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
    told = [(each.question, each.answer) for each in collected_questions(served.database)]
    assert told == [("age", "31"), ("language", "English"), ("remarks", "=1, as usual")]
    imported = import_collected([served.database], on_scale(TRIALS, scale))
    assert {found.problem for found in imported.report.findings} <= {
        Problem.TOO_FAST,
        Problem.ONE_RATING,
    }
    by_id = {trial.trial_id: trial for trial in TRIALS}
    for position, (row, (pair, given)) in enumerate(
        zip(imported.responses, answers, strict=True), start=1
    ):
        first, second = (text.rstrip(".") for text in by_id[row.trial_id].displayed_texts)
        assert pair == ((first, second) if row.left == 1 else (second, first))
        assert row.rating == (given if row.left == 1 else scale.mirrored(given))
        assert (row.position, row.input, row.scale) == (position, by, scale)
        assert row.rt_ms > 250
    assert [row.blurs for row in imported.responses][::2] == [0, 2]
    away = [row.away_ms for row in imported.responses]
    assert away[::2] == [0, pytest.approx(400, abs=200)]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_who_leaves_or_fails_the_check_makes_room_and_what_they_told_stays(
    study: Callable[[Scale], Path], serve: Serve, visit: Visit
) -> None:
    """Two leave, one after an answer, one before any; the third fails the check, the fourth stays.

    Groups follow from the rule alone: the first group with fewest people who are there.
    """
    served = serve(study(Scale.CHOICE))
    address = served.address
    hands = []
    for n in range(2):
        hands.append(Hand(visit(address), "mouse"))
        hands[n].begin()
        hands[n].page.wait_for_function(TOLD)
    hands[0].answer(Scale.CHOICE, 0)
    hands[0].page.wait_for_function(SAVED, arg=1)
    for hand in hands:
        hand.page.close()
    served.now[0] += 31 * 60
    failing = Hand(visit(address), "mouse")
    failing.begin(wrong=2)
    reach(failing.page, "refused")
    failing.page.wait_for_function(TOLD)
    staying = Hand(visit(address), "mouse")
    staying.begin()
    rows = served.rows("participants")
    assert [row["group"] for row in rows] == ["1", "2", "1", "1"]
    assert [row["state"] for row in rows] == ["left", "left", "failed", "active"]
    assert [row["answered"] for row in rows] == ["1", "0", "0", "0"]
    told = [(each.participant, each.question) for each in collected_questions(served.database)]
    names = [row["participant"] for row in rows]
    assert told == [(name, question) for name in names for question in ("age", "language")]
    failing.page.reload()
    reach(failing.page, "refused")
    assert [row["state"] for row in served.rows("participants")][2] == "failed"
